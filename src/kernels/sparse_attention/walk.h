// The pieces that a group walks, and the entries of their lists.
#pragma once

#include "kernels/sparse_attention/work.h"

#include <cstdint>

namespace tilewright::tile {

/// The pieces of a group, one after another. All threads may walk; reads are the same everywhere.
class SparseWalk {
 public:
  __device__ SparseWalk(const kernels::SparseDecodeParams& params, std::int32_t group)
      : params_(params), at_(group), end_(params.batch * params.q_len), step_(params.groups) {
    if (params.work == nullptr) return;
    at_ = params.work_begin[group];
    end_ = params.work_begin[group + 1];
    step_ = 1;
  }

  /// False at the end. Without a schedule end_block is that of any list: SparseQuery::num_blocks
  /// says how many there are.
  __device__ bool next(kernels::SparseWork& piece) {
    if (at_ >= end_) return false;
    piece = params_.work != nullptr ? params_.work[at_] : kernels::SparseWork{at_, 0, 1 << 30, -1};
    at_ += step_;
    return true;
  }

 private:
  const kernels::SparseDecodeParams& params_;
  std::int32_t at_, end_, step_;
};

/// Entry `entry` of a query's list: a row of the cache, or -1.
__device__ inline std::int32_t sparse_row(const kernels::SparseKeys& keys, std::int32_t query,
                                          std::int32_t entry) {
  const std::int32_t row = keys.indices[query * keys.index_stride + entry];
  return static_cast<std::uint32_t>(row) < static_cast<std::uint32_t>(keys.num_rows) ? row : -1;
}

}  // namespace tilewright::tile
