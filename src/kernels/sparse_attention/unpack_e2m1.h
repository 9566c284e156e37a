// e2m1 codes in their natural order (element 2i in the low half of byte i) to bf16, by looking up
// the bytes of the eight magnitudes. Eight codes cost 18 instructions and 4 multiplications of
// pairs. Exact wherever the result is a normal bf16.
#pragma once

#include "tile/bf16_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// Four codes, in the low 16 bits, as two pairs of bf16. `signs`: nibble i is 9 where code i is
/// negative, else 0.
__device__ inline void place_e2m1(std::uint32_t (&pairs)[2], std::uint32_t magnitudes,
                                  std::uint32_t signs) {
  // 0, 0.5, 1, 1.5, 2, 3, 4, 6 are 0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0.
  const std::uint32_t low = __byte_perm(0xc0800000u, 0xc0804000u, magnitudes);
  // Selector 9 repeats the sign of byte 1 in all bits.
  const std::uint32_t high = __byte_perm(0x3f3f3f00u, 0x40404040u, magnitudes) |
                             (__byte_perm(0x00008000u, 0, signs) & 0x80808080u);
  pairs[0] = __byte_perm(low, high, 0x5140);
  pairs[1] = __byte_perm(low, high, 0x7362);
}

/// Eight codes as bf16, times a factor.
__device__ inline uint4 decode_e2m1(std::uint32_t codes, std::uint32_t factor) {
  const std::uint32_t magnitudes = codes & 0x77777777u, minus = codes & 0x88888888u;
  const std::uint32_t signs = minus | minus >> 3;
  std::uint32_t pairs[2][2];
  place_e2m1(pairs[0], magnitudes, signs);
  place_e2m1(pairs[1], magnitudes >> 16, signs >> 16);
  return make_uint4(mul_bf16x2(pairs[0][0], factor), mul_bf16x2(pairs[0][1], factor),
                    mul_bf16x2(pairs[1][0], factor), mul_bf16x2(pairs[1][1], factor));
}

}  // namespace tilewright::tile
