// targets: sm_90a
//
// Arithmetic beside products of wgmma, at rates that leave a scheduler clocks to issue in: of other
// warps, and of the warps that multiply, as a kernel has it that works on one tile while it
// multiplies the next. A stream without pauses (tensor.cu) shows less: it keeps products from being
// issued at all, and so runs beside few of them.
#include "kernels/probe/timing/arithmetic.h"
#include "kernels/probe/timing/measure.h"
#include "kernels/probe/timing/products.h"
#include "ptx/warp_roles.h"

namespace tilewright::kernels {
namespace {

constexpr int kSteps = 128;  // of one round
constexpr int kDeep = 8;     // products of a group

// Products without pauses: the next group is issued while the last one runs, unless that needs A's
// registers (ptxas would wait for each product).
template <class Form, int Half>
__device__ void multiply_without_pauses(float (&d)[Half], std::uint64_t matrix,
                                        std::uint32_t groups) {
  for (std::uint32_t i = 0; i < groups; ++i) {
    issue_group<Form, kDeep>(d, matrix);
    ptx::wgmma_wait_group_sync_aligned<Form::kTakesRegisters ? 0 : 1>();
  }
  ptx::wgmma_wait_group_sync_aligned<0>();
  ptx::wgmma_fence_operand(d);
}

// The first warpgroup multiplies `count` groups of eight without pauses, the others run `stride`
// rounds of kSteps in `Streams` chains each. Both are timed.
template <template <int> class Form, int N, class Step, int Streams>
__device__ void time_paced(const TimingProbeParams& params) {
  const std::uint64_t matrix = matrix_of_ones();
  if (threadIdx.x < 128) {
    float d[N / 2] = {};
    measure(params,
            [&](std::uint32_t) { multiply_without_pauses<Form<N>>(d, matrix, params.count); });
    consume_sums(params, d);
  } else {
    const StepOperands operands = step_operands(params);
    std::uint32_t x[Streams];
#pragma unroll
    for (int i = 0; i < Streams; ++i) x[i] = operands.a + i;
    measure(params, [&](std::uint32_t) {
#pragma unroll 1
      for (std::uint32_t i = 0; i < params.stride; ++i)
        run_steps<Step, Streams, kSteps>(x, operands);
    });
    consume(params, mixed(x));
  }
}

// Each warpgroup: sixteen times a group of eight products, `Rounds` rounds of kSteps of its own
// meanwhile, and the wait for the products. `count`: 1 products, 2 steps, 3 both.
template <template <int> class Form, int N, class Step, int Streams, int Rounds>
__device__ void time_own(const TimingProbeParams& params) {
  const std::uint64_t matrix = matrix_of_ones();
  const StepOperands operands = step_operands(params);
  float d[N / 2] = {};
  std::uint32_t x[Streams];
#pragma unroll
  for (int i = 0; i < Streams; ++i) x[i] = operands.a + i;
  measure(params, [&](std::uint32_t) {
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
      if ((params.count & 1) != 0) issue_group<Form<N>, kDeep>(d, matrix);
      if ((params.count & 2) != 0) {
#pragma unroll
        for (int round = 0; round < Rounds; ++round) run_steps<Step, Streams, kSteps>(x, operands);
      }
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(d);
    }
  });
  consume_sums(params, d);
  consume(params, mixed(x));
}

// Two warpgroups as a kernel of attention has them, `count` steps each: products of scores and of
// values, 4 rounds of softmax steps behind the scores. `IsAhead`: the values' products
// are those of the step before and run beside the softmax. `InTurns`: one issues behind the other,
// by named barriers.
template <bool InTurns, bool IsAhead>
__device__ void time_tiles(const TimingProbeParams& params) {
  using Form = Shared16<128>;
  const std::uint64_t matrix = matrix_of_ones();
  const StepOperands operands = step_operands(params);
  const std::uint32_t index = threadIdx.x / 128;
  float scores[64] = {}, values[64] = {};
  std::uint32_t x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = operands.a + i;
  measure(params, [&](std::uint32_t) {
    if (InTurns && index == 1) ptx::bar_arrive<256>(1);
#pragma unroll 1
    for (std::uint32_t i = 0; i < params.count; ++i) {
      if constexpr (InTurns) ptx::bar_sync<256>(1 + index);
      issue_group<Form, kDeep>(scores, matrix);
      if constexpr (IsAhead) issue_group<Form, kDeep>(values, matrix);
      if constexpr (InTurns) ptx::bar_arrive<256>(1 + (index ^ 1));
      ptx::wgmma_wait_group_sync_aligned<IsAhead ? 1 : 0>();
      ptx::wgmma_fence_operand(scores);
#pragma unroll
      for (int round = 0; round < 4; ++round) run_steps<SoftmaxSteps, 8, kSteps>(x, operands);
      if constexpr (!IsAhead) {
        if constexpr (InTurns) ptx::bar_sync<256>(1 + index);
        issue_group<Form, kDeep>(values, matrix);
        if constexpr (InTurns) ptx::bar_arrive<256>(1 + (index ^ 1));
      }
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(values);
    }
    if (InTurns && index == 0) ptx::bar_sync<256>(1);
  });
  consume_sums(params, scores);
  consume_sums(params, values);
  consume(params, mixed(x));
}

}  // namespace
}  // namespace tilewright::kernels

// Names within these macros are the probes' own.
#define TILEWRIGHT_PACED(STEP_NAME, STEP, STREAMS, NAME, FORM, N) \
  TILEWRIGHT_TIMING_PROBE(                                        \
      wgmma_paced_##STEP_NAME##_x##STREAMS##_##NAME##_n##N, 384,  \
      time_paced<tilewright::kernels::FORM, N, tilewright::kernels::STEP, STREAMS>(params))
#define TILEWRIGHT_PACES(STEP_NAME, STEP, NAME, FORM, N) \
  TILEWRIGHT_PACED(STEP_NAME, STEP, 1, NAME, FORM, N)    \
  TILEWRIGHT_PACED(STEP_NAME, STEP, 2, NAME, FORM, N)    \
  TILEWRIGHT_PACED(STEP_NAME, STEP, 4, NAME, FORM, N)
TILEWRIGHT_PACES(ffma, Ffma, ss, Shared16, 128)
TILEWRIGHT_PACES(ffma, Ffma, rs, Registers16, 128)
TILEWRIGHT_PACES(ffma, Ffma, ss, Shared16, 64)
TILEWRIGHT_PACES(ffma, Ffma, ss, Shared16, 256)
TILEWRIGHT_PACES(fadd, Fadd, ss, Shared16, 128)
TILEWRIGHT_PACES(fmul_immediate, FmulImmediate, ss, Shared16, 128)
TILEWRIGHT_PACES(fmin_fmax, FminFmax, ss, Shared16, 128)
TILEWRIGHT_PACES(cvt_bf16x2, CvtBf16x2, ss, Shared16, 128)
TILEWRIGHT_PACES(imad, Imad, ss, Shared16, 128)
TILEWRIGHT_PACED(ffma_ex2, FfmaEx2, 8, ss, Shared16, 128)
TILEWRIGHT_PACED(ffma_fmax, FfmaFmax, 1, ss, Shared16, 128)
TILEWRIGHT_PACED(ffma_fmax, FfmaFmax, 8, ss, Shared16, 128)
TILEWRIGHT_PACED(softmax, SoftmaxSteps, 8, ss, Shared16, 128)
TILEWRIGHT_PACED(softmax, SoftmaxSteps, 8, rs, Registers16, 128)

#define TILEWRIGHT_OWN(STEP_NAME, STEP, STREAMS, ROUNDS, NAME, FORM, N) \
  TILEWRIGHT_TIMING_PROBE(                                              \
      wgmma_own_##STEP_NAME##_x##STREAMS##_##NAME##_n##N, 256,          \
      time_own<tilewright::kernels::FORM, N, tilewright::kernels::STEP, STREAMS, ROUNDS>(params))
TILEWRIGHT_OWN(ffma, Ffma, 1, 1, ss, Shared16, 128)
TILEWRIGHT_OWN(ffma, Ffma, 4, 2, ss, Shared16, 128)
TILEWRIGHT_OWN(ffma, Ffma, 16, 3, ss, Shared16, 128)
TILEWRIGHT_OWN(fmin_fmax, FminFmax, 1, 1, ss, Shared16, 128)
TILEWRIGHT_OWN(fmin_fmax, FminFmax, 16, 1, ss, Shared16, 128)
TILEWRIGHT_OWN(softmax, SoftmaxSteps, 8, 1, ss, Shared16, 128)
TILEWRIGHT_OWN(softmax, SoftmaxSteps, 8, 1, rs, Registers16, 128)

TILEWRIGHT_TIMING_PROBE(wgmma_tiles, 256, time_tiles<false, false>(params))
TILEWRIGHT_TIMING_PROBE(wgmma_tiles_turns, 256, time_tiles<true, false>(params))
TILEWRIGHT_TIMING_PROBE(wgmma_tiles_ahead, 256, time_tiles<false, true>(params))
TILEWRIGHT_TIMING_PROBE(wgmma_tiles_turns_ahead, 256, time_tiles<true, true>(params))
