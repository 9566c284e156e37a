// Entries for NVFP4 activations and weights; contract in sm100_block_scaled.h.
//
//   sm100_nvfp4_gemm_OUT_TILE   OUT   bf16, nvfp4 (requantised)
//                               TILE  1cta_n64, 1cta_n128, 2cta_n192, 2cta_n256, 4cta_n256
// Grid: any multiple of the CTAs of a tile, which are a cluster.
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
