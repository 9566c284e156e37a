// Entries for bf16 activations and weights: what block-scaled GEMMs do, without the scales;
// contract in sm100_block_scaled.h.
//
//   sm100_bf16_gemm_TILE   d[i,j] = alpha * sum_l a[i,l] b[j,l] + bias[j], bf16 or f32 as
//                          is_d_f32 says; TILE 1cta_n128, 2cta_n256, 4cta_n256. k > 0; rows of d
//                          at multiples of 16 bytes. Grid: any multiple of the CTAs of a tile,
//                          which are a cluster
//   sm100_bf16_gemm_few    a is the weight [m, k], m even, and b are the tokens [n, k]; d [n, m],
//                          bias [m]. Tiles of 128 by tile_columns, which are the rows of a box of
//                          b_map; tiles_n counts them, and with several they are 64 wide. Grid: as
//                          many clusters as tiles; a cluster is 1, 2, 4 or 8 CTAs, which divide K:
//                          no more than it has steps of 64
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"

namespace tilewright::kernels {

/// Tiles of sm100_bf16_gemm_TILE.
inline constexpr BlockScaledTile kBf16Tiles[] = {{1, 128, 1}, {2, 256, 1}, {2, 256, 2}};
/// That of sm100_bf16_gemm_few, at its widest.
inline constexpr BlockScaledConfig kFewTokensConfig = {BlockScaledKind::kBf16, {1, 64, 1}, true};

}  // namespace tilewright::kernels
