// Steps: what an epilogue makes of results before it writes them.
//
// A step is a class that takes 64 neighbouring columns of a row, in fp32 and times alpha, and makes
// 64 or 32 columns of the result of them. A thread has the whole row's share, so a step may look at
// all 64, and needs no other thread. Steps of one's own:
//
//     struct Squares {
//       static constexpr int kColumns = 64;  // of the result, of 64 of the product
//       __device__ static void apply(float* y, const float (&x)[64], const StepAt& at) {
//         for (int i = 0; i < kColumns; ++i) y[i] = x[i] * x[i];
//       }
//     };
// and, in namespace tilewright::kernels,
//
//     TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(my_gemm, kNvfp4, Bf16Output, mine::Squares, 1, 1)
//
// A step that needs the launch's arguments takes `const BlockScaledGemmParams& params` as well.
// `#pragma unroll` before the loop keeps both arrays in registers. With kColumns = 32 the result
// has half of the product's columns, and a tile has 128 or 256. What a step makes of columns and
// rows outside of the product is not stored; they may hold NaN. Outputs, which round and store what
// steps leave, are classes like Bf16Output (results.h); a step goes with each of them.
#pragma once

#include "kernels/linear/swiglu.h"

#include <cstdint>

namespace tilewright::tile {

/// Where the 64 columns begin, in the product.
struct StepAt {
  std::int32_t row, column;
};

/// The product as it is.
struct KeepColumns {
  static constexpr int kColumns = 64;

  __device__ static void apply(float* y, const float (&x)[64], const StepAt&) {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) y[i] = x[i];
  }
};

/// silu(gate) * up: of every 16 columns the first eight are gates, the others what they multiply,
/// as rows of the two weights are interleaved. Both are held under params.swiglu_limit.
struct SwigluOfEights {
  static constexpr int kColumns = 32;

  template <class Params>
  __device__ static void apply(float* y, const float (&x)[64], const StepAt&,
                               const Params& params) {
#pragma unroll
    for (int i = 0; i < kColumns; ++i)
      y[i] = swiglu({x[gate_column(i)], x[gate_column(i) + 8]}, params.swiglu_limit);
  }
};

/// Calls a step, with the launch's arguments if it takes them.
template <class Step, class Params>
__device__ void apply_step(float* y, const float (&x)[64], const StepAt& at, const Params& params) {
  if constexpr (requires { Step::apply(y, x, at, params); }) {
    Step::apply(y, x, at, params);
  } else {
    Step::apply(y, x, at);
  }
}

}  // namespace tilewright::tile
