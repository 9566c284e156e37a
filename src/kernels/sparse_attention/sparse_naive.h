// Contract of the first rung of sparse attention: any head count, scalar arithmetic.
#pragma once

#include "kernels/sparse_attention/decode.h"

namespace tilewright::kernels {

/// Entries sparse_naive_bf16, _fp8, _nvfp4, _bf16_mla, _fp8_mla with SparseDecodeParams; grid
/// (groups, ceil(heads / kSparseNaiveHeads)), kSparseNaiveThreads, dynamic shared memory.
inline constexpr int kSparseNaiveHeads = 8;
inline constexpr int kSparseNaiveThreads = kSparseNaiveHeads * 32;
/// Elements from row to row in shared memory: one bank on from row to row.
constexpr int sparse_naive_pitch(int dims) {
  return dims + 8;
}

/// Of keys of so many numbers.
template <int Dims>
struct SparseNaiveShared {
  alignas(16) std::uint16_t keys[kSparseBlockKeys][sparse_naive_pitch(Dims)];
  alignas(16) std::uint16_t q[kSparseNaiveHeads][sparse_naive_pitch(Dims)];
  /// Of a head: scores, then weights.
  float scores[kSparseNaiveHeads][kSparseBlockKeys];
  float corrections[kSparseNaiveHeads], maxima[kSparseNaiveHeads], sums[kSparseNaiveHeads];
  bool is_valid[kSparseBlockKeys];
};
constexpr int sparse_naive_shared_bytes(KvFormat format) {
  return static_cast<int>(kv_is_mla(format) ? sizeof(SparseNaiveShared<kKvMlaDims>)
                                            : sizeof(SparseNaiveShared<kKvDims>));
}

}  // namespace tilewright::kernels
