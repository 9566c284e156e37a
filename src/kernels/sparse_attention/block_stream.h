// The blocks that a group of CTAs goes through.
#pragma once

#include "kernels/sparse_attention/pieces.h"

#include <cstdint>

namespace tilewright::tile {

/// What stands where no row is named: zeros of any format.
template <int Dims>
static __device__ const uint4 kSparseNoRow[Dims * 2 / 16] = {};

/// The blocks of a group's pieces, one after another.
class SparseStream {
 public:
  __device__ SparseStream(const kernels::SparseDecodeParams& params, std::int32_t group)
      : pieces_(params, group) {}

  /// False at the end.
  __device__ bool next(SparseBlock& block, std::int32_t& query) {
    while (at_ >= piece_.end) {
      if (!pieces_.take(piece_)) return false;
      at_ = piece_.begin;
    }
    block = piece_.block(at_++);
    query = piece_.query;
    return true;
  }

 private:
  SparsePieces pieces_;
  SparsePiece piece_ = {};
  std::int32_t at_ = 0;
};

}  // namespace tilewright::tile
