// The Hadamard transform of 128 numbers in eight neighbouring lanes, 16 neighbours each.
#pragma once

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kHadamardDims = 128, kHadamardLanes = 8;
inline constexpr int kHadamardPerLane = kHadamardDims / kHadamardLanes;

/// x = H x * 128^-0.5 in the order of Sylvester (reference/hadamard.h), without signs: butterflies
/// over distances 1, 2, 4, ... 64 in fp32, each sum rounded, the factor last. All lanes of a warp
/// together: four transforms.
__device__ inline void hadamard_128(float (&x)[kHadamardPerLane]) {
#pragma unroll
  for (int distance = 1; distance < kHadamardPerLane; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kHadamardPerLane; ++i) {
      if (i & distance) continue;
      const float a = x[i], b = x[i + distance];
      x[i] = __fadd_rn(a, b);
      x[i + distance] = __fadd_rn(a, -b);
    }
  }
  const auto lane = static_cast<int>(threadIdx.x % kHadamardLanes);
#pragma unroll
  for (int lanes = 1; lanes < kHadamardLanes; lanes *= 2) {
    const bool is_upper = (lane & lanes) != 0;
#pragma unroll
    for (int i = 0; i < kHadamardPerLane; ++i) {
      const float other = __shfl_xor_sync(~0u, x[i], lanes);
      x[i] = __fadd_rn(other, is_upper ? -x[i] : x[i]);
    }
  }
  constexpr float kFactor = 0x1.6a09e6p-4f;  // 128^-0.5
#pragma unroll
  for (float& value : x) value = __fmul_rn(value, kFactor);
}

}  // namespace tilewright::tile
