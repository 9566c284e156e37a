// Contract of the tiled SGEMM: f32 matrices of any size, tiles in shared memory, scalar arithmetic.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// c[i,j] = sum_l a[i,l] * b[l,j], f32 fused multiply-adds in order of l.
struct TiledSgemmParams {
  const float* a;  ///< [m, k], contiguous
  const float* b;  ///< [k, n], contiguous
  float* c;        ///< [m, n], contiguous
  std::int32_t m, n, k;
};

/// Grid (ceil(n / tile), ceil(m / tile)).
inline constexpr int kTiledSgemmTile = 64;
inline constexpr int kTiledSgemmTileK = 16;
inline constexpr int kTiledSgemmThreads = 256;  ///< 16 x 16, each with 4 x 4 results

}  // namespace tilewright::kernels
