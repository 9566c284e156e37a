// The rows that a warp of a sparse attention kernel loads, block after block.
#pragma once

#include "kernels/sparse_attention/block_stream.h"

#include <cstdint>

namespace tilewright::tile {

/// Where a row of a cache begins, and its scales.
struct SparseSource {
  const std::uint8_t* data;
  const std::uint8_t* scales;
};

/// `Rows` rows of each block are a warp's, one for each LanesOfRow lanes at a time: lane l has rows
/// l / LanesOfRow + i * 32 / LanesOfRow. Entries are read a block before their rows are found.
template <KvFormat Format, int Rows, int LanesOfRow>
class SparseEntries {
 public:
  static constexpr int kRows = Rows, kRowsAtOnce = 32 / LanesOfRow, kShares = kRows / kRowsAtOnce;

  SparseSource sources[kShares];
  std::uint32_t valid;  ///< bit i: row i of the warp's is one; otherwise its source is zeros

  __device__ SparseEntries(const kernels::SparseDecodeParams& params, std::int32_t group,
                           std::uint32_t first_row)
      : params_(params),
        stream_(params, group),
        row_(static_cast<std::int32_t>(first_row + threadIdx.x % 32 / LanesOfRow)) {}

  /// Starts to read the entries of the next block.
  __device__ void read() {
    SparseBlock block;
    std::int32_t query;
    has_entries_ = stream_.next(block, query);
    if (!has_entries_) return;
    list_ = block.list;
    const kernels::SparseKeys& keys = params_.keys[block.list];
    const std::int32_t* entries = keys.indices + query * keys.index_stride + block.first;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const std::int32_t entry = row_ + kRowsAtOnce * i;
      entries_[i] = entry < block.count ? entries[entry] : -1;
    }
  }

  /// The rows of the entries that were read. Behind the last block false, and zeros.
  __device__ bool find() {
    const kernels::SparseKeys& keys = params_.keys[list_];
    const auto* none = reinterpret_cast<const std::uint8_t*>(kSparseNoRow<kv_dims(Format)>);
    valid = 0;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const bool is_valid = has_entries_ && static_cast<std::uint32_t>(entries_[i]) <
                                                static_cast<std::uint32_t>(keys.num_rows);
      const SparseRow row(keys, is_valid ? entries_[i] : 0);
      sources[i].data = is_valid ? row.template data<Format>() : none;
      sources[i].scales = is_valid ? row.template scales<Format>(keys) : none;
      valid |= first_lanes(__ballot_sync(0xffffffffu, is_valid)) << kRowsAtOnce * i;
    }
    return has_entries_;
  }

 private:
  /// A bit of each row, out of one of each lane.
  static __device__ std::uint32_t first_lanes(std::uint32_t bits) {
    if constexpr (LanesOfRow == 4) {
      bits &= 0x11111111u;
      bits = (bits | bits >> 3) & 0x03030303u;
    } else {
      static_assert(LanesOfRow == 8);
      bits &= 0x01010101u;
      return (bits | bits >> 7 | bits >> 14 | bits >> 21) & 0xfu;
    }
    bits = (bits | bits >> 6) & 0x000f000fu;
    return (bits | bits >> 12) & 0xffu;
  }

  const kernels::SparseDecodeParams& params_;
  SparseStream stream_;
  std::int32_t row_;
  std::int32_t list_ = 0;
  std::int32_t entries_[kShares];
  bool has_entries_ = false;
};

}  // namespace tilewright::tile
