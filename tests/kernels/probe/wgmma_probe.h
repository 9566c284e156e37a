// Contract of the wgmma probes: one warpgroup executes one wgmma on operands that the host laid
// out, and hands back its raw accumulator registers.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct WgmmaProbeParams {
  const std::uint32_t* shared_image;  ///< contents of shared memory, shared_bytes long
  const std::uint32_t* a_registers;   ///< [128][4] A fragments; unused by the _ss kernels
  std::uint64_t a_descriptor;         ///< with a start address relative to the image; unused by _rs
  std::uint64_t b_descriptor;         ///< likewise
  float* accumulators;                ///< [128][N/2] out
  std::uint32_t shared_bytes;         ///< multiple of 4, at most kWgmmaProbeMaxBytes
};

inline constexpr int kWgmmaProbeThreads = 128;
inline constexpr int kWgmmaProbeAlignment =
    1024;  ///< of the image: the period of the widest swizzle
inline constexpr int kWgmmaProbeMaxBytes = 32 * 1024;
/// Dynamic shared memory to launch with: the image, wherever the base of shared memory happens to
/// lie.
inline constexpr int kWgmmaProbeSharedBytes = kWgmmaProbeMaxBytes + kWgmmaProbeAlignment;

}  // namespace tilewright::kernels
