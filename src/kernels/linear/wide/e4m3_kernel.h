// The linear layer for many FP8 tokens from its parts, and the macro that makes an entry of it.
// What it is: sm90_wide_e4m3.cu.
#pragma once

#include "kernels/linear/wide/e4m3_consumer.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::tile {

template <class C>
__device__ void wide_e4m3(const kernels::WideE4m3Params& params) {
  extern __shared__ std::uint8_t dynamic[];
  __shared__ WideE4m3Shared<C> shared;
  const std::uint32_t stages = (ptx::shared_address(dynamic) + 1023) / 1024 * 1024;
  const std::uint32_t staging = stages + C::kStages * C::kVariant.stage_bytes();
  const std::uint32_t table = staging + 2 * kernels::kWideStagingBytes;
  if (threadIdx.x == 0) {
    shared.ring.initialise(C::kConsumerWarps);
    ptx::mbarrier_init(ptx::shared_address(&shared.ring_idle), C::kConsumerWarps);
    ptx::mbarrier_init(ptx::shared_address(&shared.sums_sent), C::kConsumerWarps * 32);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if constexpr (C::kIsFp4) fill_fold_table(table, params.format);
  ptx::griddepcontrol_wait();
  const WideE4m3Problem<C> problem(params);
  WideE4m3Schedule schedule(params, shared.first_units, C::kVariant.kRows, 1);
  schedule.initialise();
  __syncthreads();
  if (problem.splits > 1) ptx::cluster_sync();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    if (threadIdx.x < 32 && ptx::elect_sync())
      produce_wide_e4m3<C>(problem, shared, schedule, stages);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32 - 4);
    const Ring<C::kStages> ring(shared.ring);
    WideE4m3Consumer<C> consumer{
        problem, shared, ring,   {problem, ring, stages, table + lane % 16 * 8, warp, lane},
        {},      {},     stages, staging + index * kernels::kWideStagingBytes,
        index,   lane};
    consumer.run(schedule);
  }
  if (problem.splits > 1) {
    __syncwarp();
    ptx::cluster_sync();
  }
}

}  // namespace tilewright::tile

/// Entry linear_wide_e4m3_NAME, number INDEX of kWideE4m3Variants.
#define TILEWRIGHT_WIDE_E4M3(NAME, INDEX)                                               \
  TILEWRIGHT_KERNEL(linear_wide_e4m3_##NAME, WideE4m3Params, __launch_bounds__(384, 1), \
                    tile::wide_e4m3<tile::WideE4m3Config<INDEX>>)
