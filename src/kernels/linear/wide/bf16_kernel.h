// The kernel of sm90_wide_bf16.cu from its parts, and the macro that makes an entry of it.
#pragma once

#include "kernels/linear/wide/bf16_consumer.h"
#include "ptx/fence.h"
#include "tile/entry.h"

namespace tilewright::tile {

template <class C>
__device__ __forceinline__ void linear_wide_bf16(const kernels::WideBf16Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  const WideBf16Memory<C> memory(dynamic, params);
  const WideCluster cluster(params);
  if (threadIdx.x == 0) {
    ptx::prefetch_tensormap(params.x_map);
    for (std::uint32_t i = 0; i < memory.stages; ++i) {
      ptx::mbarrier_init(memory.full + i * 8, 1);
      ptx::mbarrier_init(memory.empty + i * 8, C::kConsumers / 32 * cluster.rows);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  WideSchedule<1> schedule(params, memory.table, C::kRows, cluster.rows);
  if (params.segments != nullptr) {
    ptx::griddepcontrol_wait();  // else the producer waits, when it has begun to load weights
    schedule.initialise();
  }
  const std::int32_t units = schedule.units();
  if (threadIdx.x == 0)
    *memory.deal = WideDeal::of(params, units, ceil_div(params.k, kernels::kWideBf16Step));
  __syncthreads();
  if (!cluster.is_alone()) ptx::cluster_sync();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    produce_wide_bf16(params, memory, schedule, cluster);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    WideBf16Consumer<C>(params, memory, cluster, index).run(schedule);
  }
  if (!cluster.is_alone()) ptx::cluster_sync();  // no CTA exits while others send
}

}  // namespace tilewright::tile

/// Entry linear_wide_bf16_NAME.
#define TILEWRIGHT_WIDE_BF16_OF(NAME, ...)                                             \
  TILEWRIGHT_KERNEL(linear_wide_bf16_##NAME, WideBf16Params,                           \
                    __launch_bounds__(tile::WideBf16Config<__VA_ARGS__>::kThreads, 1), \
                    tile::linear_wide_bf16<tile::WideBf16Config<__VA_ARGS__>>)
#define TILEWRIGHT_WIDE_BF16(NAME, FORMAT, ORDER, IS_TALL) \
  TILEWRIGHT_WIDE_BF16_OF(NAME, WeightFormat::FORMAT, WordOrder::ORDER, IS_TALL)
