// What the warps of a CTA do together before each has its own work.
#pragma once

#include "kernels/linear/block_scaled/stages.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "ptx/tcgen05_alloc.h"
#include "ptx/tcgen05_sync.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr std::uint32_t kMultiplyingWarp = 4, kLoadingWarp = 5;

template <BlockScaledConfig C>
__device__ void sync_all() {
  if constexpr (C.tile.cluster() > 1 || C.is_split) {
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }
}

template <BlockScaledConfig C>
__device__ void prepare(const BlockScaledGemmParams& params, BlockScaledShared<C>& shared,
                        std::uint32_t warp) {
  if (warp == kLoadingWarp && ptx::elect_sync()) {
    shared.initialise();
    ptx::fence_mbarrier_init_release_cluster();
    if (params.k != 0) {  // else there are no maps
      ptx::prefetch_tensormap(params.a_map);
      ptx::prefetch_tensormap(params.b_map);
      if constexpr (C.has_scales()) {
        ptx::prefetch_tensormap(params.a_scale_map);
        ptx::prefetch_tensormap(params.b_scale_map);
      }
    }
  }
  __syncwarp();
  if (warp == kMultiplyingWarp) {
    ptx::tcgen05_alloc<C.tile.ctas>(ptx::shared_address(&shared.tmem),
                                    BlockScaledColumns<C>::kColumns);
    ptx::tcgen05_relinquish_alloc_permit<C.tile.ctas>();
  }
  ptx::tcgen05_fence_before_thread_sync();
  sync_all<C>();
  ptx::tcgen05_fence_after_thread_sync();
  if constexpr (!C.has_scales()) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();  // the preceding kernel wrote x, and may have read d
  }
}

}  // namespace tilewright::tile
