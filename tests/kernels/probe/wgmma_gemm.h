// Contract of the warp-specialised GEMM: tensor copies into a ring of stages, warpgroup MMAs out of
// it, and persistent CTAs that draw their tiles from a counter.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// d[i,j] = sum_l a[i,l] * b[j,l], accumulated in f32 by the tensor core.
///
/// Maps, all with swizzle 128B; rows hold multiples of 16 bytes and are contiguous:
///   a_map  [m, k]  boxes of kWgmmaGemmTileK bytes x kWgmmaGemmTile rows, zeros outside
///   b_map  [n, k]  likewise
///   d_map  [m, n]  boxes of kWgmmaGemmTileK bytes x 64 rows
/// m, n and k may be anything; k = 0 gives zeros (the maps of a and b are not used then).
struct WgmmaGemmParams {
  alignas(64) std::uint8_t a_map[128];  ///< the driver's opaque CUtensorMap
  alignas(64) std::uint8_t b_map[128];
  alignas(64) std::uint8_t d_map[128];
  std::uint32_t* next_tile;  ///< [1], starts at 0; afterwards the number of tiles and CTAs
  std::int32_t tiles_m;      ///< ceil(m / kWgmmaGemmTile)
  std::int32_t tiles_n;      ///< ceil(n / kWgmmaGemmTile)
  std::int32_t steps_k;      ///< ceil(k in bytes / kWgmmaGemmTileK)
};

/// Entries wgmma_gemm_TYPES_FORM: TYPES are those of a and b, and of d: bf16_f32, bf16_bf16,
/// e4m3_f32, e4m3_bf16; FORM is ss (a from shared memory) or rs (from registers). Any grid.
inline constexpr int kWgmmaGemmTile = 128;   ///< rows of a, rows of b
inline constexpr int kWgmmaGemmTileK = 128;  ///< bytes
inline constexpr int kWgmmaGemmBoxRowsD = 64;
inline constexpr int kWgmmaGemmThreads = 3 * 128;  ///< the first warpgroup produces
inline constexpr int kWgmmaGemmStages = 4;
inline constexpr int kWgmmaGemmAlignment = 1024;
inline constexpr int kWgmmaGemmStageBytes = 2 * kWgmmaGemmTile * kWgmmaGemmTileK;
/// Dynamic shared memory to launch with; d_bytes = size of an element of d.
constexpr int wgmma_gemm_shared_bytes(int d_bytes) {
  return kWgmmaGemmStages * kWgmmaGemmStageBytes + kWgmmaGemmTile * kWgmmaGemmTile * d_bytes +
         kWgmmaGemmAlignment;
}

}  // namespace tilewright::kernels
