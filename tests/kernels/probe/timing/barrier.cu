// targets: sm_90a
//
// Who waits for whom: mbarriers, named barriers, clusters, setmaxnreg, fences.
#include "kernels/probe/timing/measure.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"

namespace tilewright::kernels {
namespace {

constexpr int kTurns = 32;

__device__ void time_cta_barrier(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kTurns; ++i) __syncthreads();
  });
}

// Warpgroups in a ring: each waits for the one before it and releases the next.
__device__ void time_barrier_ring(const TimingProbeParams& params) {
  const std::uint32_t group = threadIdx.x / 128, groups = blockDim.x / 128;
  const std::uint32_t own = 1 + group, next = 1 + (group + 1) % groups;
  measure(params, [&](std::uint32_t) {
    for (int i = 0; i < kTurns; ++i) {
      if (group != 0 || i != 0) ptx::bar_sync(own, 256);
      if (group != groups - 1 || i != kTurns - 1) {
        asm volatile("bar.arrive %0, 256;" ::"r"(next) : "memory");
      }
    }
  });
}

// Barriers 0 (one arrival) and 1 (one from each consumer warp).
__device__ std::uint32_t init_pair(std::uint32_t consumers) {
  __shared__ std::uint64_t barriers[2];
  const std::uint32_t address = ptx::shared_address(barriers);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(address, 1);
    ptx::mbarrier_init(address + 8, consumers);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  return address;
}

// The first warp hands over to all others, and they hand back.
__device__ void time_hand_over(const TimingProbeParams& params) {
  const std::uint32_t barriers = init_pair(blockDim.x / 32 - 1);
  const bool is_elected = threadIdx.x % 32 == 0;
  measure(params, [&](std::uint32_t) {
    for (int i = 0; i < kTurns; ++i) {
      if (threadIdx.x < 32) {
        if (is_elected) ptx::mbarrier_arrive(barriers);
        ptx::mbarrier_wait_parity(barriers + 8, i & 1);
      } else {
        ptx::mbarrier_wait_parity(barriers, i & 1);
        if (is_elected) ptx::mbarrier_arrive(barriers + 8);
      }
    }
  });
}

__device__ void time_arrivals(const TimingProbeParams& params) {
  const std::uint32_t barriers = init_pair(kTurns);
  if (threadIdx.x != 0) return;
  for (std::uint32_t i = 0; i < params.iterations; ++i) {
    const std::uint32_t begin = read_clock();
#pragma unroll
    for (int n = 0; n < kTurns; ++n) ptx::mbarrier_arrive(barriers + 8);
    const std::uint32_t end = read_clock();
    ptx::mbarrier_wait_parity(barriers + 8, i & 1);
    std::uint32_t* const marks = marks_of(params, i, 2);
    marks[0] = begin;
    marks[1] = end;
  }
}

// Waits for a phase that is over.
__device__ void time_ready_waits(const TimingProbeParams& params) {
  const std::uint32_t barriers = init_pair(1);
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kTurns; ++i) ptx::mbarrier_wait_parity(barriers, 1);
  });
}

// One thread arrives, expecting no bytes, and waits for the phase that this ends.
__device__ void time_own_phases(const TimingProbeParams& params) {
  const std::uint32_t barriers = init_pair(1);
  if (threadIdx.x >= 32) return;
  measure(params, [&](std::uint32_t) {
    for (int i = 0; i < kTurns; ++i) {
      if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_tx(barriers, 0);
      ptx::mbarrier_wait_parity(barriers, i & 1);
    }
  });
}

// The same as time_hand_over(), to the next CTA of a cluster of two and back.
__device__ void time_remote_hand_over(const TimingProbeParams& params) {
  const std::uint32_t barriers = init_pair(1), rank = ptx::cluster_ctarank();
  const std::uint32_t theirs = ptx::mapa_shared_cluster(barriers, rank ^ 1);
  ptx::cluster_sync();
  measure(params, [&](std::uint32_t) {
    if (threadIdx.x >= 32) return;
    for (int i = 0; i < kTurns; ++i) {
      if (rank == 1) ptx::mbarrier_wait_parity_cluster(barriers, i & 1);
      if (threadIdx.x == 0) ptx::mbarrier_arrive_cluster(theirs);
      if (rank == 0) ptx::mbarrier_wait_parity_cluster(barriers, i & 1);
    }
  });
  ptx::cluster_sync();
}

template <bool IsRelaxed>
__device__ void time_cluster_barrier(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) {
    for (int i = 0; i < kTurns; ++i) {
      if (IsRelaxed) {
        asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                         : "memory");
      } else {
        ptx::cluster_sync();
      }
    }
  });
}

__device__ std::uint32_t remote_words() {
  __shared__ alignas(16) std::uint32_t words[4096];
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) words[i] = 0;
  ptx::cluster_sync();
  const std::uint32_t other = (ptx::cluster_ctarank() + 1) % ptx::cluster_nctarank();
  return ptx::mapa_shared_cluster(ptx::shared_address(words), other) + threadIdx.x % 32 * 16;
}

__device__ void time_remote_chain(const TimingProbeParams& params) {
  std::uint32_t address = remote_words();
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kTurns; ++i) address += ptx::ld_shared_cluster_u32(address);
    consume(params, address);
  });
  ptx::cluster_sync();
}

// 512 bytes of a warp and load.
__device__ void time_remote_loads(const TimingProbeParams& params) {
  const std::uint32_t address = remote_words();
  measure(params, [&](std::uint32_t) {
    float all = 0;
    float4 words[kTurns];
#pragma unroll
    for (int i = 0; i < kTurns; ++i) words[i] = ptx::ld_shared_cluster_v4_f32(address + i * 512);
#pragma unroll
    for (int i = 0; i < kTurns; ++i) all += words[i].x + words[i].y + words[i].z + words[i].w;
    consume(params, __float_as_uint(all));
  });
  ptx::cluster_sync();
}

// 512 bytes of a warp and store, to the next CTA or to the own shared memory by its address in the
// cluster. `IsSynced`: until they are there.
template <bool IsOwn, bool IsSynced>
__device__ void time_remote_stores(const TimingProbeParams& params) {
  const std::uint32_t other = remote_words();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t own = ptx::mapa_shared_cluster(other & 0xffffff, rank);
  const float x[4] = {1, 2, 3, __uint_as_float(params.word)};
  const std::uint32_t address = IsOwn ? own : other;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kTurns; ++i) ptx::st_shared_cluster_v4_f32(address + i * 512, x);
    if (IsSynced) ptx::cluster_sync();
  });
  ptx::cluster_sync();
}

// Registers are given back and taken again: free ones are there.
__device__ void time_set_registers(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      ptx::setmaxnreg_dec_sync_aligned<64>();
      ptx::setmaxnreg_inc_sync_aligned<128>();
    }
  });
}

// Fences after `Stores` stores of a thread to global memory.
template <int Stores>
__device__ void time_gpu_fence(const TimingProbeParams& params) {
  std::uint32_t* const to = params.memory + threadIdx.x;
  measure(params, [&](std::uint32_t i) {
#pragma unroll
    for (int n = 0; n < Stores; ++n) {
      asm volatile("st.global.u32 [%0], %1;" ::"l"(to + n * 4096), "r"(i) : "memory");
    }
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  });
}

__device__ void time_cta_fence(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kTurns; ++i) asm volatile("fence.acq_rel.cta;" ::: "memory");
  });
}

__device__ void time_cluster_fence(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) { asm volatile("fence.acq_rel.cluster;" ::: "memory"); });
}

}  // namespace
}  // namespace tilewright::kernels

TILEWRIGHT_TIMING_PROBE(cta_barrier, 1024, time_cta_barrier(params))
TILEWRIGHT_TIMING_PROBE(barrier_ring, 512, time_barrier_ring(params))
TILEWRIGHT_TIMING_PROBE(hand_over, 1024, time_hand_over(params))
TILEWRIGHT_TIMING_PROBE(arrivals, 32, time_arrivals(params))
TILEWRIGHT_TIMING_PROBE(ready_waits, 128, time_ready_waits(params))
TILEWRIGHT_TIMING_PROBE(own_phases, 32, time_own_phases(params))
TILEWRIGHT_TIMING_PROBE(remote_hand_over, 128, time_remote_hand_over(params))
TILEWRIGHT_TIMING_PROBE(cluster_barrier, 1024, time_cluster_barrier<false>(params))
TILEWRIGHT_TIMING_PROBE(cluster_barrier_relaxed, 1024, time_cluster_barrier<true>(params))
TILEWRIGHT_TIMING_PROBE(remote_chain, 1024, time_remote_chain(params))
TILEWRIGHT_TIMING_PROBE(remote_loads, 256, time_remote_loads(params))
TILEWRIGHT_TIMING_PROBE(remote_stores, 512, time_remote_stores<false, false>(params))
TILEWRIGHT_TIMING_PROBE(remote_stores_synced, 512, time_remote_stores<false, true>(params))
TILEWRIGHT_TIMING_PROBE(own_stores, 512, time_remote_stores<true, false>(params))
TILEWRIGHT_TIMING_PROBE(own_stores_synced, 512, time_remote_stores<true, true>(params))
TILEWRIGHT_TIMING_PROBE(gpu_fence, 1024, time_gpu_fence<0>(params))
TILEWRIGHT_TIMING_PROBE(gpu_fence_after_1_store, 1024, time_gpu_fence<1>(params))
TILEWRIGHT_TIMING_PROBE(gpu_fence_after_8_stores, 1024, time_gpu_fence<8>(params))
TILEWRIGHT_TIMING_PROBE(cta_fence, 1024, time_cta_fence(params))
TILEWRIGHT_TIMING_PROBE(cluster_fence, 1024, time_cluster_fence(params))

// ptxas keeps setmaxnreg where it knows how many registers a thread begins with.
extern "C" __global__ void __launch_bounds__(384, 1) timing_probe_set_registers(
    const __grid_constant__ tilewright::kernels::TimingProbeParams params) {
  tilewright::kernels::time_set_registers(params);
}
