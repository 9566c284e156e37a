// The pieces of work of a group, each with its query's lengths.
#pragma once

#include "kernels/sparse_attention/work.h"

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
  __device__ SparseBlock block(std::int32_t number) const { return sparse_block(lengths, number); }
};

class SparsePieces {
 public:
  __device__ SparsePieces(const kernels::SparseDecodeParams& params, std::int32_t group)
      : params_(params), at_(group), end_(params.batch * params.q_len) {
    if (params.work == nullptr) return;
    at_ = params.work_begin[group];
    end_ = params.work_begin[group + 1];
  }

  /// False at the end.
  __device__ bool take(SparsePiece& piece) {
    if (!has_next()) return false;
    const kernels::SparseWork work =
        params_.work != nullptr ? params_.work[at_] : kernels::SparseWork{at_, 0, 1 << 30, -1};
    at_ += params_.work != nullptr ? 1 : params_.groups;
    piece.query = work.query;
    piece.begin = work.begin_block;
    piece.partial = work.partial;
    const SparseQuery query(params_, work.query);
    piece.lengths[0] = query.lengths[0];
    piece.lengths[1] = query.lengths[1];
    piece.end = min(work.end_block, query.num_blocks());
    return true;
  }

  /// What take() will give.
  __device__ bool has_next() const { return at_ < end_; }
  __device__ std::int32_t next_query() const {
    return params_.work != nullptr ? params_.work[at_].query : at_;
  }

 private:
  const kernels::SparseDecodeParams& params_;
  std::int32_t at_, end_;
};

}  // namespace tilewright::tile
