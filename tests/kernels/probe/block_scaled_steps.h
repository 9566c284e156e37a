// Block-scaled GEMMs whose epilogues have steps (kernels/linear/block_scaled/step.h): SwiGLU, and
// one as a user would write it. NVFP4 by NVFP4; contract in sm100_block_scaled.h.
//
//   steps_swiglu_bf16_1cta_n128, steps_swiglu_nvfp4_2cta_n256, steps_swiglu_bf16_4cta_n256
//   steps_swiglu_mxfp8_1cta_n128, steps_swiglu_mxfp8_2cta_n256
//   steps_ramp_bf16_2cta_n192
//   steps_ramp_dense_2cta_n256   bf16 by bf16
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
