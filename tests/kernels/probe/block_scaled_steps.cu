// targets: sm_100f
//
// Epilogues with steps: that of the library, and one of a user.
#include "kernels/linear/block_scaled/dense_output.h"
#include "kernels/linear/block_scaled/kernel.h"
#include "kernels/linear/block_scaled/mxfp8_output.h"
#include "kernels/linear/block_scaled/nvfp4_output.h"
#include "kernels/probe/block_scaled_steps.h"

namespace mine {

/// max(x, 0)^2, and the number of the row and column in the product, which say that a step knows
/// where it is.
struct Ramp {
  static constexpr int kColumns = 64;

  __device__ static void apply(float* y, const float (&x)[64], const tilewright::tile::StepAt& at) {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const float positive = fmaxf(x[i], 0.0f);
      y[i] = positive * positive + static_cast<float>(at.row + 2 * (at.column + i));
    }
  }
};

}  // namespace mine

namespace tilewright::kernels {

#define TILEWRIGHT_SWIGLU(NAME, OUTPUT, INDEX, CTAS)                                            \
  TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(steps_swiglu_##NAME, kNvfp4, OUTPUT, tile::SwigluOfEights, \
                                     INDEX, CTAS)
TILEWRIGHT_SWIGLU(bf16_1cta_n128, Bf16Output, 1, 1)
TILEWRIGHT_SWIGLU(nvfp4_2cta_n256, Nvfp4Output, 3, 2)
TILEWRIGHT_SWIGLU(mxfp8_1cta_n128, Mxfp8Output, 1, 1)
TILEWRIGHT_SWIGLU(mxfp8_2cta_n256, Mxfp8Output, 3, 2)
TILEWRIGHT_SWIGLU(bf16_4cta_n256, Bf16Output, 4, 4)
TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(steps_ramp_bf16_2cta_n192, kNvfp4, Bf16Output, mine::Ramp, 2, 2)
TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(steps_ramp_dense_2cta_n256, kBf16, DenseOutput, mine::Ramp, 3, 2)

}  // namespace tilewright::kernels
