// e4m3 codes times scales in fp32: a scale is the sum of two bf16, up to 2^-18 of it, and two more
// multiplications make the results those of code times scale rounded once, but for 2^-8 units in
// the last place. Four codes cost 7 instructions and 4 multiplications of pairs.
#pragma once

#include "kernels/sparse_attention/place_e4m3.h"
#include "tile/bf16_pair.h"
#include "tile/element.h"

#include <cstdint>

#include <cuda_bf16.h>

namespace tilewright::tile {

/// a b + c of pairs of bf16, rounded once.
__device__ inline std::uint32_t fma_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const __nv_bfloat162 sum = __hfma2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                     *reinterpret_cast<const __nv_bfloat162*>(&b),
                                     *reinterpret_cast<const __nv_bfloat162*>(&c));
  return *reinterpret_cast<const std::uint32_t*>(&sum);
}

/// A finite fp32 scale, not below 0, as the factors of placed codes: (high + low) * 2^rest.
struct PlacedScale {
  std::uint32_t high, low;  ///< both halves alike
  std::uint32_t rest;  ///< from 2^7 on a scale times 2^120 is no bf16; what decode() leaves out

  __device__ explicit PlacedScale(float scale) {
    constexpr std::uint32_t kLargest = 127 + 6;  // exponents
    const std::uint32_t bits = __float_as_uint(scale), exponent = bits >> 23;
    rest = max(exponent, kLargest) - kLargest;
    const float placed = __uint_as_float(bits - (rest << 23)) * 0x1p120f;
    high = Bf16::pack(placed, placed);
    const float left = placed - __uint_as_float(high << 16);
    low = Bf16::pack(left, left);
  }

  __device__ bool has_rest() const { return rest != 0; }
  /// Codes in order, times the scale but for its rest.
  __device__ void decode(std::uint32_t (&out)[4], const uint2& codes) const {
    const std::uint32_t words[2] = {codes.x, codes.y};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      std::uint32_t pairs[2];
      place_e4m3(pairs, words[i]);
#pragma unroll
      for (int j = 0; j < 2; ++j)
        out[2 * i + j] = fma_bf16x2(pairs[j], high, mul_bf16x2(pairs[j], low));
    }
  }
  /// Of decode()'s results.
  __device__ void enlarge(std::uint32_t (&out)[4]) const {
    const std::uint32_t factor = power_factors(rest * 0x00010001u);
#pragma unroll
    for (std::uint32_t& word : out) word = mul_bf16x2(word, factor);
  }
};

}  // namespace tilewright::tile
