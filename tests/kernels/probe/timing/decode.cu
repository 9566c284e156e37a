// targets: sm_90a
//
// mma.sync beside what kernels of few tokens do: other warps' arithmetic and loads, and loops of
// one warp that read codes, make bf16 of them and multiply.
#include "kernels/probe/timing/arithmetic.h"
#include "kernels/probe/timing/measure.h"
#include "ptx/address.h"
#include "ptx/load_store.h"
#include "ptx/mma_sync.h"

namespace tilewright::kernels {
namespace {

constexpr int kRounds = 16;

template <int Chains>
__device__ void multiply(float (&d)[Chains][4], const std::uint32_t (&a)[4],
                         const std::uint32_t (&b)[2], int i) {
  ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(d[i % Chains], a, b, d[i % Chains]);
}
template <int Chains>
__device__ std::uint32_t bits_of(const float (&d)[Chains][4]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Chains; ++i) sum += d[i][0] + d[i][1] + d[i][2] + d[i][3];
  return __float_as_uint(sum);
}

// Four warps multiply kRounds times 64 (nothing, if `count` is 0); the others run kRounds times 128
// steps. Both are timed.
template <class Step>
__device__ void time_beside(const TimingProbeParams& params) {
  if (threadIdx.x < 128) {
    const std::uint32_t a[4] = {params.word, params.word + 1, params.word, params.word + 2};
    const std::uint32_t b[2] = {params.word, threadIdx.x};
    float d[8][4] = {};
    measure(params, [&](std::uint32_t) {
      if (params.count == 0) return;
#pragma unroll 1
      for (int i = 0; i < kRounds; ++i) {
#pragma unroll
        for (int n = 0; n < 64; ++n) multiply(d, a, b, n);
      }
      consume(params, bits_of(d));
    });
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

// Eight weights of a word as an A fragment: 4 instructions of logic, 4 permutations, 6
// multiplications, as braided codes take them.
__device__ void decode(std::uint32_t (&a)[4], std::uint32_t word, const StepOperands& o) {
  constexpr std::uint32_t kBits = 0x33333333U;
  const auto halve = [&](std::uint32_t x) {
    std::uint32_t y;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(o.d));
    return y;
  };
  const auto choose = [&](std::uint32_t selector) {
    std::uint32_t y;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(o.b), "r"(o.c), "r"(selector));
    return y;
  };
  const std::uint32_t first = (word & kBits) | o.a, second = (word >> 2 & kBits) | o.a;
  a[0] = choose(first);
  a[1] = choose(halve(first));
  a[2] = choose(second);
  a[3] = choose(halve(second));
#pragma unroll
  for (int i = 0; i < 4; ++i) asm("mul.rn.bf16x2 %0, %0, %1;" : "+r"(a[i]) : "r"(o.d));
}

// kRounds times eight blocks of 64 along K: 512 bytes of codes, and 512 of tokens for each eight of
// them. What is left out is replaced by words that are there.
template <bool Loads, bool Decodes, int Tiles>
__device__ void time_loop(const TimingProbeParams& params) {
  extern __shared__ std::uint32_t dynamic[];
  for (std::uint32_t i = threadIdx.x; i < 8192; i += blockDim.x) dynamic[i] = i;
  __syncthreads();
  const StepOperands operands = step_operands(params);
  const std::uint32_t address = ptx::shared_address(dynamic) + threadIdx.x % 32 * 16;
  float d[Tiles == 0 ? 1 : Tiles][2][4] = {};
  std::uint32_t all = params.word;
  measure(params, [&](std::uint32_t) {
#pragma unroll 1
    for (int round = 0; round < kRounds; ++round) {
      all += params.never;
#pragma unroll
      for (int block = 0; block < 8; ++block) {
        const std::uint32_t word = all + 4 * block;
        uint4 codes = {word, word + 1, word + 2, word + 3};
        if constexpr (Loads) codes = ptx::ld_shared_v4_u32(address + block * 512);
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
        std::uint32_t a[4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if constexpr (Decodes) {
            decode(a[j], words[j], operands);
          } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) a[j][i] = words[(i + j) % 4];
          }
          if constexpr (Tiles == 0) all ^= (a[j][0] & a[j][1]) ^ (a[j][2] & a[j][3]);
        }
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
          uint4 tokens[2] = {{all, all, all, all}, {all, all, all, all}};
          if constexpr (Loads) {
            tokens[0] = ptx::ld_shared_v4_u32(address + 4096 + tile * 4096 + block * 512);
            tokens[1] = ptx::ld_shared_v4_u32(address + 16384 + tile * 2048 + block * 256);
          }
          const std::uint32_t b[4][2] = {{tokens[0].x, tokens[1].x},
                                         {tokens[0].y, tokens[1].y},
                                         {tokens[0].z, tokens[1].z},
                                         {tokens[0].w, tokens[1].w}};
#pragma unroll
          for (int j = 0; j < 4; ++j) multiply(d[tile], a[j], b[j], j);
        }
      }
    }
    float sum = 0;
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) sum += __uint_as_float(bits_of(d[tile]));
    consume(params, all ^ __float_as_uint(sum));
  });
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_BESIDE(NAME, STEP)                   \
  TILEWRIGHT_TIMING_PROBE(mma_sync_beside_##NAME, 1024, \
                          time_beside<tilewright::kernels::STEP>(params))
TILEWRIGHT_BESIDE(ffma, Ffma)
TILEWRIGHT_BESIDE(imad, Imad)
TILEWRIGHT_BESIDE(lop3, Lop3)
TILEWRIGHT_BESIDE(prmt, Prmt)
TILEWRIGHT_BESIDE(mul_bf16x2, MulBf16x2)
TILEWRIGHT_BESIDE(ex2, Ex2)

// Loads, decodes, eights of tokens.
#define TILEWRIGHT_LOOP(NAME, ...) \
  TILEWRIGHT_TIMING_PROBE(few_tokens_##NAME, 512, time_loop<__VA_ARGS__>(params))
TILEWRIGHT_LOOP(loads, true, false, 0)
TILEWRIGHT_LOOP(decodes, false, true, 0)
TILEWRIGHT_LOOP(loads_decodes, true, true, 0)
TILEWRIGHT_LOOP(products_1, false, false, 1)
TILEWRIGHT_LOOP(loads_products_1, true, false, 1)
TILEWRIGHT_LOOP(decodes_products_1, false, true, 1)
TILEWRIGHT_LOOP(all_1, true, true, 1)
TILEWRIGHT_LOOP(all_2, true, true, 2)
TILEWRIGHT_LOOP(all_4, true, true, 4)
