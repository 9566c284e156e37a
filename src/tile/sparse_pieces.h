// The pieces of work of a group, each with its query's lengths, read ahead: what is on the way is
// not needed before the next piece but one.
#pragma once

#include "tile/sparse_work.h"

#include <cstdint>

namespace tilewright::tile {

/// Offset of the row of a head of a query.
__device__ inline std::int64_t sparse_offset(const kernels::SparseDecodeParams& params,
                                             const kernels::SparseStrides& strides,
                                             std::int32_t query, std::int32_t head) {
  return query / params.q_len * strides.batch + query % params.q_len * strides.query +
         head * strides.head;
}

/// Blocks [begin, end) of a query's lists.
struct SparsePiece {
  std::int32_t query, begin, end, partial;
  std::int32_t lengths[2];

  __device__ bool is_empty() const { return begin >= end; }
  __device__ SparseBlock block(std::int32_t number) const {
    const std::int32_t in_first = sparse_blocks(lengths[0]);
    const std::int32_t list = number < in_first ? 0 : 1;
    const std::int32_t first = (number - (list == 0 ? 0 : in_first)) * kernels::kSparseBlockKeys;
    return {list, first,
            min((list == 0 ? lengths[0] : lengths[1]) - first, kernels::kSparseBlockKeys)};
  }
};

class SparsePieces {
 public:
  __device__ SparsePieces(const kernels::SparseDecodeParams& params, std::int32_t group)
      : params_(params), walk_(params, group) {
    has_next_ = walk_.next(next_);
    if (has_next_) read_lengths();
    has_second_ = has_next_ && walk_.next(second_);
  }

  /// False at the end.
  __device__ bool take(SparsePiece& piece) {
    if (!has_next_) return false;
    const std::int32_t lengths[2] = {min(max(lengths_[0], 0), params_.keys[0].topk),
                                     min(max(lengths_[1], 0), params_.keys[1].topk)};
    const std::int32_t blocks = sparse_blocks(lengths[0]) + sparse_blocks(lengths[1]);
    piece = {next_.query,
             next_.begin_block,
             min(next_.end_block, blocks),
             next_.partial,
             {lengths[0], lengths[1]}};
    next_ = second_;
    has_next_ = has_second_;
    if (has_next_) {
      read_lengths();
      has_second_ = walk_.next(second_);
    }
    return true;
  }

  /// What take() will give; only after it, and only if this is true.
  __device__ bool has_next() const { return has_next_; }
  __device__ std::int32_t next_query() const { return next_.query; }

 private:
  __device__ void read_lengths() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const kernels::SparseKeys& keys = params_.keys[i];
      lengths_[i] = keys.topk;
      if (keys.lengths == nullptr) continue;
      lengths_[i] =
          keys.lengths[std::int64_t{next_.query / params_.q_len} * keys.length_stride_batch +
                       std::int64_t{next_.query % params_.q_len} * keys.length_stride_query];
    }
  }

  const kernels::SparseDecodeParams& params_;
  SparseWalk walk_;
  kernels::SparseWork next_ = {}, second_ = {};
  std::int32_t lengths_[2] = {};
  bool has_next_, has_second_;
};

}  // namespace tilewright::tile
