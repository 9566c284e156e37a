// Contract of the probes of FP4 decoding: one thread a word of eight codes.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct DecodeFp4ProbeParams {
  const std::uint32_t* words;   ///< [count], packed_weight.h
  const std::uint32_t* scales;  ///< [count]: byte 0 of row g, byte 3 of row g + 8
  std::uint32_t* bf16;          ///< [count][4]
  std::uint32_t* e4m3;          ///< [count][2]; braided words only
  std::int32_t count;
};

inline constexpr int kDecodeFp4ProbeThreads = 128;

}  // namespace tilewright::kernels
