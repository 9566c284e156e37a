// Softmax whose weights become e4m3: rows, registers and units as in online_softmax.h.
//
// Weights are 2^(s - maximum + 7) instead of 2^(s - maximum): e4m3 ends at 448 and begins at 2^-9,
// and what is below is lost, so the largest weight goes near the upper end. A row's reference stays
// where it is until a weight would leave the format; one bit of room halves how often that happens.
//
// A tile of keys has `Parts` parts of as many columns, with scales of their own.
#pragma once

#include "ptx/math.h"
#include "tile/accumulator_rows.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// log2 of a weight whose score is the maximum when the reference moves, and of the largest one
/// that there may be: 2^8.8 = 445.7, the largest number of e4m3 is 448.
inline constexpr float kWeightAtMaximum = 7.0f, kLargestWeight = 8.8f;

struct Fp8Softmax {
  /// Weights are 2^(scale * s - base).
  float base[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};  ///< the thread's own columns' only

  /// Moves the reference of a row if a score of one more tile asks for it; `correction` is what
  /// earlier sums and results are to be multiplied with. True if a row of the warp has moved.
  template <int Count, int Parts>
  __device__ bool raise(const float (&s)[Count], const float (&scale)[Parts],
                        float (&correction)[2]) {
    constexpr int kOfPart = Count / Parts;
    bool has_grown[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = -INFINITY;
#pragma unroll
      for (int i = 0; i < Parts; ++i) {
        const auto& part = reinterpret_cast<const float(&)[kOfPart]>(s[i * kOfPart]);
        largest = fmaxf(largest, row_maximum(part, h) * scale[i]);
      }
      const float top = quad_max(largest);
      has_grown[h] = top > base[h] + kLargestWeight;
      const float raised = top - kWeightAtMaximum;
      correction[h] = has_grown[h] ? ptx::ex2_approx_ftz_f32(base[h] - raised) : 1.0f;
      if (has_grown[h]) base[h] = raised;
    }
    return __any_sync(0xffffffffu, has_grown[0] || has_grown[1]);
  }
  /// What exponents of row h are relative to. With MayBeEmpty it may have seen -inf only: then
  /// exponents are -inf - 0, not -inf + inf.
  template <bool MayBeEmpty>
  __device__ float base_of(int h) const {
    return MayBeEmpty && base[h] == -INFINITY ? 0.0f : base[h];
  }

  /// s becomes 2^(scale * s - from), and that without 2^value_log2 goes into the sums: weights of
  /// parts whose values have smaller scales are smaller, HasValueScales.
  template <bool HasValueScales, int Count, int Parts>
  __device__ void exponentiate(float (&s)[Count], const float (&scale)[Parts],
                               const float (&from)[2][Parts], const float (&correction)[2],
                               const float (&value_log2)[Parts]) {
    constexpr int kOfPart = Count / Parts;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = 0.0f;
#pragma unroll
      for (int part = 0; part < Parts; ++part) {
        float partial[2] = {};
#pragma unroll
        for (int i = 0; i < kOfPart; i += 4) {
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& x = s[part * kOfPart + i + 2 * h + c];
            x = ptx::ex2_approx_ftz_f32(fmaf(x, scale[part], -from[h][part]));
            partial[c] += x;
          }
        }
        const float all = partial[0] + partial[1];
        total = HasValueScales ? fmaf(all, ptx::ex2_approx_ftz_f32(-value_log2[part]), total)
                               : total + all;
      }
      sum[h] = fmaf(sum[h], correction[h], total);
    }
  }
};

}  // namespace tilewright::tile
