// Contract of the warp-level probes: one warp executes one mma.sync, ldmatrix or stmatrix on raw
// registers and a raw image of shared memory, and hands both back.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct WarpProbeParams {
  const std::uint32_t*
      registers_in;  ///< [32][kWarpProbeRegisters]: A, then B, then C; or what is stored
  std::uint32_t*
      registers_out;  ///< [32][kWarpProbeRegisters]: D, or what was loaded; the rest is untouched
  const std::uint32_t* shared_in;  ///< kWarpProbeSharedBytes, copied to shared memory first
  std::uint32_t* shared_out;       ///< the same bytes afterwards
};

inline constexpr int kWarpProbeRegisters = 10;
inline constexpr int kWarpProbeSharedBytes =
    512;  ///< four 8x8 matrices of 16-bit elements, row after row
inline constexpr int kWarpProbeRowBytes = 16;

}  // namespace tilewright::kernels
