// targets: sm_90a
//
// What the clock falls to: units that work for some time on every SM, on operands whose bits are
// drawn, and the clock of the SM beside the device's time.
#include "kernels/probe/timing/arithmetic.h"
#include "kernels/probe/timing/measure.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"

namespace tilewright::kernels {
namespace {

using ptx::wgmma_mma_async;

__device__ std::uint32_t read_time() {
  std::uint32_t time;
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(time)::"memory");
  return time;
}

// Four marks of a CTA's first thread: clock and time, before and after.
template <class Body>
__device__ void measure_clock(const TimingProbeParams& params, Body body) {
  __syncthreads();
  const std::uint32_t begin = read_clock(), begin_time = read_time();
  body();
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint32_t* const marks = params.times + std::uint64_t{blockIdx.x} * (blockDim.x / 32) * 4;
  marks[0] = begin;
  marks[1] = begin_time;
  marks[2] = read_clock();
  marks[3] = read_time();
}

__device__ std::uint32_t drawn_bits(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352dU;
  x = (x ^ x >> 15) * 0x846ca68bU;
  return x ^ x >> 16;
}

// Two numbers of bf16, or four of e4m3, of either sign, from 1/2 to 2; zeros if the probe's word is
// zero.
__device__ std::uint32_t drawn_numbers(const TimingProbeParams& params, std::uint32_t i,
                                       bool is_fp8) {
  if (params.word == 0) return 0;
  const std::uint32_t bits = drawn_bits(i + blockIdx.x * 65536);
  return is_fp8 ? (bits & 0x8f8f8f8fU) | 0x30303030U : (bits & 0x80ff80ffU) | 0x3f003f00U;
}

// 64 KiB of operands. As all numbers are drawn alike, any arrangement is that of some matrix.
__device__ std::uint64_t drawn_matrix(const TimingProbeParams& params, bool is_fp8) {
  extern __shared__ std::uint32_t dynamic[];
  const std::uint32_t start = ptx::shared_address(dynamic), base = (start + 1023) / 1024 * 1024;
  for (std::uint32_t i = threadIdx.x; i < 16384; i += blockDim.x) {
    dynamic[(base - start) / 4 + i] = drawn_numbers(params, i, is_fp8);
  }
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kRows = std::uint64_t{64} << 32;
  return kSwizzle128 | kRows | std::uint64_t{1} << 16 | base >> 4;
}

// The i-th of four slices of each operand, in addresses of 16 bytes.
__device__ std::uint64_t slice(std::uint64_t matrix, int i) {
  return matrix + 1024 * (i % 4);
}

struct Shared16 {
  static constexpr bool kIsFp8 = false;
  static __device__ void issue(float (&d)[64], std::uint64_t matrix, const std::uint32_t*, int i) {
    wgmma_mma_async<128>::k16_f32_bf16_bf16<0, 0>(d, slice(matrix, i), slice(matrix, i + 1), true);
  }
};
struct Registers16 {
  static constexpr bool kIsFp8 = false;
  static __device__ void issue(float (&d)[64], std::uint64_t matrix, const std::uint32_t* a,
                               int i) {
    const std::uint32_t words[4] = {a[4 * (i % 4)], a[4 * (i % 4) + 1], a[4 * (i % 4) + 2],
                                    a[4 * (i % 4) + 3]};
    wgmma_mma_async<128>::k16_f32_bf16_bf16<0>(d, words, slice(matrix, i + 1), true);
  }
};
struct Shared8 {
  static constexpr bool kIsFp8 = true;
  static __device__ void issue(float (&d)[64], std::uint64_t matrix, const std::uint32_t*, int i) {
    wgmma_mma_async<128>::k32_f32_e4m3_e4m3(d, slice(matrix, i), slice(matrix, i + 1), true);
  }
};

// `count` groups of eight products of a warpgroup, with a sleep of `stride` nanoseconds after each.
template <class Form>
__device__ void run_products(const TimingProbeParams& params, std::uint64_t matrix) {
  float d[64] = {};
  std::uint32_t a[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) a[i] = drawn_numbers(params, threadIdx.x * 16 + i, false);
#pragma unroll 1
  for (std::uint32_t round = 0; round < params.count; ++round) {
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int i = 0; i < 8; ++i) Form::issue(d, matrix, a, i);
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
    if (params.stride != 0) __nanosleep(params.stride);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) sum += d[i];
  consume(params, __float_as_uint(sum));
}

template <class Form>
__device__ void power_of_products(const TimingProbeParams& params) {
  const std::uint64_t matrix = drawn_matrix(params, Form::kIsFp8);
  measure_clock(params, [&] { run_products<Form>(params, matrix); });
}

// 256 steps a round.
template <class Step>
__device__ void run_arithmetic(const TimingProbeParams& params) {
  StepOperands operands = step_operands(params);
  std::uint32_t x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = drawn_numbers(params, threadIdx.x * 16 + i, false);
#pragma unroll 1
  for (std::uint32_t round = 0; round < params.count; ++round) {
    run_steps<Step, 16, 256>(x, operands);
    if (params.stride != 0) __nanosleep(params.stride);
  }
  consume(params, mixed(x));
}

template <class Step>
__device__ void power_of_arithmetic(const TimingProbeParams& params) {
  measure_clock(params, [&] { run_arithmetic<Step>(params); });
}

// Products of two warpgroups, and steps of a third.
template <class Step>
__device__ void power_of_both(const TimingProbeParams& params) {
  const std::uint64_t matrix = drawn_matrix(params, false);
  measure_clock(params, [&] {
    if (threadIdx.x < 256) {
      run_products<Registers16>(params, matrix);
    } else {
      run_arithmetic<Step>(params);
    }
  });
}

// 16 loads of 16 bytes a thread and round.
__device__ void power_of_shared(const TimingProbeParams& params) {
  drawn_matrix(params, false);
  extern __shared__ std::uint32_t dynamic[];
  const std::uint32_t base = ptx::shared_address(dynamic);
  std::uint32_t all = 0;
  measure_clock(params, [&] {
#pragma unroll 1
    for (std::uint32_t round = 0; round < params.count; ++round) {
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        uint4 x;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(base + (threadIdx.x + i * 128) % 4096 * 16));
        all ^= x.x ^ x.y ^ x.z ^ x.w;
      }
    }
    consume(params, all);
  });
}

// All CTAs together read memory from its beginning; `count` times eight loads of 16 bytes a thread.
__device__ void power_of_memory(const TimingProbeParams& params) {
  const std::uint64_t words = params.memory_bytes / 4, threads = gridDim.x * blockDim.x;
  std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4 % words;
  std::uint32_t all = 0;
  measure_clock(params, [&] {
#pragma unroll 1
    for (std::uint32_t round = 0; round < params.count; ++round) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        uint4 x;
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "l"(params.memory + at)
                     : "memory");
        all ^= x.x ^ x.y ^ x.z ^ x.w;
        at += threads * 4;
        if (at >= words) at %= words;
      }
    }
    consume(params, all);
  });
}

// Draws what the others read.
__device__ void fill_memory(const TimingProbeParams& params) {
  measure_clock(params, [&] {
    const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
         i < params.memory_bytes / 4; i += threads) {
      params.memory[i] = params.word == 0 ? 0 : drawn_bits(static_cast<std::uint32_t>(i));
    }
  });
}

// Nothing: `count` times a sleep.
__device__ void sleep(const TimingProbeParams& params) {
  measure_clock(params, [&] {
    for (std::uint32_t round = 0; round < params.count; ++round) __nanosleep(params.stride);
  });
}

}  // namespace
}  // namespace tilewright::kernels

TILEWRIGHT_TIMING_PROBE(power_products_ss, 256,
                        power_of_products<tilewright::kernels::Shared16>(params))
TILEWRIGHT_TIMING_PROBE(power_products_rs, 256,
                        power_of_products<tilewright::kernels::Registers16>(params))
TILEWRIGHT_TIMING_PROBE(power_products_fp8, 256,
                        power_of_products<tilewright::kernels::Shared8>(params))
TILEWRIGHT_TIMING_PROBE(power_ffma, 512, power_of_arithmetic<tilewright::kernels::Ffma>(params))
TILEWRIGHT_TIMING_PROBE(power_fmin_fmax, 512,
                        power_of_arithmetic<tilewright::kernels::FminFmax>(params))
TILEWRIGHT_TIMING_PROBE(power_ex2, 512, power_of_arithmetic<tilewright::kernels::Ex2>(params))
TILEWRIGHT_TIMING_PROBE(power_lop3, 512, power_of_arithmetic<tilewright::kernels::Lop3>(params))
TILEWRIGHT_TIMING_PROBE(power_both_ffma, 384, power_of_both<tilewright::kernels::Ffma>(params))
TILEWRIGHT_TIMING_PROBE(power_both_ex2, 384, power_of_both<tilewright::kernels::Ex2>(params))
TILEWRIGHT_TIMING_PROBE(power_both_fmin_fmax, 384,
                        power_of_both<tilewright::kernels::FminFmax>(params))
TILEWRIGHT_TIMING_PROBE(power_shared, 512, power_of_shared(params))
TILEWRIGHT_TIMING_PROBE(power_memory, 1024, power_of_memory(params))
TILEWRIGHT_TIMING_PROBE(power_fill, 1024, fill_memory(params))
TILEWRIGHT_TIMING_PROBE(power_sleep, 1024, sleep(params))
