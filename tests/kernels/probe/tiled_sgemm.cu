// targets: sm_90a sm_100f
//
// The matrix product of every CUDA course: tiles of A and B in shared memory, 4 x 4 results in the
// registers of a thread. Predicated loads, CTA barriers, vector loads from shared memory.
#include "kernels/probe/tiled_sgemm.h"

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kTiledSgemmThreads)
    tiled_sgemm(const __grid_constant__ tilewright::kernels::TiledSgemmParams params) {
  using namespace tilewright::kernels;
  constexpr int kTile = kTiledSgemmTile, kTileK = kTiledSgemmTileK;
  constexpr int kPad = 4;  // spreads the transposed writes over the banks, keeps 16-byte alignment
  __shared__ alignas(16) float a_tile[kTileK][kTile + kPad];
  __shared__ alignas(16) float b_tile[kTileK][kTile + kPad];
  const int thread = static_cast<int>(threadIdx.x);
  const int row0 = static_cast<int>(blockIdx.y) * kTile,
            col0 = static_cast<int>(blockIdx.x) * kTile;
  const int tx = thread % 16, ty = thread / 16;

  float c[4][4] = {};
  for (int k0 = 0; k0 < params.k; k0 += kTileK) {
#pragma unroll
    for (int i = thread; i < kTile * kTileK; i += kTiledSgemmThreads) {
      const int a_row = row0 + i / kTileK, a_col = k0 + i % kTileK;
      const bool has_a = a_row < params.m && a_col < params.k;
      a_tile[i % kTileK][i / kTileK] =
          has_a ? params.a[static_cast<std::int64_t>(a_row) * params.k + a_col] : 0.0f;
      const int b_row = k0 + i / kTile, b_col = col0 + i % kTile;
      const bool has_b = b_row < params.k && b_col < params.n;
      b_tile[i / kTile][i % kTile] =
          has_b ? params.b[static_cast<std::int64_t>(b_row) * params.n + b_col] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTileK; ++l) {
      const float4 a4 = *reinterpret_cast<const float4*>(&a_tile[l][ty * 4]);
      const float4 b4 = *reinterpret_cast<const float4*>(&b_tile[l][tx * 4]);
      const float a[4] = {a4.x, a4.y, a4.z, a4.w}, b[4] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) c[i][j] = fmaf(a[i], b[j], c[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + ty * 4 + i, col = col0 + tx * 4 + j;
      if (row < params.m && col < params.n)
        params.c[static_cast<std::int64_t>(row) * params.n + col] = c[i][j];
    }
  }
}
