// targets: sm_90a
//
// Latency and rate of instructions that a warp issues to its scheduler's own units: chains of one
// (the next needs the last one's result) and of sixteen streams in turns.
#include "kernels/probe/timing/arithmetic.h"
#include "kernels/probe/timing/measure.h"

namespace tilewright::kernels {
namespace {

constexpr int kSteps = 128;  // kTimingSteps of the host's table

template <class Step, int Streams>
__device__ void time_steps(const TimingProbeParams& params) {
  const StepOperands operands = step_operands(params);
  std::uint32_t x[Streams];
#pragma unroll
  for (int i = 0; i < Streams; ++i) x[i] = operands.a + i;
  measure(params, [&](std::uint32_t) { run_steps<Step, Streams, kSteps>(x, operands); });
  consume(params, mixed(x));
}

// ex2 on eight streams with `Sums` additions on others between two of them.
template <int Sums>
__device__ void time_ex2_beside_sums(const TimingProbeParams& params) {
  const StepOperands operands = step_operands(params);
  std::uint32_t x[8], y[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = operands.a + i, y[i] = operands.b + i;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      Ex2::step(x[n % 8], operands, n);
#pragma unroll
      for (int i = 0; i < Sums; ++i) Fadd::step(y[(n * Sums + i) % 8], operands, n);
    }
  });
  consume(params, mixed(x) ^ mixed(y));
}

__device__ void time_special_register(const TimingProbeParams& params) {
  std::uint32_t all = 0;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      std::uint32_t word;
      asm volatile("mov.u32 %0, %%smid;" : "=r"(word)::"memory");
      consume(params, word);
    }
  });
  consume(params, all);
}

__device__ void time_nothing(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) {});
}

template <int Piece>
__device__ __noinline__ std::uint32_t cold_piece(std::uint32_t word, StepOperands operands) {
  std::uint32_t x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = word + i + Piece;
  run_steps<Ffma, 8, kTimingColdInstructions>(x, operands);
  return mixed(x);
}

// Straight code: its first pass fetches it, `count` pieces of 32 KiB.
__device__ void time_cold_code(const TimingProbeParams& params) {
  const StepOperands operands = step_operands(params);
  measure(params, [&](std::uint32_t) {
    std::uint32_t word = operands.a;
    word = cold_piece<0>(word, operands);
    if (params.count > 1) word = cold_piece<1>(word, operands);
    if (params.count > 2) word = cold_piece<2>(word, operands);
    if (params.count > 3) word = cold_piece<3>(word, operands);
    if (params.count > 4) word = cold_piece<4>(word, operands);
    if (params.count > 5) word = cold_piece<5>(word, operands);
    if (params.count > 6) word = cold_piece<6>(word, operands);
    if (params.count > 7) word = cold_piece<7>(word, operands);
    consume(params, word);
  });
}

// Code that does not lie in the order in which it runs: `count` pieces of 1 KiB, `stride` pieces
// from each to the next, of kTimingJumpPieces.
template <int Piece>
__device__ __noinline__ std::uint32_t jump_piece(std::uint32_t word, StepOperands operands) {
  std::uint32_t x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = word + i * Piece + 1;
  run_steps<Ffma, 8, kTimingJumpInstructions>(x, operands);
  return mixed(x);
}

#define TILEWRIGHT_JUMP(N) \
  case N:                  \
    return jump_piece<N>(word, operands);
#define TILEWRIGHT_JUMPS_4(N) \
  TILEWRIGHT_JUMP(N) TILEWRIGHT_JUMP((N) + 1) TILEWRIGHT_JUMP((N) + 2) TILEWRIGHT_JUMP((N) + 3)
#define TILEWRIGHT_JUMPS_16(N) \
  TILEWRIGHT_JUMPS_4(N)        \
  TILEWRIGHT_JUMPS_4((N) + 4) TILEWRIGHT_JUMPS_4((N) + 8) TILEWRIGHT_JUMPS_4((N) + 12)

__device__ std::uint32_t jump_to(std::uint32_t piece, std::uint32_t word, StepOperands operands) {
  switch (piece) {
    TILEWRIGHT_JUMPS_16(0)
    TILEWRIGHT_JUMPS_16(16)
    TILEWRIGHT_JUMPS_16(32)
    TILEWRIGHT_JUMPS_16(48)
    TILEWRIGHT_JUMPS_16(64)
    TILEWRIGHT_JUMPS_16(80)
    TILEWRIGHT_JUMPS_16(96)
    TILEWRIGHT_JUMPS_16(112)
  }
  return word;
}

__device__ void time_cold_jumps(const TimingProbeParams& params) {
  const StepOperands operands = step_operands(params);
  measure(params, [&](std::uint32_t) {
    std::uint32_t word = operands.a, piece = 1;
    for (std::uint32_t i = 0; i < params.count; ++i) {
      word = jump_to(piece, word, operands);
      piece = (piece + params.stride) % kTimingJumpPieces;
    }
    consume(params, word);
  });
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_STEPS(NAME, STEP)                                       \
  TILEWRIGHT_TIMING_PROBE(NAME##_chain, 1024, time_steps<STEP, 1>(params)) \
  TILEWRIGHT_TIMING_PROBE(NAME##_streams, 1024, time_steps<STEP, 16>(params))

TILEWRIGHT_STEPS(ffma, tilewright::kernels::Ffma)
TILEWRIGHT_STEPS(fadd, tilewright::kernels::Fadd)
TILEWRIGHT_STEPS(fmul, tilewright::kernels::Fmul)
TILEWRIGHT_STEPS(fmul_immediate, tilewright::kernels::FmulImmediate)
TILEWRIGHT_STEPS(imad, tilewright::kernels::Imad)
TILEWRIGHT_STEPS(lop3, tilewright::kernels::Lop3)
TILEWRIGHT_STEPS(iadd_lop3, tilewright::kernels::IaddLop3)
TILEWRIGHT_STEPS(prmt, tilewright::kernels::Prmt)
TILEWRIGHT_STEPS(mul_bf16x2, tilewright::kernels::MulBf16x2)
TILEWRIGHT_STEPS(fma_f16x2, tilewright::kernels::FmaF16x2)
TILEWRIGHT_STEPS(shf, tilewright::kernels::Shf)
TILEWRIGHT_STEPS(fmin_fmax, tilewright::kernels::FminFmax)
TILEWRIGHT_STEPS(cvt_bf16x2, tilewright::kernels::CvtBf16x2)
TILEWRIGHT_STEPS(ex2, tilewright::kernels::Ex2)
TILEWRIGHT_STEPS(lg2, tilewright::kernels::Lg2)
TILEWRIGHT_STEPS(i2f, tilewright::kernels::I2f)
TILEWRIGHT_STEPS(f2i, tilewright::kernels::F2i)
TILEWRIGHT_STEPS(shfl_bfly, tilewright::kernels::ShflBfly)
TILEWRIGHT_STEPS(redux, tilewright::kernels::Redux)
TILEWRIGHT_STEPS(dfma, tilewright::kernels::Dfma)
TILEWRIGHT_TIMING_PROBE(ex2_beside_2_sums, 1024, time_ex2_beside_sums<2>(params))
TILEWRIGHT_TIMING_PROBE(ex2_beside_4_sums, 1024, time_ex2_beside_sums<4>(params))
TILEWRIGHT_TIMING_PROBE(ex2_beside_8_sums, 1024, time_ex2_beside_sums<8>(params))
TILEWRIGHT_TIMING_PROBE(special_register, 1024, time_special_register(params))
TILEWRIGHT_TIMING_PROBE(nothing, 1024, time_nothing(params))
TILEWRIGHT_TIMING_PROBE(cold_code, 128, time_cold_code(params))
TILEWRIGHT_TIMING_PROBE(cold_jumps, 128, time_cold_jumps(params))
