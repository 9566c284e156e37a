// targets: sm_90a sm_100f
//
// Lists of the keys that a mask shows, in order. A CTA has a list; in each step a thread takes 32
// entries as bits of a word, a scan over the CTA says how many are before it, and it writes its
// own. Four bytes become four bits by one multiplication.
//
// Limit: memory: the mask once for each list (a byte, or a bit, an entry), four bytes of list a
// key. A prefill of 4096 queries over 4096 keys as bytes, an eighth of them set: 17 MB and 8 MB,
// 5.3 us at 4.8 TB/s.
#include "kernels/sparse_attention/mask_lists.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kWarps = kMaskListsThreads / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Bit i: byte i of the word is not 0.
__device__ std::uint32_t bits_of_bytes(std::uint32_t word) {
  const std::uint32_t high = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u;
  return (high >> 7) * 0x10204080u >> 28;
}

struct Bytes {
  static __device__ std::uint32_t load(const std::uint8_t* row, std::int32_t first,
                                       std::int32_t entries) {
    const std::uint8_t* const from = row + first;
    std::uint32_t bits = 0;
    if (first + kMaskListsEntries <= entries && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 words = reinterpret_cast<const uint4*>(from)[half];
        bits |= (bits_of_bytes(words.x) | bits_of_bytes(words.y) << 4 |
                 bits_of_bytes(words.z) << 8 | bits_of_bytes(words.w) << 12)
                << 16 * half;
      }
      return bits;
    }
    const std::int32_t count = min(entries - first, kMaskListsEntries);
    for (std::int32_t i = 0; i < count; ++i) bits |= std::uint32_t{from[i] != 0} << i;
    return bits;
  }
};

struct Bits {
  static __device__ std::uint32_t load(const std::uint8_t* row, std::int32_t first,
                                       std::int32_t entries) {
    const std::uint8_t* const from = row + first / 8;
    const std::int32_t count = min(entries - first, kMaskListsEntries);
    std::uint32_t bits = 0;
    if (count == kMaskListsEntries && reinterpret_cast<std::uintptr_t>(from) % 4 == 0)
      return *reinterpret_cast<const std::uint32_t*>(from);
    for (std::int32_t i = 0; 8 * i < count; ++i) bits |= std::uint32_t{from[i]} << 8 * i;
    return count < kMaskListsEntries ? bits & ((1u << max(count, 0)) - 1) : bits;
  }
};

// How many are before this thread, and in all.
struct Scanned {
  std::int32_t before, all;
};

__device__ Scanned scan(std::int32_t (&sums)[kWarps], std::int32_t count) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
  std::int32_t until = count;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t below = __shfl_up_sync(kAllLanes, until, step);
    if (lane >= step) until += below;
  }
  if (lane == 31) sums[warp] = until;
  __syncthreads();
  Scanned scanned = {until - count, 0};
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) scanned.before += sums[i];
    scanned.all += sums[i];
  }
  __syncthreads();
  return scanned;
}

struct List {
  const MaskListsParams& params;
  std::int32_t* indices;
  const std::int32_t* table;

  __device__ std::int32_t index_of(std::int32_t key) const {
    if (table == nullptr) return key;
    return table[key / params.page_size] * params.page_size + key % params.page_size;
  }
  // The keys of an entry, which is number `before` of the list.
  __device__ void write(std::int32_t entry, std::int32_t before) const {
    const std::int64_t first_key = std::int64_t{entry} * params.key_block;
    const std::int64_t place = std::int64_t{before} * params.key_block;
    for (std::int32_t k = 0; k < params.key_block; ++k) {
      if (first_key + k >= params.keys || place + k >= params.topk) return;
      indices[place + k] = index_of(static_cast<std::int32_t>(first_key) + k);
    }
  }
};

template <class Entries>
__device__ void make_list(const MaskListsParams& params) {
  __shared__ std::int32_t sums[kWarps];
  const auto number = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t batch = number / params.rows, row = number % params.rows;
  const std::uint8_t* const mask = params.mask + batch * params.mask_batch_bytes +
                                   row / params.query_block * params.mask_row_bytes;
  const List list = {
      params, params.indices + number * params.index_stride,
      params.block_table == nullptr ? nullptr : params.block_table + batch * params.table_stride};
  constexpr std::int32_t kStep = kMaskListsThreads * kMaskListsEntries;
  std::int32_t found = 0;     // entries in the steps before
  std::int32_t has_last = 0;  // the last entry, which may have fewer keys, is set
  for (std::int32_t begin = 0; begin < params.entries; begin += kStep) {
    const std::int32_t first = begin + static_cast<std::int32_t>(threadIdx.x) * kMaskListsEntries;
    std::uint32_t bits = first < params.entries ? Entries::load(mask, first, params.entries) : 0;
    const Scanned scanned = scan(sums, __popc(bits));
    const std::int32_t last = params.entries - 1 - first;
    has_last = __syncthreads_or(last >= 0 && last < 32 && (bits >> last & 1));
    for (std::int32_t before = found + scanned.before; bits != 0; ++before) {
      list.write(first + __ffs(static_cast<int>(bits)) - 1, before);
      bits &= bits - 1;
    }
    found += scanned.all;
  }
  const std::int64_t missing =
      has_last != 0 ? std::int64_t{params.entries} * params.key_block - params.keys : 0;
  const auto total = static_cast<std::int32_t>(std::int64_t{found} * params.key_block - missing);
  const std::int32_t length = min(total, params.topk);
  for (std::int32_t i = length + static_cast<std::int32_t>(threadIdx.x); i < params.topk;
       i += kMaskListsThreads)
    list.indices[i] = -1;
  if (threadIdx.x != 0) return;
  params.lengths[number] = length;
  if (params.totals != nullptr) params.totals[number] = total;
}

}  // namespace

TILEWRIGHT_KERNEL(mask_lists_bytes, MaskListsParams, __launch_bounds__(kMaskListsThreads),
                  make_list<Bytes>)
TILEWRIGHT_KERNEL(mask_lists_bits, MaskListsParams, __launch_bounds__(kMaskListsThreads),
                  make_list<Bits>)

}  // namespace tilewright::kernels
