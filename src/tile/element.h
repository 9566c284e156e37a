// The 16-bit formats of operands and results: two of them are a register.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace tilewright::tile {

struct Bf16 {
  static __device__ std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  static __device__ float2 unpack(std::uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
  }
};

struct Fp16 {
  static __device__ std::uint32_t pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  static __device__ float2 unpack(std::uint32_t pair) {
    return __half22float2(*reinterpret_cast<const __half2*>(&pair));
  }
};

/// Eight neighbours, 16 bytes, as f32.
template <class Element>
__device__ void unpack_chunk(float (&x)[8], const uint4& chunk) {
  const std::uint32_t words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = Element::unpack(words[i]);
    x[2 * i] = pair.x;
    x[2 * i + 1] = pair.y;
  }
}

/// Eight neighbours, scaled and rounded.
template <class Element>
__device__ uint4 pack_chunk(const float* x, float factor) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = Element::pack(x[2 * i] * factor, x[2 * i + 1] * factor);
  return make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace tilewright::tile
