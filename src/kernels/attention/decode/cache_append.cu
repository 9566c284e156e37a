// targets: sm_90a sm_100f
//
// New keys and values to their places in the caches, any number of them for any number of queries,
// and queries turned, before attention over the caches. A thread has 8 neighbours of a row, and
// where halves of a row turn together it reads their partners, too, which are in L1.
//
// Limit: memory, every new row once in and out: 4096 tokens of 8 heads of 128, keys and values in
// bf16, and 32 heads of queries: 101 MB, 21 us at 4.8 TB/s. The launch, for the few of a decode
// step.
#include "kernels/attention/decode/cache_append.h"
#include "kernels/attention/rows.h"
#include "ptx/convert_fp8.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/entry.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

constexpr std::uint32_t kElems = kCacheAppendElems;

struct Token {
  std::int32_t batch, row;
  bool is_one;  ///< of a sequence
};

// The sequence that begins last of those that begin at or before `token`.
__device__ Token find_token(const CacheAppendRows& rows, std::int32_t batch, std::int32_t token) {
  if (rows.cu == nullptr) {
    const std::int32_t at = token / rows.length;
    return {at, token - at * rows.length, true};
  }
  std::int32_t first = 0, last = batch;  // cu[first] <= token < cu[last], if it is of a sequence
  while (last - first > 1) {
    const std::int32_t middle = (first + last) / 2;
    if (rows.cu[middle] <= token) {
      first = middle;
    } else {
      last = middle;
    }
  }
  const std::int32_t row = token - rows.cu[first];
  return {first, row, row >= 0 && token < rows.cu[batch]};
}

// A row of a head of a token, and 8 of its elements.
struct Place {
  Token token;
  std::int32_t packed, head, column;

  __device__ Place(const CacheAppendParams& p, const CacheAppendRows& rows, std::uint32_t index,
                   std::int32_t heads, std::int32_t dim) {
    const std::uint32_t chunks = static_cast<std::uint32_t>(dim) / kElems;
    const std::uint32_t line = index / chunks, tokens = line / static_cast<std::uint32_t>(heads);
    column = static_cast<std::int32_t>((index - line * chunks) * kElems);
    head = static_cast<std::int32_t>(line - tokens * static_cast<std::uint32_t>(heads));
    packed = static_cast<std::int32_t>(tokens);
    token = find_token(rows, p.batch, packed);
  }
  __device__ std::int64_t offset(const CacheAppendRows& rows, const AttentionStrides& s) const {
    return rows.cu == nullptr ? tile::row_offset(s, token.batch, token.row, head)
                              : tile::row_offset(s, 0, packed, head);
  }
};

__device__ void unpack(float (&x)[kElems], const uint4& chunk, CacheAppendType type) {
  if (type == CacheAppendType::kF16) return tile::unpack_chunk<tile::Fp16>(x, chunk);
  tile::unpack_chunk<tile::Bf16>(x, chunk);
}

__device__ void store(void* base, std::int64_t offset, const float (&x)[kElems],
                      CacheAppendType type, float factor) {
  if (type == CacheAppendType::kE4m3) {
    float y[kElems];
#pragma unroll
    for (std::uint32_t i = 0; i < kElems; ++i) y[i] = x[i] * factor;
    *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(base) + offset) =
        make_uint2(ptx::cvt_rn_satfinite_e4m3x4_f32(y[0], y[1], y[2], y[3]),
                   ptx::cvt_rn_satfinite_e4m3x4_f32(y[4], y[5], y[6], y[7]));
    return;
  }
  auto* const to = static_cast<std::uint16_t*>(base) + offset;
  tile::store_chunk(to, 0,
                    type == CacheAppendType::kF16 ? tile::pack_chunk<tile::Fp16>(x, 1.0f)
                                                  : tile::pack_chunk<tile::Bf16>(x, 1.0f));
}

// A row of the tables of angles, `further` ones behind that of a sequence.
__device__ std::int32_t find_position(const CacheAppendParams& p, std::int32_t batch,
                                      std::int32_t further) {
  const auto first = static_cast<std::uint32_t>(max(p.offsets[batch], 0));
  return static_cast<std::int32_t>(min(first + static_cast<std::uint32_t>(further),
                                       static_cast<std::uint32_t>(p.max_position - 1)));
}

// 8 elements of a row from `column` on, turned by the angles of `position`.
__device__ void turn(float (&x)[kElems], const CacheAppendParams& p, const std::uint16_t* row,
                     std::int32_t column, std::int32_t position) {
  const std::int32_t half = p.rotary_dim / 2;
  const std::int64_t angles = std::int64_t{position} * half;
  if (p.pairs == CacheAppendPairs::kInterleaved) {
#pragma unroll
    for (std::uint32_t i = 0; i < kElems; i += 2) {
      const std::int64_t at = angles + (column + static_cast<std::int32_t>(i)) / 2;
      const float c = p.cos[at], s = p.sin[at], a = x[i], b = x[i + 1];
      x[i] = a * c - b * s;
      x[i + 1] = a * s + b * c;
    }
    return;
  }
  const bool is_first = column < half;
  float other[kElems];
  unpack(other, tile::load_chunk(row + (is_first ? half : -half), 0), p.type);
#pragma unroll
  for (std::uint32_t i = 0; i < kElems; ++i) {
    const std::int64_t at = angles + column - (is_first ? 0 : half) + static_cast<std::int32_t>(i);
    const float c = p.cos[at], s = p.sin[at];
    x[i] = is_first ? x[i] * c - other[i] * s : other[i] * s + x[i] * c;
  }
}

// Where a new key's head is in the cache; -1 if it has no place.
__device__ std::int64_t cache_offset(const CacheAppendParams& p, const AttentionStrides& strides,
                                     std::int32_t batch, std::int32_t head, std::int32_t row) {
  const std::int32_t length = min(max(p.lengths[batch], 0), p.capacity);
  if (row >= p.capacity - length) return -1;
  const std::int32_t key = length + row;
  const auto page_of =
      static_cast<std::int32_t>(p.page_divisor.divide(static_cast<std::uint32_t>(key)));
  const std::int32_t page =
      p.block_table == nullptr ? batch : p.block_table[batch * p.table_stride + page_of];
  if (static_cast<std::uint32_t>(page) >= static_cast<std::uint32_t>(p.num_pages)) return -1;
  return tile::row_offset(strides, page, key - page_of * p.page_size, head);
}

__device__ void turn_query(const CacheAppendParams& p, std::uint32_t index) {
  const Place place(p, p.queries, index, p.heads, p.head_dim);
  if (!place.token.is_one) return;
  const auto* const row =
      static_cast<const std::uint16_t*>(p.q) + place.offset(p.queries, p.q_strides) + place.column;
  const std::int64_t to = place.offset(p.queries, p.turned_q_strides) + place.column;
  const uint4 chunk = tile::load_chunk(row, 0);
  if (place.column >= p.rotary_dim)
    return tile::store_chunk(static_cast<std::uint16_t*>(p.turned_q) + to, 0, chunk);
  float x[kElems];
  unpack(x, chunk, p.type);
  const std::int32_t further = p.is_one_position != 0 ? 0 : place.token.row;
  turn(x, p, row, place.column, find_position(p, place.token.batch, further));
  store(p.turned_q, to, x, p.type, 1.0f);
}

struct Side {
  const void* from;
  void* cache;
  const float* descale;
  AttentionStrides from_strides, strides;
  std::int32_t dim;
};

__device__ void append_row(const CacheAppendParams& p, const Side& side, std::uint32_t index,
                           bool is_key) {
  const Place place(p, p.keys, index, p.kv_heads, side.dim);
  if (!place.token.is_one) return;
  const std::int32_t batch = place.token.batch, row = place.token.row;
  const std::int64_t found = cache_offset(p, side.strides, batch, place.head, row);
  if (found < 0) return;
  const std::int64_t to = found + place.column;
  const std::int64_t from = place.offset(p.keys, side.from_strides) + place.column;
  if (p.type == CacheAppendType::kE4m3) {  // codes of the cache
    *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(side.cache) + to) =
        *reinterpret_cast<const uint2*>(static_cast<const std::uint8_t*>(side.from) + from);
    return;
  }
  const auto* const source = static_cast<const std::uint16_t*>(side.from) + from;
  const uint4 chunk = tile::load_chunk(source, 0);
  const bool is_turned =
      is_key && p.pairs != CacheAppendPairs::kNone && place.column < p.rotary_dim;
  if (!is_turned && p.cache_type != CacheAppendType::kE4m3)
    return tile::store_chunk(static_cast<std::uint16_t*>(side.cache) + to, 0, chunk);
  float x[kElems];
  unpack(x, chunk, p.type);
  if (is_turned) turn(x, p, source, place.column, find_position(p, batch, row));
  const float factor =
      side.descale == nullptr
          ? 1.0f
          : 1.0f / side.descale[batch * p.descale_batch + place.head * p.descale_head];
  store(side.cache, to, x, p.cache_type, factor);
}

__device__ std::uint32_t chunks_of(const CacheAppendRows& rows, std::int32_t heads,
                                   std::int32_t dim) {
  return static_cast<std::uint32_t>(rows.total) * static_cast<std::uint32_t>(heads) *
         (static_cast<std::uint32_t>(dim) / kElems);
}

__device__ void append(const CacheAppendParams& p) {
  std::uint32_t at = blockIdx.x * std::uint32_t{kCacheAppendThreads} + threadIdx.x;
  if (p.new_lengths != nullptr && at < static_cast<std::uint32_t>(p.batch)) {
    const std::int32_t added =
        p.keys.cu == nullptr ? p.keys.length : max(p.keys.cu[at + 1] - p.keys.cu[at], 0);
    const std::int32_t length = max(p.lengths[at], 0);
    p.new_lengths[at] = length + min(added, 0x7fffffff - length);  // a negative one would be none
  }
  const std::uint32_t of_q = chunks_of(p.queries, p.heads, p.head_dim);
  if (at < of_q) return turn_query(p, at);
  at -= of_q;
  const std::uint32_t of_k = chunks_of(p.keys, p.kv_heads, p.head_dim);
  if (at < of_k) {
    const Side keys = {p.new_k, p.k, p.k_descale, p.new_k_strides, p.k_strides, p.head_dim};
    return append_row(p, keys, at, true);
  }
  at -= of_k;
  if (at >= chunks_of(p.keys, p.kv_heads, p.value_dim)) return;
  const Side values = {p.new_v, p.v, p.v_descale, p.new_v_strides, p.v_strides, p.value_dim};
  append_row(p, values, at, false);
}

}  // namespace

TILEWRIGHT_KERNEL(cache_append, CacheAppendParams, __launch_bounds__(kCacheAppendThreads), append)

}  // namespace tilewright::kernels
