// targets: sm_90a
//
// wgmma: groups of products and the wait for them, how far issue runs ahead, and what other warps'
// arithmetic and the products cost each other.
#include "kernels/probe/timing/arithmetic.h"
#include "kernels/probe/timing/measure.h"
#include "kernels/probe/timing/products.h"
#include "ptx/address.h"
#include "ptx/load_store.h"
#include "ptx/matrix_copy.h"
#include "ptx/mma_sync.h"
#include "ptx/store_shared.h"

namespace tilewright::kernels {
namespace {

// A group of `Count` products of one accumulator, and the wait for it.
template <template <int> class Form, int N, int Count>
__device__ void time_group(const TimingProbeParams& params) {
  const std::uint64_t matrix = matrix_of_ones();
  float d[N / 2] = {};
  measure(params, [&](std::uint32_t) {
    issue_group<Form<N>, Count>(d, matrix);
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
  });
  consume_sums(params, d);
}

// The clock before and after each of kTimingProducts products: where it jumps, the queue is full.
template <template <int> class Form, int N>
__device__ void mark_products(const TimingProbeParams& params) {
  const std::uint64_t matrix = matrix_of_ones();
  float d[N / 2] = {};
  for (std::uint32_t i = 0; i < params.iterations; ++i) {
    std::uint32_t clocks[kTimingProducts + 2];
    __syncthreads();
    __syncthreads();
    ptx::wgmma_fence_sync_aligned();
    clocks[0] = read_clock();
#pragma unroll
    for (int n = 0; n < kTimingProducts; ++n) {
      Form<N>::issue(d, matrix);
      clocks[n + 1] = read_clock();
    }
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
    clocks[kTimingProducts + 1] = read_clock();
    if (threadIdx.x % 32 == 0) {
      std::uint32_t* const marks = marks_of(params, i, kTimingProducts + 2);
#pragma unroll
      for (int n = 0; n < kTimingProducts + 2; ++n) marks[n] = clocks[n];
    }
  }
  consume_sums(params, d);
}

constexpr int kRounds = 16;

// The first warpgroup multiplies kRounds groups of eight (or nothing, if `count` is 0); the others
// run kRounds times 128 steps. Both are timed.
template <template <int> class Form, int N, class Step>
__device__ void time_beside(const TimingProbeParams& params) {
  const std::uint64_t matrix = matrix_of_ones();
  if (threadIdx.x < 128) {
    float d[N / 2] = {};
    measure(params, [&](std::uint32_t) {
      if (params.count == 0) return;
#pragma unroll 1
      for (int i = 0; i < kRounds; ++i) {
        issue_group<Form<N>, 8>(d, matrix);
        ptx::wgmma_wait_group_sync_aligned<0>();
        ptx::wgmma_fence_operand(d);
      }
    });
    consume_sums(params, d);
  } else {
    const StepOperands operands = step_operands(params);
    std::uint32_t x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = operands.a + i;
    measure(params, [&](std::uint32_t) {
#pragma unroll 1
      for (int i = 0; i < kRounds; ++i) run_steps<Step, 16, 128>(x, operands);
    });
    consume(params, mixed(x));
  }
}

// Accesses of shared memory, 16 at a time: 128 bytes of a warp, or 512.
struct Load4 {
  static __device__ void run(std::uint32_t address, std::uint32_t& all) {
    std::uint32_t words[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      asm volatile("ld.shared.u32 %0, [%1];"
                   : "=r"(words[i])
                   : "r"(address + threadIdx.x % 32 * 4 + i * 128));
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) all |= words[i];
  }
};
struct Load16 {
  static __device__ void run(std::uint32_t address, std::uint32_t& all) {
    uint4 words[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      words[i] = ptx::ld_shared_v4_u32(address + threadIdx.x % 32 * 16 + i * 512);
#pragma unroll
    for (int i = 0; i < 16; ++i) all |= words[i].x | words[i].y | words[i].z | words[i].w;
  }
};
struct Store16 {
  static __device__ void run(std::uint32_t address, std::uint32_t& all) {
    const std::uint32_t words[4] = {all, 1, 2, 3};
#pragma unroll
    for (int i = 0; i < 16; ++i)
      ptx::stmatrix<4, false>(address + threadIdx.x % 32 * 16 + i * 512, words);
  }
};

// As time_beside(), with kRounds times 64 accesses.
template <template <int> class Form, int N, class Access>
__device__ void time_accesses_beside(const TimingProbeParams& params) {
  const std::uint64_t matrix = matrix_of_ones();
  extern __shared__ std::uint32_t dynamic[];
  constexpr int kBehind = 100 << 8;  // words: behind the matrices
  for (std::uint32_t i = threadIdx.x; i < 2048; i += blockDim.x) dynamic[kBehind + i] = 0;
  __syncthreads();
  if (threadIdx.x < 128) {
    float d[N / 2] = {};
    measure(params, [&](std::uint32_t) {
      if (params.count == 0) return;
#pragma unroll 1
      for (int i = 0; i < kRounds; ++i) {
        issue_group<Form<N>, 8>(d, matrix);
        ptx::wgmma_wait_group_sync_aligned<0>();
        ptx::wgmma_fence_operand(d);
      }
    });
    consume_sums(params, d);
  } else {
    const std::uint32_t address = ptx::shared_address(dynamic + kBehind);
    std::uint32_t all = params.word;
    measure(params, [&](std::uint32_t) {
#pragma unroll 1
      for (int i = 0; i < 4 * kRounds; ++i) Access::run(address, all);
      consume(params, all);
    });
  }
}

// mma.sync: 64 products of `Chains` accumulators in turns.
template <int Chains>
__device__ void time_mma_sync(const TimingProbeParams& params) {
  const std::uint32_t a[4] = {params.word, params.word + 1, params.word, params.word + 2};
  const std::uint32_t b[2] = {params.word, threadIdx.x};
  float d[Chains][4] = {};
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < 64; ++i)
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(d[i % Chains], a, b, d[i % Chains]);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Chains; ++i) sum += d[i][0];
    consume(params, __float_as_uint(sum));
  });
}

}  // namespace
}  // namespace tilewright::kernels

// Names within these macros are the probes' own.
#define TILEWRIGHT_GROUP(NAME, FORM, N, COUNT)                 \
  TILEWRIGHT_TIMING_PROBE(wgmma_##NAME##_n##N##_x##COUNT, 256, \
                          time_group<tilewright::kernels::FORM, N, COUNT>(params))
#define TILEWRIGHT_GROUPS(NAME, FORM, N) \
  TILEWRIGHT_GROUP(NAME, FORM, N, 1)     \
  TILEWRIGHT_GROUP(NAME, FORM, N, 4)     \
  TILEWRIGHT_GROUP(NAME, FORM, N, 16)
TILEWRIGHT_GROUPS(ss, Shared16, 8)
TILEWRIGHT_GROUPS(ss, Shared16, 32)
TILEWRIGHT_GROUPS(ss, Shared16, 64)
TILEWRIGHT_GROUPS(ss, Shared16, 128)
TILEWRIGHT_GROUPS(ss, Shared16, 256)
TILEWRIGHT_GROUPS(rs, Registers16, 8)
TILEWRIGHT_GROUPS(rs, Registers16, 32)
TILEWRIGHT_GROUPS(rs, Registers16, 64)
TILEWRIGHT_GROUPS(rs, Registers16, 128)
TILEWRIGHT_GROUPS(fp8, Shared8, 64)
TILEWRIGHT_GROUPS(fp8, Shared8, 128)

#define TILEWRIGHT_MARKS(NAME, FORM, N)                   \
  TILEWRIGHT_TIMING_PROBE(wgmma_marks_##NAME##_n##N, 256, \
                          mark_products<tilewright::kernels::FORM, N>(params))
TILEWRIGHT_MARKS(ss, Shared16, 64)
TILEWRIGHT_MARKS(ss, Shared16, 128)
TILEWRIGHT_MARKS(ss, Shared16, 256)
TILEWRIGHT_MARKS(rs, Registers16, 64)
TILEWRIGHT_MARKS(rs, Registers16, 128)

#define TILEWRIGHT_BESIDE(STEP_NAME, STEP, NAME, FORM, N) \
  TILEWRIGHT_TIMING_PROBE(                                \
      wgmma_beside_##STEP_NAME##_##NAME##_n##N, 384,      \
      time_beside<tilewright::kernels::FORM, N, tilewright::kernels::STEP>(params))
TILEWRIGHT_BESIDE(ffma, Ffma, ss, Shared16, 128)
TILEWRIGHT_BESIDE(fadd, Fadd, ss, Shared16, 128)
TILEWRIGHT_BESIDE(fmul_immediate, FmulImmediate, ss, Shared16, 128)
TILEWRIGHT_BESIDE(fmin_fmax, FminFmax, ss, Shared16, 128)
TILEWRIGHT_BESIDE(cvt_bf16x2, CvtBf16x2, ss, Shared16, 128)
TILEWRIGHT_BESIDE(ex2, Ex2, ss, Shared16, 128)
TILEWRIGHT_BESIDE(shfl_bfly, ShflBfly, ss, Shared16, 128)
TILEWRIGHT_BESIDE(ffma, Ffma, ss, Shared16, 256)
TILEWRIGHT_BESIDE(ffma, Ffma, ss, Shared16, 64)
TILEWRIGHT_BESIDE(ffma, Ffma, rs, Registers16, 128)
TILEWRIGHT_BESIDE(fadd, Fadd, rs, Registers16, 128)
TILEWRIGHT_BESIDE(ex2, Ex2, rs, Registers16, 128)

#define TILEWRIGHT_ACCESSES(ACCESS_NAME, ACCESS, NAME, FORM, N) \
  TILEWRIGHT_TIMING_PROBE(                                      \
      wgmma_beside_##ACCESS_NAME##_##NAME##_n##N, 384,          \
      time_accesses_beside<tilewright::kernels::FORM, N, tilewright::kernels::ACCESS>(params))
TILEWRIGHT_ACCESSES(load4, Load4, ss, Shared16, 128)
TILEWRIGHT_ACCESSES(load4, Load4, rs, Registers16, 128)
TILEWRIGHT_ACCESSES(load16, Load16, ss, Shared16, 64)
TILEWRIGHT_ACCESSES(load16, Load16, ss, Shared16, 128)
TILEWRIGHT_ACCESSES(load16, Load16, ss, Shared16, 256)
TILEWRIGHT_ACCESSES(load16, Load16, rs, Registers16, 64)
TILEWRIGHT_ACCESSES(load16, Load16, rs, Registers16, 128)
TILEWRIGHT_ACCESSES(load16, Load16, fp8, Shared8, 128)
TILEWRIGHT_ACCESSES(store16, Store16, ss, Shared16, 128)
TILEWRIGHT_ACCESSES(store16, Store16, rs, Registers16, 128)

TILEWRIGHT_TIMING_PROBE(mma_sync_x1, 512, time_mma_sync<1>(params))
TILEWRIGHT_TIMING_PROBE(mma_sync_x2, 512, time_mma_sync<2>(params))
TILEWRIGHT_TIMING_PROBE(mma_sync_x4, 512, time_mma_sync<4>(params))
TILEWRIGHT_TIMING_PROBE(mma_sync_x8, 512, time_mma_sync<8>(params))
