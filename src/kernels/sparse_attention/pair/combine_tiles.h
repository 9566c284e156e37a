// Merging of partial results of tiles of queries, see the .cu.
#pragma once

#include "kernels/sparse_attention/pair/sm100_decode_pair.h"
#include "kernels/sparse_attention/sparse_schedule.h"

namespace tilewright::kernels {

/// Entry sparse_combine_tiles: sparse_combine (sparse_schedule.h) for tiles of queries; grid
/// (groups, ceil(2 * queries_of_cta * heads / kSparseCombineHeads)).
struct SparseTileCombineParams {
  SparsePairParams pair;
  const SparseMerge* merges;  ///< [groups]
};

}  // namespace tilewright::kernels
