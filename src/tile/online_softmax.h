// Softmax over the columns of warpgroup-MMA accumulators, one tile of columns after another. Scores
// are kept in units of log2: exp(x) = 2^(x log2 e), with log2 e folded into the scale, so that an
// exponential is one fused multiply-add and one ex2.
#pragma once

#include "ptx/math.h"
#include "tile/accumulator_rows.h"
#include "tile/row_end.h"
#include "tile/warp.h"

namespace tilewright::tile {

/// Running maximum (of unscaled scores; see raise_reference) and sum of a thread's two rows. The
/// sum is the thread's own columns' only; the quad adds up once, at the end.
struct OnlineSoftmax {
  float max[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};

  /// Takes the scores of one more tile into the maxima; `base` is what exponents are relative to,
  /// `correction` what earlier sums and results are to be multiplied with. With MayBeEmpty a row
  /// may have seen -inf only.
  template <bool MayBeEmpty, int Count>
  __device__ void raise_maximum(const float (&s)[Count], float scale, float (&base)[2],
                                float (&correction)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = fmaxf(max[h], quad_max(row_maximum(s, h)));
      // Of a row without a visible key all exponents are -inf - 0, not -inf + inf.
      base[h] = MayBeEmpty && top == -INFINITY ? 0.0f : top * scale;
      correction[h] = ptx::ex2_approx_ftz_f32(fmaf(max[h], scale, -base[h]));
      max[h] = top;
    }
  }

  /// The same, but `max` stays behind the maxima until one has grown by a factor of 2^8: any
  /// reference near the maximum gives the same quotients. True if a row of the warp has moved, and
  /// results must be multiplied with `correction`; after the first tile that is rare.
  template <bool MayBeEmpty, int Count>
  __device__ bool raise_reference(const float (&s)[Count], float scale, float (&base)[2],
                                  float (&correction)[2]) {
    bool has_grown[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = quad_max(row_maximum(s, h));
      const float growth = (top - max[h]) * scale;  // not a number if both are -inf: no growth
      has_grown[h] = growth > kRescaleAbove;
      correction[h] = has_grown[h] ? ptx::ex2_approx_ftz_f32(-growth) : 1.0f;
      if (has_grown[h]) max[h] = top;
      base[h] = MayBeEmpty && max[h] == -INFINITY ? 0.0f : max[h] * scale;
    }
    return __any_sync(0xffffffffu, has_grown[0] || has_grown[1]);
  }

  /// s becomes exp2(scale * s - base), and goes into the sums.
  template <int Count>
  __device__ void exponentiate(float (&s)[Count], float scale, const float (&base)[2],
                               const float (&correction)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float part = 0.0f;
#pragma unroll
      for (int i = 0; i < Count; i += 4) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& x = s[i + 2 * h + c];
          x = ptx::ex2_approx_ftz_f32(fmaf(x, scale, -base[h]));
          part += x;
        }
      }
      sum[h] = fmaf(sum[h], correction[h], part);
    }
  }

  /// One tile: raise_maximum(), then exponentiate().
  template <bool MayBeEmpty, int Count>
  __device__ void update(float (&s)[Count], float scale, float (&correction)[2]) {
    float base[2];
    raise_maximum<MayBeEmpty>(s, scale, base, correction);
    exponentiate(s, scale, base, correction);
  }
};

}  // namespace tilewright::tile
