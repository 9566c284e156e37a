// What all timing probes share: a clock on both sides of a piece of code.
#pragma once

#include "kernels/probe/timing/probe.h"

#include <cstdint>

namespace tilewright::kernels {

__device__ inline std::uint32_t read_clock() {
  std::uint32_t clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock)::"memory");
  return clock;
}

/// Waits for the value: nothing after this runs before it is there.
__device__ inline void consume(const TimingProbeParams& params, std::uint32_t value) {
  if (value == params.never) params.sink[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__device__ inline std::uint32_t* marks_of(const TimingProbeParams& params, std::uint32_t iteration,
                                          std::uint32_t num_marks) {
  const std::uint32_t warps = blockDim.x / 32, warp = threadIdx.x / 32;
  return params.times +
         ((std::uint64_t{blockIdx.x} * params.iterations + iteration) * warps + warp) * num_marks;
}

/// Times body(iteration) in every warp, after all have ended the last one. Two barriers: a warp
/// reads the clock while it still waits at the second, to which none comes before the first is
/// over.
template <class Body>
__device__ inline void measure(const TimingProbeParams& params, Body body) {
  for (std::uint32_t i = 0; i < params.iterations; ++i) {
    __syncthreads();
    __syncthreads();
    const std::uint32_t begin = read_clock();
    body(i);
    const std::uint32_t end = read_clock();
    if (threadIdx.x % 32 == 0) {
      std::uint32_t* const marks = marks_of(params, i, 2);
      marks[0] = begin;
      marks[1] = end;
    }
  }
}

}  // namespace tilewright::kernels

#define TILEWRIGHT_TIMING_PROBE(NAME, THREADS, ...)                                                \
  extern "C" __global__ void __launch_bounds__(THREADS)                                            \
      timing_probe_##NAME(const __grid_constant__ tilewright::kernels::TimingProbeParams params) { \
    tilewright::kernels::__VA_ARGS__;                                                              \
  }
