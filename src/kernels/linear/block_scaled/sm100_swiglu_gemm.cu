// targets: sm_100f
//
// As sm100_nvfp4_gemm.cu, sm100_mxfp8_mxfp4_gemm.cu and sm100_mxfp8_gemm.cu, but two runs of 64
// columns of the product become one of the result: silu(gate) * up, in bf16 or requantised to what
// the next GEMM reads.
#include "kernels/linear/block_scaled/kernel.h"
#include "kernels/linear/block_scaled/mxfp8_output.h"
#include "kernels/linear/block_scaled/nvfp4_output.h"
#include "kernels/linear/block_scaled/sm100_swiglu_gemm.h"

namespace tilewright::kernels {

#define TILEWRIGHT_SWIGLU_ENTRIES(STEM, KIND, NAME, OUTPUT)                          \
  TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(STEM##_swiglu_##NAME##_1cta_n128, KIND, OUTPUT, \
                                     tile::SwigluOfEights, 1, 1)                     \
  TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY(STEM##_swiglu_##NAME##_2cta_n256, KIND, OUTPUT, \
                                     tile::SwigluOfEights, 3, 2)

TILEWRIGHT_SWIGLU_ENTRIES(sm100_nvfp4_gemm, kNvfp4, bf16, Bf16Output)
TILEWRIGHT_SWIGLU_ENTRIES(sm100_nvfp4_gemm, kNvfp4, nvfp4, Nvfp4Output)
TILEWRIGHT_SWIGLU_ENTRIES(sm100_mxfp8_mxfp4_gemm, kMxfp8Mxfp4, bf16, Bf16Output)
TILEWRIGHT_SWIGLU_ENTRIES(sm100_mxfp8_mxfp4_gemm, kMxfp8Mxfp4, mxfp8, Mxfp8Output)
TILEWRIGHT_SWIGLU_ENTRIES(sm100_mxfp8_gemm, kMxfp8, bf16, Bf16Output)
TILEWRIGHT_SWIGLU_ENTRIES(sm100_mxfp8_gemm, kMxfp8, mxfp8, Mxfp8Output)

}  // namespace tilewright::kernels
