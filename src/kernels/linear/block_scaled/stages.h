// What the warps of a block-scaled GEMM on Blackwell share: columns of Tensor Memory, shared memory
// and its barriers, the order of tiles and steps.
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "ptx/mbarrier.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::BlockScaledConfig;
using kernels::BlockScaledGemmParams;

/// Columns of Tensor Memory: two accumulators, then a ring of places for the scales of a step.
///
/// Accumulators of 256 columns share 128 of them: the epilogue reads those first, and the next
/// tile's products begin then. With as many places as stages a copy never overwrites scales in use,
/// because its stage was free; with fewer, one more barrier says so.
template <BlockScaledConfig C>
struct BlockScaledColumns {
  static constexpr int kColumns = 512;
  static constexpr int kShared = C.has_scales() && C.tile.n > 192 ? 128 : 0;
  static constexpr int kSecond = C.tile.n - kShared;
  static constexpr int kScaleBase = kSecond + C.tile.n;
  static constexpr int kAScaleColumns = 4, kBScaleColumns = 4 * C.scale_atoms_n();
  static constexpr int kPerStep = C.scale_atoms_k() * (kAScaleColumns + kBScaleColumns);
  static constexpr int kPlaces =
      C.has_scales() ? std::min((kColumns - kScaleBase) / std::max(kPerStep, 1), C.stages())
                     : C.stages();
  static_assert(kPlaces >= 2 && kScaleBase <= kColumns);

  static __device__ std::uint32_t accumulator(std::uint32_t index) {
    return index == 0 ? 0 : kSecond;
  }
};

/// Shared memory of a CTA, at kAlignment.
template <BlockScaledConfig C>
struct BlockScaledShared {
  static constexpr int kStages = C.stages();

  std::uint8_t stages[kStages][C.stage_bytes()];
  std::uint8_t staging[BlockScaledConfig::kStagingBytes];
  RingBarriers<kStages> ring;    // of stages
  RingBarriers<2> accumulators;  // full: multiplied; empty: read, as far as others need it
  std::uint32_t tmem;            // address of the columns

  /// One thread. A stage is full when the bytes of both CTAs of a pair are there (the leader's
  /// barrier counts them), free when the commits after its products have come, from every pair that
  /// it is loaded with. Each epilogue warp releases accumulators.
  __device__ void initialise() {
    ring.initialise(C.tile.pairs);
    accumulators.initialise(C.epilogue_warps() * C.tile.ctas);
  }
};

/// A place in the order of tiles: bands of 8 rows of tiles, in a band down the rows first, so that
/// tiles in flight at a time share rows of A and of B in the L2 cache.
struct BlockScaledTileAt {
  std::int32_t m, n;

  __device__ BlockScaledTileAt(const BlockScaledGemmParams& params, std::int32_t index) {
    constexpr std::int32_t kBand = 8;
    const std::int32_t band = index / (kBand * params.tiles_n);
    const std::int32_t inside = index % (kBand * params.tiles_n);
    const std::int32_t rows = min(kBand, params.tiles_m - band * kBand);
    m = band * kBand + inside % rows;
    n = inside / rows;
  }
};

/// Calls work(tile) for every tile of this cluster; there is one where K is split.
template <BlockScaledConfig C, class Work>
__device__ void for_each_tile(const BlockScaledGemmParams& params, Work&& work) {
  if constexpr (C.is_split) {
    work(BlockScaledTileAt(params, static_cast<std::int32_t>(ptx::clusterid_x())));
    return;
  }
  const std::int32_t total = params.tiles_m * params.tiles_n;
  const auto clusters = static_cast<std::int32_t>(gridDim.x) / C.tile.cluster();
  for (auto index = static_cast<std::int32_t>(blockIdx.x) / C.tile.cluster(); index < total;
       index += clusters) {
    work(BlockScaledTileAt(params, index));
  }
}

/// The steps of K that this CTA does.
struct BlockScaledSteps {
  std::int32_t begin, end;
};
template <BlockScaledConfig C>
__device__ BlockScaledSteps steps_of(const BlockScaledGemmParams& params) {
  const std::int32_t steps = (params.k + C.step_k() - 1) / C.step_k();
  if constexpr (!C.is_split) return {0, steps};
  const auto splits = static_cast<std::int32_t>(ptx::cluster_nctarank());
  const auto split = static_cast<std::int32_t>(ptx::cluster_ctarank());
  return {steps * split / splits, steps * (split + 1) / splits};
}

/// A wait at a barrier at which CTAs of the whole pair arrive.
template <BlockScaledConfig C>
__device__ void wait_pair(std::uint32_t barrier, std::uint32_t parity) {
  if constexpr (C.tile.ctas == 2) {
    ptx::mbarrier_wait_parity_cluster(barrier, parity);
  } else {
    ptx::mbarrier_wait_parity(barrier, parity);
  }
}

/// Rank in the cluster, that of the pair's leader, and addresses in its memory.
template <BlockScaledConfig C>
__device__ std::uint32_t rank_in_cluster() {
  return C.tile.cluster() > 1 ? ptx::cluster_ctarank() : 0;
}
__device__ inline std::uint32_t leader_of(std::uint32_t rank) {
  return rank & ~1u;
}
template <BlockScaledConfig C>
__device__ std::uint32_t in_leader(std::uint32_t address, std::uint32_t rank) {
  return C.tile.ctas == 2 ? ptx::mapa_shared_cluster(address, leader_of(rank)) : address;
}

/// One stage of shared memory: A, B, scales of A, scales of B (atoms along K, then along N).
template <BlockScaledConfig C>
struct BlockScaledStage {
  static constexpr int kABytes = 128 * kernels::kBlockScaledStepBytes;
  static constexpr int kBBytes = C.b_rows() * kernels::kBlockScaledStepBytes;
  static constexpr int kAtomBytes = 512;
  static constexpr int kAtomsK = C.scale_atoms_k(), kAtomsN = C.scale_atoms_n();
  /// What copies announce: packed elements count as they lie in global memory.
  static constexpr int kCopiedBytes =
      kABytes + (C.unpacks_weight() ? kBBytes / 2 : kBBytes) + (1 + kAtomsN) * kAtomsK * kAtomBytes;

  std::uint32_t a;

  static __device__ std::uint32_t copied_bytes(const BlockScaledGemmParams& params) {
    if constexpr (!C.is_split) return kCopiedBytes;
    return kABytes + params.tile_columns * kernels::kBlockScaledStepBytes;
  }
  __device__ std::uint32_t b() const { return a + kABytes; }
  __device__ std::uint32_t a_scales() const { return b() + kBBytes; }
  __device__ std::uint32_t b_scales() const { return a_scales() + kAtomsK * kAtomBytes; }
};

}  // namespace tilewright::tile
