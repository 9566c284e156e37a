// e4m3 codes with power-of-two scales to bf16: codes are placed (place_e4m3.h), and the scale is
// part of the multiplication that puts the exponent right. Four codes cost 7 instructions and 2
// multiplications of pairs.
#pragma once

#include "kernels/sparse_attention/place_e4m3.h"
#include "tile/bf16_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// Largest ue8m0 byte whose scale, 2^(byte - 127 + 120), is a bf16.
inline constexpr std::uint32_t kMaxPlacedScale = 134;

/// Byte `index` of a word in both halves of another.
__device__ inline std::uint32_t spread_byte(std::uint32_t word, int index) {
  return __byte_perm(word, 0, scale_selector(static_cast<std::uint32_t>(index)));
}
/// 2^(byte - 127 + 120) as bf16, for bytes up to kMaxPlacedScale: both halves at once.
__device__ inline std::uint32_t placed_e4m3_factors(std::uint32_t bytes) {
  return bytes * 128 + 120 * 128 * 0x00010001u;
}
/// The larger part of a scale that has such a factor.
__device__ inline std::uint32_t placed_part(std::uint32_t bytes) {
  return __vminu2(bytes, kMaxPlacedScale * 0x00010001u);
}
/// Is one of four ue8m0 above kMaxPlacedScale?
__device__ inline bool has_large_scale(std::uint32_t scales) {
  return (((scales & 0x7f7f7f7fu) + 0x79797979u) & scales & 0x80808080u) != 0;
}

/// 2^120 in both halves: what place_e4m3() leaves out.
inline constexpr std::uint32_t kPlacedE4m3 = 0x7b807b80u;

/// Numbers >= 0 themselves as bf16: bytes as of spread_byte().
__device__ inline std::uint32_t e4m3_factors(std::uint32_t bytes) {
  return mul_bf16x2((bytes & 0x007f007fu) << 4, kPlacedE4m3);
}

/// 16 codes as bf16, times a factor.
__device__ inline void decode_e4m3(std::uint32_t (&out)[8], const uint4& codes,
                                   std::uint32_t factor) {
  const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    std::uint32_t pairs[2];
    place_e4m3(pairs, words[i]);
    out[2 * i] = mul_bf16x2(pairs[0], factor);
    out[2 * i + 1] = mul_bf16x2(pairs[1], factor);
  }
}

}  // namespace tilewright::tile
