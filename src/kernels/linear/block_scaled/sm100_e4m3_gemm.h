// Entries for e4m3 activations and weights whose scales are fp32 numbers: a tensor core has no
// place for those, so that its sums of 128 elements of K go to the fp32 sums of the threads, times
// both scales (promoted.h).
//
//   sm100_e4m3_gemm_TILE   d[i,j] = sum_l a[i,l] sa[l/128,i] b[j,l] sb[l/128,j/128] + bias[j], bf16
//                          or f32 as is_d_f32 says; TILE 1cta_n128, 2cta_n256. Grid: any multiple
//                          of the CTAs of a tile, which are a cluster; kE4m3Config.threads()
//   sm100_e4m3_gemm_few    a is the weight [m, k], m even, and b are the tokens [n, k]; d [n, m],
//                          bias [m]. Tiles, grid and parts of K as those of sm100_bf16_gemm_few
//
// Elements along K may stand in any order within each 64, the same in a and in b. k counts whole
// 64: what is behind the end are zeros. k > 0; rows of d at multiples of 16 bytes.
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"

namespace tilewright::kernels {

struct E4m3GemmParams {
  BlockScaledGemmParams gemm;
  const float* x_scales;       ///< a factor of token i and block l of K: [l * x_scale_pitch + i]
  const float* weight_scales;  ///< of row j and block l: [l * weight_blocks + j / 128]
  std::int32_t x_scale_pitch;  ///< 0: a token has one factor
  std::int32_t weight_blocks;  ///< ceil(rows of the weight / 128)
};

/// Elements of K between two hand-overs, which is a step: scales are constant in it.
inline constexpr int kE4m3ScaleBlock = 128;

/// Tiles of sm100_e4m3_gemm_TILE.
inline constexpr BlockScaledTile kE4m3Tiles[] = {{1, 128, 1}, {2, 256, 1}};
/// That of sm100_e4m3_gemm_few, at its widest.
inline constexpr BlockScaledConfig kE4m3FewConfig = {BlockScaledKind::kE4m3, {1, 64, 1}, true};

}  // namespace tilewright::kernels
