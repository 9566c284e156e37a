// Contract of the first rung of sparse attention: any head count, scalar arithmetic.
#pragma once

#include "kernels/sparse_attention/decode.h"

namespace tilewright::kernels {

/// Entries sparse_naive_bf16, _fp8, _nvfp4 with SparseDecodeParams; grid (groups,
/// ceil(heads / kSparseNaiveHeads)), kSparseNaiveThreads, dynamic shared memory.
inline constexpr int kSparseNaiveHeads = 8;
inline constexpr int kSparseNaiveThreads = kSparseNaiveHeads * 32;
/// Elements from row to row in shared memory: one bank on from row to row.
inline constexpr int kSparseNaivePitch = kKvDims + 8;

struct SparseNaiveShared {
  alignas(16) std::uint16_t keys[kSparseBlockKeys][kSparseNaivePitch];
  alignas(16) std::uint16_t q[kSparseNaiveHeads][kSparseNaivePitch];
  /// Of a head: scores, then weights.
  float scores[kSparseNaiveHeads][kSparseBlockKeys];
  float corrections[kSparseNaiveHeads], maxima[kSparseNaiveHeads], sums[kSparseNaiveHeads];
  bool is_valid[kSparseBlockKeys];
};
inline constexpr int kSparseNaiveSharedBytes = sizeof(SparseNaiveShared);

}  // namespace tilewright::kernels
