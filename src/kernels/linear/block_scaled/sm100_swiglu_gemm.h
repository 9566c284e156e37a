// Gate and up in one block-scaled product, SwiGLU in its epilogue: rows of the weight come in turns
// of eight, of the gate and of up (step.h). Contract in sm100_block_scaled.h; results have half of
// the weight's rows as columns.
//
//   sm100_nvfp4_gemm_swiglu_OUT_TILE        OUT   bf16, nvfp4
//   sm100_mxfp8_mxfp4_gemm_swiglu_OUT_TILE        bf16, mxfp8
//   sm100_mxfp8_gemm_swiglu_OUT_TILE              bf16, mxfp8
//                                           TILE  1cta_n128, 2cta_n256 (kBlockScaledSwigluTiles)
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
