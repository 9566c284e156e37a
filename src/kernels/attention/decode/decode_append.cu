// targets: sm_90a sm_100f
//
// New tokens of a decode step: keys rotated and written, values written, queries rotated, in one
// launch before the attending one. A warp has a row of a head, a lane every 32nd pair of it.
//
// Limit: a few KB a token; the launch. With programmatic dependent launches the attending kernel is
// resident when this one ends.
#include "kernels/attention/decode/decode_append.h"
#include "ptx/convert_fp8.h"
#include "ptx/grid_dependency.h"
#include "tile/element.h"
#include "tile/entry.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

struct Row {
  const std::uint16_t* from;
  bool is_f16;

  __device__ float operator[](std::int32_t i) const {
    const float2 x = is_f16 ? tile::Fp16::unpack(from[i]) : tile::Bf16::unpack(from[i]);
    return x.x;
  }
};

__device__ std::uint16_t round16(float x, bool is_f16) {
  return static_cast<std::uint16_t>(is_f16 ? tile::Fp16::pack(x, 0.0f) : tile::Bf16::pack(x, 0.0f));
}

/// Where elements go: times a factor, as what they are in there.
template <DecodeKv Kv>
struct CacheRow {
  std::uint8_t* to;
  float factor;

  __device__ void store(std::int32_t i, float x) const {
    if constexpr (Kv == DecodeKv::kE4m3) {
      to[i] = static_cast<std::uint8_t>(ptx::cvt_rn_satfinite_e4m3_f32(x * factor));
    } else {
      reinterpret_cast<std::uint16_t*>(to)[i] = round16(x, Kv == DecodeKv::kF16);
    }
  }
};
struct QueryRow {
  std::uint16_t* to;
  bool is_f16;
  __device__ void store(std::int32_t i, float x) const { to[i] = round16(x, is_f16); }
};

template <class Target>
__device__ void copy_row(const DecodeAppendParams& p, const Row& row, const Target& target,
                         DecodePairs pairs, std::int32_t position) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const std::int32_t half = pairs == DecodePairs::kNone ? 0 : p.rotary_dim / 2;
  for (std::int32_t i = lane; i < p.head_dim / 2; i += 32) {
    if (i >= half) {
      target.store(2 * i, row[2 * i]);
      target.store(2 * i + 1, row[2 * i + 1]);
      continue;
    }
    const bool is_split = pairs == DecodePairs::kHalves;
    const std::int32_t first = is_split ? i : 2 * i, second = is_split ? i + half : 2 * i + 1;
    const std::int64_t at = std::int64_t{min(position, p.max_position - 1)} * half + i;
    const float c = p.cos[at], s = p.sin[at], x = row[first], y = row[second];
    target.store(first, x * c - y * s);
    target.store(second, x * s + y * c);
  }
}

/// The byte offset of key `key` of a sequence's head in the cache; -1 if there is none.
__device__ std::int64_t cache_offset(const DecodeCache& cache, std::int32_t batch_idx,
                                     std::int32_t kv_head, std::int32_t key) {
  if (key >= cache.capacity) return -1;
  const auto page_of =
      static_cast<std::int32_t>(cache.page_divisor.divide(static_cast<std::uint32_t>(key)));
  std::int32_t page = batch_idx;
  if (cache.block_table != nullptr)
    page = cache.block_table[batch_idx * cache.table_stride + page_of];
  if (static_cast<std::uint32_t>(page) >= static_cast<std::uint32_t>(cache.num_pages)) return -1;
  return page * cache.page_stride + (key - page_of * cache.page_size) * cache.row_stride +
         kv_head * cache.head_stride;
}

template <DecodeKv Kv>
__device__ void append(const DecodeAppendParams& p) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t at = std::int64_t{blockIdx.x} * kDecodeAppendWarps + threadIdx.x / 32;
  if (at >= decode_append_rows(p)) return;
  const std::int32_t q_heads = p.rotated != nullptr ? p.heads : 0;
  const std::int32_t each = q_heads + 2 * p.kv_heads;
  const std::int64_t token = at / each;
  auto head = static_cast<std::int32_t>(at - token * each);
  const auto batch_idx = static_cast<std::int32_t>(token / p.q_len);
  const auto i = static_cast<std::int32_t>(token - std::int64_t{batch_idx} * p.q_len);
  // A length may be the largest number that there is; what is behind that has no place.
  const std::int32_t length = max(p.lengths[batch_idx], 0);
  const std::int32_t position = length + min(i, 0x7fffffff - length);
  const auto source = [&](const std::uint16_t* x, const DecodeStrides& s) {
    return Row{x + batch_idx * s.batch + i * s.row + head * s.head, p.is_f16 != 0};
  };
  if (head < q_heads) {
    const QueryRow to = {p.rotated + (token * p.heads + head) * p.head_dim, p.is_f16 != 0};
    return copy_row(p, source(p.q, p.q_strides), to, p.pairs, position);
  }
  head -= q_heads;
  const bool is_value = head >= p.kv_heads;
  if (is_value) head -= p.kv_heads;
  const std::int64_t offset = cache_offset(p.cache, batch_idx, head, position);
  if (offset < 0) return;
  const float* const descale = is_value ? p.descale.v : p.descale.k;
  const float factor = descale == nullptr
                           ? 1.0f
                           : 1.0f / descale[batch_idx * p.descale.batch + head * p.descale.head];
  const CacheRow<Kv> to = {(is_value ? p.cache.v : p.cache.k) + offset, factor};
  if (is_value) {
    copy_row(p, source(p.new_v, p.v_strides), to, DecodePairs::kNone, position);
  } else {
    copy_row(p, source(p.new_k, p.k_strides), to, p.pairs, position);
  }
}

}  // namespace
#define TILEWRIGHT_ENTRY(NAME, KV)                            \
  TILEWRIGHT_KERNEL(decode_append_##NAME, DecodeAppendParams, \
                    __launch_bounds__(kDecodeAppendThreads), append<DecodeKv::KV>)

TILEWRIGHT_ENTRY(bf16, kBf16)
TILEWRIGHT_ENTRY(f16, kF16)
TILEWRIGHT_ENTRY(e4m3, kE4m3)

}  // namespace tilewright::kernels
