// Entries for MXFP8 activations and weights (e4m3), both with ue8m0 scales of 32; contract in
// sm100_block_scaled.h.
//
//   sm100_mxfp8_gemm_bf16_TILE   as in sm100_nvfp4_gemm.h
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
