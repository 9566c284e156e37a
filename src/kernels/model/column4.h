// Four neighbouring elements of a row, bf16 or f32 in memory, f32 in registers.
#pragma once

#include "tile/element.h"

#include <cstdint>

namespace tilewright::tile {

/// Four neighbours of a row.
struct Column4 {
  float v[4];
};

__device__ inline Column4 load4(const float* from) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}
__device__ inline Column4 load4(const std::uint16_t* from) {
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  const float2 a = Bf16::unpack(words.x), b = Bf16::unpack(words.y);
  return {{a.x, a.y, b.x, b.y}};
}
__device__ inline Column4 load4(const void* base, std::int64_t index, bool is_f32) {
  return is_f32 ? load4(static_cast<const float*>(base) + index)
                : load4(static_cast<const std::uint16_t*>(base) + index);
}

/// Stores, and leaves in x what a reader would find.
__device__ inline void store4(float* to, Column4& x) {
  *reinterpret_cast<float4*>(to) = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
}
__device__ inline void store4(std::uint16_t* to, Column4& x) {
  const uint2 words = make_uint2(Bf16::pack(x.v[0], x.v[1]), Bf16::pack(x.v[2], x.v[3]));
  *reinterpret_cast<uint2*>(to) = words;
  const float2 a = Bf16::unpack(words.x), b = Bf16::unpack(words.y);
  x = {{a.x, a.y, b.x, b.y}};
}

/// The sum over the lanes of a warp, in all of them.
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

__device__ inline float dot4(const Column4& a, const Column4& b, float sum) {
#pragma unroll
  for (int i = 0; i < 4; ++i) sum = fmaf(a.v[i], b.v[i], sum);
  return sum;
}

}  // namespace tilewright::tile
