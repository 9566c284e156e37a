// Eight-bit floats and powers of two as numbers.
#pragma once

#include "tile/element.h"

#include <cstdint>

#include <cuda_fp8.h>

namespace tilewright::tile {

/// 2^(byte - 127); 255 is NaN.
__device__ inline float unpack_e8m0(std::uint32_t byte) {
  if (byte == 0) return 0x1p-127f;
  return __uint_as_float(byte == 255 ? 0x7fc00000u : byte << 23);
}

__device__ inline float unpack_e4m3(std::uint32_t byte) {
  const auto code = static_cast<__nv_fp8_storage_t>(byte);
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

/// 16 e4m3 times a scale, as 16-bit numbers.
template <class Element>
__device__ void unpack_e4m3(uint4 (&out)[2], const uint4& codes, float scale) {
  const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
  std::uint32_t pairs[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto code = static_cast<__nv_fp8x2_storage_t>(words[i / 2] >> i % 2 * 16);
    const float2 x = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(code, __NV_E4M3)));
    pairs[i] = Element::pack(x.x * scale, x.y * scale);
  }
  out[0] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  out[1] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
}

}  // namespace tilewright::tile
