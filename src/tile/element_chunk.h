// Eight neighbours of a 16-bit format, 16 bytes: what a thread loads or stores at once.
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// As f32.
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

/// Scaled and rounded.
template <class Element>
__device__ uint4 pack_chunk(const float* x, float factor) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = Element::pack(x[2 * i] * factor, x[2 * i + 1] * factor);
  return make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace tilewright::tile
