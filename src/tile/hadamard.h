// The Hadamard transform in the order of Sylvester (reference/hadamard.h): butterflies in registers
// and over neighbouring lanes.
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

/// A lane's signs in exchange_butterflies.
struct LaneSigns {
  float factor;        ///< +-1
  std::uint32_t bits;  ///< of the other summand

  __device__ float apply(float own, float other) const {
    return __fmaf_rn(factor, other, __uint_as_float(__float_as_uint(own) ^ bits));
  }
};

/// Passes over distance 4 of registers and over neighbouring Lanes, with one shuffle for two
/// numbers: of x[i] and x[i + 4] a lane keeps one and gives the other away, for the one that its
/// neighbour does not keep. So numbers change places: before, register 8 j + e of lane l was number
/// 8 (Lanes j + l) + e; behind, 8 j + 4 h + e (h < 2, e < 4) is 4 (Lanes (2 j + h) + l) + e. Sums
/// and differences are those of butterflies, of the same operands. All lanes of a warp together.
template <int Lanes, int N>
__device__ void exchange_butterflies(float (&x)[N]) {
  constexpr int kPasses = Lanes == 2 ? 1 : Lanes == 4 ? 2 : 3;
  static_assert(1 << kPasses == Lanes);
  // A difference is that of the even lane's number and the odd one's.
  constexpr LaneSigns kSum = {1.0f, 0};
  constexpr std::uint32_t kSign = 0x80000000u;
  LaneSigns difference[kPasses], kept[kPasses], given[kPasses];
  const std::uint32_t lane = static_cast<std::uint32_t>(ptx::mov_tid_x());
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const bool is_odd = (lane >> pass & 1) != 0, keeps_difference = (lane >> (pass + 1) & 1) != 0;
    difference[pass] = is_odd ? LaneSigns{1.0f, kSign} : LaneSigns{-1.0f, 0};
    kept[pass] = keeps_difference ? difference[pass] : kSum;
    given[pass] = keeps_difference ? kSum : difference[pass];
  }
  const float first = (lane & 1) != 0 ? -1.0f : 1.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i & 4) continue;
    float keep = __fmaf_rn(first, x[i + 4], x[i]), give = __fmaf_rn(-first, x[i + 4], x[i]);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const float other = __shfl_xor_sync(~0u, give, 1 << pass);
      if (pass == kPasses - 1) {
        x[i] = __fadd_rn(keep, other);
        x[i + 4] = difference[pass].apply(keep, other);
      } else {
        give = given[pass].apply(keep, other);
        keep = kept[pass].apply(keep, other);
      }
    }
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
