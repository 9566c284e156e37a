// Where a key of a sequence is in a cache.
#pragma once

#include "kernels/attention/decode/decode.h"

#include <cstdint>

namespace tilewright::tile {

/// A key of a sequence: entry of the sequence's block table, and its place in that page.
struct DecodePlace {
  std::int32_t entry, slot;

  __device__ DecodePlace(const kernels::DecodeCache& cache, std::int32_t key)
      : entry(
            static_cast<std::int32_t>(cache.page_divisor.divide(static_cast<std::uint32_t>(key)))),
        slot(key - entry * cache.page_size) {}

  /// The page of it, as `load` finds it at its place in the table, if there is one.
  template <class Load>
  __device__ std::int32_t page(const kernels::DecodeCache& cache, std::int32_t batch_idx,
                               const Load& load) const {
    if (cache.block_table == nullptr) return batch_idx;
    return load(cache.block_table + batch_idx * cache.table_stride + entry);
  }
  /// Of the row of a head, in bytes.
  __device__ std::int64_t offset(const kernels::DecodeCache& cache, std::int32_t page,
                                 std::int32_t head) const {
    return page * cache.page_stride + slot * cache.row_stride + head * cache.head_stride;
  }
  __device__ static bool is_page(const kernels::DecodeCache& cache, std::int32_t page) {
    return static_cast<std::uint32_t>(page) < static_cast<std::uint32_t>(cache.num_pages);
  }
};

__device__ inline std::int32_t read_entry(const std::int32_t* from) {
  return *from;
}

}  // namespace tilewright::tile
