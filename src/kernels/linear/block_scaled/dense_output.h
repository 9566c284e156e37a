// Results of the bf16 GEMM: a bias by columns, then bf16 or f32, as the launch says.
#pragma once

#include "kernels/linear/block_scaled/results.h"

#include <cstdint>

namespace tilewright::tile {

/// A run is staged as bf16 at once, or as f32 in two pieces of 32 columns: 128-byte rows, swizzled,
/// either way.
///
/// Params   d_map: bf16 [m, n] in boxes of 64 columns x 32 rows, or f32 in boxes of 32 x 32,
///          swizzle 128B; has_d_map = 1
struct DenseOutput {
  static constexpr int kRowBytes = 128;
  static constexpr bool kHasScales = false;
  static constexpr int kPieces = 2;

  static __device__ int pieces(const BlockScaledGemmParams& params) {
    return params.is_d_f32 != 0 ? 2 : 1;
  }

  static __device__ void prepare(const BlockScaledGemmParams& params, float (&x)[kRun],
                                 std::int32_t column) {
    if (params.bias == nullptr) return;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      // What stands behind the last column is not stored.
      x[i] += params.bias[min(column + i, params.n - 1)];
    }
  }

  static __device__ void write_piece(const BlockScaledGemmParams& params, const float (&x)[kRun],
                                     int piece, const RunAt& at) {
    const std::uint32_t row = at.staging + threadIdx.x % 32 * kRowBytes;
#pragma unroll
    for (int i = 0; i < kRowBytes / 16; ++i) {
      auto* const to = static_cast<uint4*>(
          __cvta_shared_to_generic(arch::swizzle_address(arch::SmemSwizzle::k128B, row + i * 16)));
      if (params.is_d_f32 != 0) {
        const float* const four = &x[piece * (kRun / 2) + 4 * i];
        *to = make_uint4(__float_as_uint(four[0]), __float_as_uint(four[1]),
                         __float_as_uint(four[2]), __float_as_uint(four[3]));
      } else if (piece == 0) {
        *to = pack_chunk<Bf16>(&x[i * 8], 1.0f);
      }
    }
  }
};

}  // namespace tilewright::tile
