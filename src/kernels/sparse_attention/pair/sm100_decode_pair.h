// Sparse decode by pairs of CTAs on Blackwell, see the .cu.
#pragma once

#include "kernels/sparse_attention/decode.h"
#include "kernels/sparse_attention/sparse_schedule.h"

namespace tilewright::kernels {

/// A group is a cluster of two CTAs. Without masks each has half of the heads, at most 64, of every
/// query. With them, each has all heads, at most 64, of one of two neighbouring queries: what
/// `decode` says of a query is then said of a pair of them. `decode.q_len` counts pairs, strides
/// from query to query lead from pair to pair, its keys are the unions of union_lists.h, and
/// partial results have twice the heads, those of the second query behind those of the first.
struct SparsePairParams {
  SparseDecodeParams decode;
  const std::uint8_t* masks[2];  ///< of the unions; null: one query at a time
  /// From the first query of a pair to the second, in elements.
  std::int64_t q_step, out_step, lse_step;
  std::int32_t queries;  ///< of a sequence: the last pair of an odd number has one
};

/// Entries sparse_decode_pair_fp8, _nvfp4 and _bf16, with SparsePairParams; one group for two SMs.
struct SparsePairTile {
  static constexpr int kRows = 64;   ///< heads of a CTA
  static constexpr int kStages = 4;  ///< blocks of 64 keys, half of their dimensions
  static constexpr int kRowWarps = 4, kKeyWarps = 8;
  static constexpr int kThreads = (kRowWarps + kKeyWarps + 1) * 32;

  /// Keys; half sums and weights that two threads of a row exchange; barriers.
  static constexpr int shared_bytes() {
    return kStages * kSparseBlockKeys * kKvDims + kRows * kSparseBlockKeys * 6 + 2048;
  }
};

/// Entry sparse_combine_pairs: sparse_combine (sparse_schedule.h) for masks; grid (groups, ceil(2 *
/// heads / kSparseCombineHeads)).
struct SparsePairCombineParams {
  SparsePairParams pair;
  const SparseMerge* merges;  ///< [groups]
};

}  // namespace tilewright::kernels
