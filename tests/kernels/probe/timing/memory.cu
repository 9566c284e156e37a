// targets: sm_90a
//
// L2 and HBM: one load after the other, streams, atomics; and the times of CTAs that follow each
// other on an SM.
#include "kernels/probe/timing/measure.h"
#include "ptx/grid_dependency.h"

#include <cooperative_groups.h>

namespace tilewright::kernels {
namespace {

__device__ std::uint32_t load_word(const std::uint32_t* from) {
  std::uint32_t word;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
  return word;
}

__device__ uint4 load_words(const std::uint32_t* from) {
  uint4 words;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
  return words;
}

// One load a turn, `stride` bytes after the last one, each after the last one's result. The turns
// go round in memory.
__device__ void time_loads(const TimingProbeParams& params) {
  if (threadIdx.x != 0) return;
  std::uint32_t zero = 0;
  for (std::uint32_t i = 0; i < params.iterations; ++i) {
    const std::uint64_t at = std::uint64_t{i} * params.stride % params.memory_bytes / 4;
    const std::uint32_t* const from = params.memory + at + zero;
    consume(params, static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(from)));
    const std::uint32_t begin = read_clock();
    zero = load_word(from);
    consume(params, zero);
    const std::uint32_t end = read_clock();
    std::uint32_t* const marks = marks_of(params, i, 2);
    marks[0] = begin;
    marks[1] = end;
  }
}

// 512 bytes of a warp and load, `count` loads of a thread; all CTAs together read memory from its
// beginning, again and again. Timed on the clock of each SM, too.
__device__ void stream_loads(const TimingProbeParams& params) {
  const std::uint64_t words = params.memory_bytes / 4, threads = gridDim.x * blockDim.x;
  std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4 % words;
  std::uint32_t all = 0;
  measure(params, [&](std::uint32_t) {
    for (std::uint32_t i = 0; i < params.count; i += 8) {
      uint4 loaded[8];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        loaded[n] = load_words(params.memory + at);
        at += threads * 4;
        if (at >= words) at %= words;
      }
#pragma unroll
      for (int n = 0; n < 8; ++n) all |= loaded[n].x | loaded[n].y | loaded[n].z | loaded[n].w;
    }
    consume(params, all);
  });
}

__device__ void stream_stores(const TimingProbeParams& params) {
  const std::uint64_t words = params.memory_bytes / 4, threads = gridDim.x * blockDim.x;
  std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4 % words;
  measure(params, [&](std::uint32_t) {
    for (std::uint32_t i = 0; i < params.count; ++i) {
      asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(params.memory + at), "r"(0)
                   : "memory");
      at += threads * 4;
      if (at >= words) at %= words;
    }
  });
}

constexpr int kAtomics = 16;

__device__ void time_atomic_chain(const TimingProbeParams& params) {
  std::uint32_t zero = 0;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kAtomics; ++i) {
      asm volatile("atom.global.or.b32 %0, [%1], %2;"
                   : "=r"(zero)
                   : "l"(params.memory + zero), "r"(zero)
                   : "memory");
    }
    consume(params, zero);
  });
}

// `count` additions of each thread: to one word (stride 0), to words `stride` bytes apart.
template <bool IsRead>
__device__ void stream_atomics(const TimingProbeParams& params) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint32_t* const to = params.memory + thread * params.stride % params.memory_bytes / 4;
  measure(params, [&](std::uint32_t) {
    for (std::uint32_t i = 0; i < params.count; ++i) {
      if (IsRead) {
        std::uint32_t before;
        asm volatile("atom.global.add.u32 %0, [%1], 0;" : "=r"(before) : "l"(to) : "memory");
        consume(params, before);
      } else {
        asm volatile("red.global.add.u32 [%0], 0;" ::"l"(to) : "memory");
      }
    }
  });
}

// The SM, and begin and end by its clock; it works for `count` clocks.
__device__ void time_cta(const TimingProbeParams& params) {
  const std::uint32_t begin = read_clock();
  std::uint32_t sm, end;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  __syncthreads();
  do {
    end = read_clock();
  } while (end - begin < params.count);
  if (threadIdx.x != 0) return;
  std::uint32_t* const marks = params.times + std::uint64_t{blockIdx.x} * 3;
  marks[0] = sm;
  marks[1] = begin;
  marks[2] = read_clock();
}

// Works for `stride` clocks before it waits for the launch before, and for `count` behind that.
__device__ void work_around_wait(const TimingProbeParams& params) {
  const auto work = [](std::uint32_t clocks) {
    const std::uint32_t begin = read_clock();
    while (read_clock() - begin < clocks) {
    }
  };
  ptx::griddepcontrol_launch_dependents();
  work(params.stride);
  ptx::griddepcontrol_wait();
  work(params.count);
}

// The same, and where: the SM of each CTA.
__device__ void place_ctas(const TimingProbeParams& params) {
  std::uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) params.times[blockIdx.x] = sm;
  work_around_wait(params);
}

__device__ void depend() {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
}

// `count` barriers of the grid.
__device__ void meet(const TimingProbeParams& params) {
  for (std::uint32_t i = 0; i < params.count; ++i) cooperative_groups::this_grid().sync();
}

}  // namespace
}  // namespace tilewright::kernels

TILEWRIGHT_TIMING_PROBE(memory_loads, 32, time_loads(params))
TILEWRIGHT_TIMING_PROBE(memory_stream, 1024, stream_loads(params))
TILEWRIGHT_TIMING_PROBE(memory_stores, 1024, stream_stores(params))
TILEWRIGHT_TIMING_PROBE(atomic_chain, 32, time_atomic_chain(params))
TILEWRIGHT_TIMING_PROBE(atomics, 1024, stream_atomics<true>(params))
TILEWRIGHT_TIMING_PROBE(reductions, 1024, stream_atomics<false>(params))
TILEWRIGHT_TIMING_PROBE(cta_times, 1024, time_cta(params))
TILEWRIGHT_TIMING_PROBE(work_around_wait, 1024, work_around_wait(params))
TILEWRIGHT_TIMING_PROBE(place_ctas, 1024, place_ctas(params))
TILEWRIGHT_TIMING_PROBE(empty, 1024, consume(params, 0))
TILEWRIGHT_TIMING_PROBE(empty_dependent, 1024, depend())
TILEWRIGHT_TIMING_PROBE(grid_barriers, 1024, meet(params))
