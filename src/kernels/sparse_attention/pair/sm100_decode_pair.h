// Sparse decode by pairs of CTAs on Blackwell, see the .cu.
#pragma once

#include "kernels/sparse_attention/decode.h"

namespace tilewright::kernels {

/// A group is a cluster of two CTAs of 64 rows. Without masks each has half of the heads of every
/// query. With them rows are those of a tile of 2 * `queries_of_cta` neighbouring queries, half of
/// them in the first CTA, with 64 / queries_of_cta rows each: at least the number of heads. What
/// `decode` says of a query is then said of a tile: `decode.q_len` counts tiles, strides from query
/// to query lead from tile to tile, keys are the unions of union_lists.h, and partial results have
/// the heads of all queries of the tile, one query's behind the other's.
struct SparsePairParams {
  SparseDecodeParams decode;
  const std::uint16_t* masks[2];            ///< of the unions; null: one query at a time
  std::int32_t queries_of_cta;              ///< 1, 2, 4, 8
  std::int32_t queries;                     ///< of a sequence: not all of its last tile may exist
  std::int64_t q_step, out_step, lse_step;  ///< from a query to the next, in elements
};

/// Entries sparse_decode_pair_fp8, _nvfp4 and _bf16, and for rows of 576 sparse_decode_pair_fp8_mla
/// and _bf16_mla, with SparsePairParams; one group for two SMs.
struct SparsePairTile {
  static constexpr int kRows = 64;   ///< heads of a CTA
  static constexpr int kStages = 4;  ///< blocks of 64 keys, half of their dimensions
  static constexpr int kRowWarps = 4, kKeyWarps = 8;
  static constexpr int kThreads = (kRowWarps + kKeyWarps + 1) * 32;

  /// Keys of `dims` numbers; half sums and weights that two threads of a row exchange; barriers.
  static constexpr int shared_bytes(int dims) {
    return kStages * kSparseBlockKeys * dims + kRows * kSparseBlockKeys * 6 + 2048;
  }
};

}  // namespace tilewright::kernels
