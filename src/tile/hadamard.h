// The Hadamard transform in the order of Sylvester (reference/rotation/hadamard.h): butterflies in
// registers and over neighbouring lanes.
#pragma once

#include "ptx/special_registers.h"

#include <cstdint>

namespace tilewright::tile {

/// One pass over registers: x[i], x[i + distance] become their sum and difference, each rounded.
template <int N>
__device__ void butterflies(float (&x)[N], int distance) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i & distance) continue;
    const float a = x[i], b = x[i + distance];
    x[i] = __fadd_rn(a, b);
    x[i + distance] = __fadd_rn(a, -b);
  }
}

/// One pass over lanes that are `lanes` apart. All lanes of a warp together.
template <int N>
__device__ void lane_butterflies(float (&x)[N], int lanes) {
  const float sign = (ptx::mov_tid_x() & lanes) != 0 ? -1.0f : 1.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float other = __shfl_xor_sync(~0u, x[i], lanes);
    x[i] = __fmaf_rn(x[i], sign, other);  // rounds the sum once: the product is exact
  }
}

inline constexpr int kHadamardDims = 128, kHadamardLanes = 8;
inline constexpr int kHadamardPerLane = kHadamardDims / kHadamardLanes;

/// x = H x * 128^-0.5 of 128 numbers in eight neighbouring lanes, 16 neighbours each, without
/// signs: butterflies over distances 1, 2, 4, ... 64 in fp32, the factor last. All lanes of a warp
/// together: four transforms.
__device__ inline void hadamard_128(float (&x)[kHadamardPerLane]) {
#pragma unroll
  for (int distance = 1; distance < kHadamardPerLane; distance *= 2) butterflies(x, distance);
#pragma unroll
  for (int lanes = 1; lanes < kHadamardLanes; lanes *= 2) lane_butterflies(x, lanes);
  constexpr float kFactor = 0x1.6a09e6p-4f;  // 128^-0.5
#pragma unroll
  for (float& value : x) value = __fmul_rn(value, kFactor);
}

}  // namespace tilewright::tile
