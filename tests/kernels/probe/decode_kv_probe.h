// Contract of the probes of rows of caches becoming bf16: one thread 16 codes.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct DecodeKvProbeParams {
  const std::uint32_t* codes;   ///< [count][4] e4m3, [count][2] e2m1 (element 2i in the low half)
  const std::uint32_t* scales;  ///< [count]: ue8m0 or e4m3, in byte 0
  std::uint32_t* bf16;          ///< [count][8]
  std::int32_t count;
};

inline constexpr int kDecodeKvProbeThreads = 128;

}  // namespace tilewright::kernels
