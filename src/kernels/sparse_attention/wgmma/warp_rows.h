// The rows that a warp of converters loads, block after block.
#pragma once

#include "kernels/sparse_attention/block_stream.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/prefetch.h"

#include <cstdint>

namespace tilewright::tile {

/// `Rows` rows of each block are a warp's. Lane l looks up row l % Rows, and the others ask it: all
/// rows of each lane would be more code. Entries are read a block before their rows are found.
template <KvFormat Format, int Rows>
class SparseWarpRows {
  static_assert(32 % Rows == 0);

 public:
  std::uint32_t valid;  ///< bit i: row i is one; otherwise its bytes are zeros

  __device__ SparseWarpRows(const kernels::SparseDecodeParams& params, std::int32_t group,
                            std::uint32_t first_row)
      : params_(params),
        stream_(params, group),
        row_(static_cast<std::int32_t>(first_row + threadIdx.x % Rows)) {}

  /// Starts to read the entries of the next block.
  __device__ void read() {
    SparseBlock block;
    std::int32_t query;
    has_entry_ = stream_.next(block, query);
    if (!has_entry_) return;
    list_ = block.list;
    const kernels::SparseKeys& keys = params_.keys[block.list];
    const std::int32_t* entries = keys.indices + query * keys.index_stride + block.first;
    entry_ = row_ < block.count ? entries[row_] : -1;
  }
  /// The rows of the entries that were read. Behind the last block false, and zeros.
  __device__ bool find() {
    const kernels::SparseKeys& keys = params_.keys[list_];
    const auto* none = reinterpret_cast<const std::uint8_t*>(kSparseNoRow<kv_dims(Format)>);
    const bool is_valid = has_entry_ && static_cast<std::uint32_t>(entry_) <
                                            static_cast<std::uint32_t>(keys.num_rows);
    const SparseRow row(keys, is_valid ? entry_ : 0);
    data_ = is_valid ? row.template data<Format>() : none;
    scales_ = is_valid ? row.template scales<Format>(keys) : none;
    valid = __ballot_sync(0xffffffffu, is_valid) & (0xffffffffu >> (32 - Rows));
    return has_entry_;
  }

  /// Of the warp's row `row`, which each lane chooses; all lanes together.
  __device__ const std::uint8_t* data(std::uint32_t row) const { return of_row(data_, row); }
  __device__ const std::uint8_t* scales(std::uint32_t row) const { return of_row(scales_, row); }

  /// `bytes` bytes of all rows from `first` on, into the L2 cache. An instruction for every 64
  /// bytes: no more come.
  __device__ void prefetch(int first, int bytes) const {
    constexpr int kStep = 64 * (32 / Rows);
    for (int at = static_cast<int>(threadIdx.x % 32 / Rows) * 64; at < bytes; at += kStep)
      ptx::prefetch_global_L2(data_ + first + at);
  }

 private:
  static __device__ const std::uint8_t* of_row(const std::uint8_t* mine, std::uint32_t row) {
    const auto address = reinterpret_cast<std::uint64_t>(mine);
    return reinterpret_cast<const std::uint8_t*>(
        __shfl_sync(0xffffffffu, address, static_cast<int>(row)));
  }

  const kernels::SparseDecodeParams& params_;
  SparseStream stream_;
  std::int32_t row_;
  std::int32_t list_ = 0, entry_ = -1;
  bool has_entry_ = false;
  const std::uint8_t *data_ = nullptr, *scales_ = nullptr;
};

}  // namespace tilewright::tile
