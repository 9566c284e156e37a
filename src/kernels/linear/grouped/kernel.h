// The body of a grouped product on Blackwell: which warp does what.
#pragma once

#include "kernels/linear/block_scaled/cta.h"
#include "kernels/linear/grouped/epilogue.h"
#include "kernels/linear/grouped/few_rows.h"
#include "tile/entry.h"

#include <type_traits>

namespace tilewright::tile {

template <BlockScaledConfig C, class Output>
__device__ void grouped_gemm(const MoeGroupedParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<GroupedShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= kernels::grouped_shared_bytes(C));
  static_assert(kernels::grouped_shared_bytes(C) <= BlockScaledConfig::kLargestCtaBytes);
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if constexpr (!C.is_swapped) clear_rows<C>(shared.gemm);
  prepare<C>(params.gemm, shared.gemm, warp);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (warp == 0) shared.table.fill(params, C.tile_m());
  __syncthreads();
  const std::uint32_t tmem = shared.gemm.tmem, rank = rank_in_cluster<C>();
  if (warp == kLoadingWarp) {
    if (ptx::elect_sync()) GroupedLoader<C>{params, shared, rank}.run();
    __syncwarp();
  } else if (warp == kMultiplyingWarp) {
    if (rank == leader_of(rank)) {
      GroupedMultiplier<C>{
          {params.gemm, shared.gemm, ptx::elect_sync(), tmem, rank}, params, shared.table}
          .run();
    }
  } else {
    using Epilogue =
        std::conditional_t<C.is_swapped, FewRowsEpilogue<C, Output>, GroupedEpilogue<C, Output>>;
    Epilogue{{params.gemm, shared.gemm, tmem, rank, warp}, params, shared.table}.run();
  }
  // A cluster ends together: each CTA's memory is used by the other.
  ptx::tcgen05_fence_before_thread_sync();
  sync_all<C>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMultiplyingWarp)
    ptx::tcgen05_dealloc<C.tile.ctas>(tmem, BlockScaledColumns<C>::kColumns);
}

}  // namespace tilewright::tile

/// The entries of a kind of operands: both products, both tiles.
#define TILEWRIGHT_MOE_GROUPED(NAME, KIND, OUTPUT, IS_FEW, CTAS)                            \
  static_assert(grouped_config(BlockScaledKind::KIND, IS_FEW).tile.cluster() == CTAS);      \
  TILEWRIGHT_KERNEL(NAME, MoeGroupedParams,                                                 \
                    __cluster_dims__(CTAS, 1, 1) __launch_bounds__(kBlockScaledThreads, 1), \
                    tile::grouped_gemm<grouped_config(BlockScaledKind::KIND, IS_FEW), OUTPUT>)
#define TILEWRIGHT_MOE_GROUPED_ENTRIES(STEM, KIND, FORMAT)                                        \
  TILEWRIGHT_MOE_GROUPED(STEM##_gate_up_few, KIND, tile::HiddenOutput<tile::FORMAT>, true, 1)     \
  TILEWRIGHT_MOE_GROUPED(STEM##_gate_up_2cta_n256, KIND, tile::HiddenOutput<tile::FORMAT>, false, \
                         2)                                                                       \
  TILEWRIGHT_MOE_GROUPED(STEM##_down_few, KIND, tile::RowsOutput, true, 1)                        \
  TILEWRIGHT_MOE_GROUPED(STEM##_down_2cta_n256, KIND, tile::RowsOutput, false, 2)
