// Single instructions of arithmetic, as steps of a chain: x = instruction(x, ...).
#pragma once

#include "kernels/probe/timing/probe.h"

#include <cstdint>

namespace tilewright::kernels {

/// Words that the compiler knows nothing of.
struct StepOperands {
  std::uint32_t a, b, c, d;
};

// The compiler would fold two equal steps of integers into one: these take their operands in turns.
#define TILEWRIGHT_TIMING_STEP(NAME, PTX)                                               \
  struct NAME {                                                                         \
    static __device__ void step(std::uint32_t& x, const StepOperands& o, int turn) {    \
      const std::uint32_t y = turn % 2 == 0 ? o.a : o.c, z = turn % 2 == 0 ? o.b : o.d; \
      asm volatile("{\n.reg .pred p;\n.reg .b16 h;\n.reg .b64 w, v;\n" PTX "\n}"        \
                   : "+r"(x)                                                            \
                   : "r"(y), "r"(z));                                                   \
    }                                                                                   \
  }
TILEWRIGHT_TIMING_STEP(Ffma, "fma.rn.f32 %0, %0, %1, %2;");
TILEWRIGHT_TIMING_STEP(Fadd, "add.rn.f32 %0, %0, %1;");
TILEWRIGHT_TIMING_STEP(Fmul, "mul.rn.f32 %0, %0, %1;");
TILEWRIGHT_TIMING_STEP(FmulImmediate, "mul.rn.f32 %0, %0, 0f3F800100;");
TILEWRIGHT_TIMING_STEP(Imad, "mad.lo.u32 %0, %0, %1, %2;");
TILEWRIGHT_TIMING_STEP(Lop3, "lop3.b32 %0, %0, %1, %2, 0xE8;");
TILEWRIGHT_TIMING_STEP(Prmt, "prmt.b32 %0, %0, %1, 0x2541;");
TILEWRIGHT_TIMING_STEP(Shf, "shf.l.wrap.b32 %0, %0, %1, %2;");
TILEWRIGHT_TIMING_STEP(MulBf16x2, "mul.rn.bf16x2 %0, %0, %1;");
TILEWRIGHT_TIMING_STEP(FmaF16x2, "fma.rn.f16x2 %0, %0, %1, %2;");
TILEWRIGHT_TIMING_STEP(CvtBf16x2, "cvt.rn.bf16x2.f32 %0, %0, %1;");
TILEWRIGHT_TIMING_STEP(Ex2, "ex2.approx.ftz.f32 %0, %0;");
TILEWRIGHT_TIMING_STEP(Lg2, "lg2.approx.ftz.f32 %0, %0;");
TILEWRIGHT_TIMING_STEP(I2f, "cvt.rn.f32.s32 %0, %0;");
TILEWRIGHT_TIMING_STEP(F2i, "cvt.rzi.s32.f32 %0, %0;");
TILEWRIGHT_TIMING_STEP(ShflBfly, "shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;");
TILEWRIGHT_TIMING_STEP(Redux, "redux.sync.add.s32 %0, %0, 0xffffffff;");
TILEWRIGHT_TIMING_STEP(Dfma,
                       "mov.b64 w, {%1, %0};\nmov.b64 v, {%1, %2};\nfma.rn.f64 w, w, v, v;\n"
                       "mov.b64 {_, %0}, w;");
#undef TILEWRIGHT_TIMING_STEP

/// Minimum and maximum in turns.
struct FminFmax {
  static __device__ void step(std::uint32_t& x, const StepOperands& o, int turn) {
    if (turn % 2 == 0) {
      asm volatile("min.f32 %0, %0, %1;" : "+r"(x) : "r"(o.a));
    } else {
      asm volatile("max.f32 %0, %0, %1;" : "+r"(x) : "r"(o.b));
    }
  }
};
/// A sum and a logical operation in turns.
struct IaddLop3 {
  static __device__ void step(std::uint32_t& x, const StepOperands& o, int turn) {
    if (turn % 2 == 0) {
      asm volatile("add.u32 %0, %0, %1;" : "+r"(x) : "r"(o.a));
    } else {
      asm volatile("lop3.b32 %0, %0, %1, %2, 0xE8;" : "+r"(x) : "r"(o.c), "r"(o.d));
    }
  }
};

/// One instruction of each in turns, and the eight of a softmax: two for the maximum, five to
/// make a weight and add it, half of a conversion of two.
template <class... Steps>
struct InTurns {
  static __device__ void step(std::uint32_t& x, const StepOperands& o, int turn) {
    int place = 0;
    ((turn % int{sizeof...(Steps)} == place++ ? Steps::step(x, o, turn) : void()), ...);
  }
};
using FfmaEx2 = InTurns<Ffma, Ex2>;
using FfmaFmax = InTurns<Ffma, FminFmax>;
using SoftmaxSteps = InTurns<FminFmax, Ffma, Ex2, Fadd, Fmul, FminFmax, Ffma, CvtBf16x2>;

__device__ inline StepOperands step_operands(const TimingProbeParams& params) {
  const std::uint32_t word = params.word + threadIdx.x % 2;
  return {word, word + 1, word + 2, word + 3};
}

/// `Count` steps, `Streams` chains in turns.
template <class Step, int Streams, int Count>
__device__ inline void run_steps(std::uint32_t (&x)[Streams], const StepOperands& operands) {
  static_assert(Count % Streams == 0);
#pragma unroll
  for (int turn = 0; turn < Count / Streams; ++turn) {
#pragma unroll
    for (int i = 0; i < Streams; ++i) Step::step(x[i], operands, turn);
  }
}

template <int Streams>
__device__ inline std::uint32_t mixed(const std::uint32_t (&x)[Streams]) {
  std::uint32_t all = 0;
#pragma unroll
  for (int i = 0; i < Streams; ++i) all ^= x[i];
  return all;
}

}  // namespace tilewright::kernels
