// Contract of the mma.sync GEMM: bf16 matrices of any size by warp-level tensor-core instructions.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// c[i,j] = sum_l a[i,l] * b[j,l], bf16 products accumulated in f32.
struct MmaSyncGemmParams {
  const std::uint16_t* a;  ///< [m, k] bf16, rows lda elements apart, 16-byte aligned
  const std::uint16_t* b;  ///< [n, k] bf16, rows ldb elements apart, 16-byte aligned
  float* c;                ///< [m, n], contiguous
  std::int32_t m, n, k;    ///< any, also 0
  std::int32_t lda, ldb;   ///< multiples of 8, at least k; what lies beyond k is not used
};

/// Grid (ceil(n / tile), ceil(m / tile)).
inline constexpr int kMmaSyncGemmTile = 64;
inline constexpr int kMmaSyncGemmTileK = 32;
inline constexpr int kMmaSyncGemmThreads = 128;  ///< 2 x 2 warps of 32 x 32 results

}  // namespace tilewright::kernels
