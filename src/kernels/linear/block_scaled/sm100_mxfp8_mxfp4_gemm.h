// Entries for MXFP8 activations (e4m3) and e2m1 weights, both with ue8m0 scales of 32; contract in
// sm100_block_scaled.h.
//
//   sm100_mxfp8_mxfp4_gemm_OUT_TILE   as in sm100_nvfp4_gemm.h
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
