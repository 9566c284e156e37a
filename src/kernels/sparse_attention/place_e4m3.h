// e4m3 codes to bf16 by placing bits: sign and magnitude of a code are those of a bf16 2^120 times
// smaller, whose exponent field is the code's (0, subnormal, included), and one multiplication puts
// the exponent right. Exact wherever the result is a normal bf16. NaN is not kept: it becomes 480.
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// Four codes in order, times 2^-120.
__device__ inline void place_e4m3(std::uint32_t (&pairs)[2], std::uint32_t codes) {
  const std::uint32_t high = (codes >> 4 & 0x07070707u) | (codes & 0x80808080u);
  const std::uint32_t low = codes << 4 & 0xf0f0f0f0u;
  pairs[0] = __byte_perm(low, high, 0x5140);
  pairs[1] = __byte_perm(low, high, 0x7362);
}

/// 2^byte as bf16, for bytes up to 127.
__device__ inline std::uint32_t power_factors(std::uint32_t bytes) {
  return bytes * 128 + 127 * 128 * 0x00010001u;
}

}  // namespace tilewright::tile
