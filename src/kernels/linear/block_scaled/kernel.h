// The body of a block-scaled GEMM on Blackwell: which warp does what.
#pragma once

#include "kernels/linear/block_scaled/cta.h"
#include "kernels/linear/block_scaled/epilogue.h"
#include "kernels/linear/block_scaled/loader.h"
#include "kernels/linear/block_scaled/multiplier.h"
#include "tile/entry.h"

namespace tilewright::tile {

template <BlockScaledConfig C, class Output, class Step>
__device__ void block_scaled_gemm(const BlockScaledGemmParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<BlockScaledShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C.shared_bytes());
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  prepare<C>(params, shared, warp);
  const std::uint32_t tmem = shared.tmem, rank = rank_in_cluster<C>();
  if (warp == kLoadingWarp) {
    if (ptx::elect_sync()) BlockScaledLoader<C>{params, shared, rank}.run();
    __syncwarp();
  } else if (warp == kMultiplyingWarp) {
    if (rank == leader_of(rank))
      BlockScaledMultiplier<C>{params, shared, ptx::elect_sync(), tmem, rank}.run();
  } else {
    BlockScaledEpilogue<C, Output, Step>{{params, shared, tmem, rank, warp}}.run();
  }
  // A cluster ends together: each CTA's memory is used by the others.
  ptx::tcgen05_fence_before_thread_sync();
  sync_all<C>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMultiplyingWarp)
    ptx::tcgen05_dealloc<C.tile.ctas>(tmem, BlockScaledColumns<C>::kColumns);
}

}  // namespace tilewright::tile

/// Entry NAME with tile INDEX of kBlockScaledTiles, whose cluster must be a number: CTAS. Between
/// product and result is a STEP (step.h): params.n counts columns of the result, tiles_n those of
/// the product.
#define TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(NAME, KIND, OUTPUT, STEP, INDEX, CTAS)                 \
  static_assert(kBlockScaledTiles[INDEX].cluster() == CTAS);                                      \
  TILEWRIGHT_KERNEL(                                                                              \
      NAME, BlockScaledGemmParams,                                                                \
      __cluster_dims__(CTAS, 1, 1) __launch_bounds__(kBlockScaledThreads, 1),                     \
      tile::block_scaled_gemm<BlockScaledConfig{BlockScaledKind::KIND, kBlockScaledTiles[INDEX]}, \
                              tile::OUTPUT, STEP>)
#define TILEWRIGHT_BLOCK_SCALED(NAME, KIND, OUTPUT, INDEX, CTAS) \
  TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(NAME, KIND, OUTPUT, tile::KeepColumns, INDEX, CTAS)
/// The entries of a kind: every output and tile.
#define TILEWRIGHT_BLOCK_SCALED_ENTRIES(STEM, KIND, NAME, OUTPUT)        \
  TILEWRIGHT_BLOCK_SCALED(STEM##_##NAME##_1cta_n64, KIND, OUTPUT, 0, 1)  \
  TILEWRIGHT_BLOCK_SCALED(STEM##_##NAME##_1cta_n128, KIND, OUTPUT, 1, 1) \
  TILEWRIGHT_BLOCK_SCALED(STEM##_##NAME##_2cta_n192, KIND, OUTPUT, 2, 2) \
  TILEWRIGHT_BLOCK_SCALED(STEM##_##NAME##_2cta_n256, KIND, OUTPUT, 3, 2) \
  TILEWRIGHT_BLOCK_SCALED(STEM##_##NAME##_4cta_n256, KIND, OUTPUT, 4, 4)
