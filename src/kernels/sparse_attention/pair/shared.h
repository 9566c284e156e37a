// Shared memory of a CTA of the pair, its barriers, and the columns of Tensor Memory.
#pragma once

#include "kernels/sparse_attention/pair/half_sums.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/cluster.h"
#include "tile/box.h"
#include "tile/ring.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kPairStages = kernels::SparsePairTile::kStages;
inline constexpr int kPairRowWarps = kernels::SparsePairTile::kRowWarps;
inline constexpr int kPairKeyWarps = kernels::SparsePairTile::kKeyWarps;
inline constexpr int kPairHalfDims = kKvDims / 2;  ///< of every key, in each CTA
inline constexpr int kPairBoxBytes = kernels::kSparseBlockKeys * kBoxRowBytes;
inline constexpr int kPairBoxes = kPairHalfDims / kBoxColumns;
using PairAt = RingPosition<kPairStages>;

/// Columns of Tensor Memory: two tiles of scores, of which the first half becomes weights, the
/// queries, results. Lanes 0 to 63 are the rows of the CTA: with sums over the first 256
/// dimensions, and those of queries and results. Lanes 64 to 127 are the same rows with the others.
inline constexpr int kPairColumns = 512, kPairScores = 64, kPairQueries = 2 * kPairScores,
                     kPairResults = 256;

struct SparsePairShared {
  std::uint8_t keys[kPairStages][kPairBoxes][kPairBoxBytes];  ///< lines of 64 dimensions, swizzled
  /// From each warp of rows to the one with the other half: sums of the keys that are that one's
  /// (half_sums.h); weights; maxima and sums.
  PairHalfSums sums[kPairRowWarps];
  uint4 weights[kPairRowWarps][4][32];
  float numbers[kPairRowWarps][2][32];
  std::uint64_t k_full[kPairStages];  ///< of the first CTA: all warps with keys of both
  std::uint64_t k_free[kPairStages];  ///< in both, by commit: their values are in the results
  std::uint64_t s_full[2];            ///< in both, by commit
  std::uint64_t p_ready[2];           ///< of the first CTA: all warps with rows of both
  std::uint64_t q_ready;              ///< likewise
  std::uint32_t tensor_memory;

  __device__ void initialise() {
    const auto init = [](std::uint64_t& barrier, std::uint32_t count) {
      ptx::mbarrier_init(ptx::shared_address(&barrier), count);
    };
    for (int i = 0; i < kPairStages; ++i) {
      init(k_full[i], 2 * kPairKeyWarps);
      init(k_free[i], 1);
    }
    for (int i = 0; i < 2; ++i) {
      init(s_full[i], 1);
      init(p_ready[i], 2 * kPairRowWarps);
    }
    init(q_ready, 2 * kPairRowWarps);
  }
};
static_assert(sizeof(SparsePairShared) <= kernels::SparsePairTile::shared_bytes());

/// All lanes of a warp: arrives at a barrier of the CTA that multiplies.
__device__ inline void arrive_at_leader(std::uint64_t& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    ptx::mbarrier_arrive_cluster(ptx::mapa_shared_cluster(ptx::shared_address(&barrier), 0));
}

/// The blocks of a piece of work.
__device__ inline std::int32_t blocks_of(const kernels::SparseDecodeParams& params,
                                         const kernels::SparseWork& work) {
  return max(min(work.end_block, SparseQuery(params, work.query).num_blocks()) - work.begin_block,
             0);
}

/// The values of step `step` are in the results; waits for that.
__device__ inline void wait_for_values(SparsePairShared& shared, std::int32_t step) {
  wait_for_pair(ptx::shared_address(&shared.k_free[step % kPairStages]), step / kPairStages & 1);
}

}  // namespace tilewright::tile
