// Softmax over the columns of warpgroup-MMA accumulators, one tile of columns after another.
//
// A thread holds columns 8j + 2q + c of rows r and r + 8 (register 4j + 2h + c, h the row); the
// four threads of a quad share the rows. Scores are kept in units of log2: exp(x) = 2^(x log2 e),
// with log2 e folded into the scale, so that an exponential is one fused multiply-add and one ex2.
#pragma once

#include "arch/register_index.h"
#include "ptx/math.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// tanh(x ln 2 / 2), i.e. (2^x - 1) / (2^x + 1), exact to about 2^-21; the hardware's own tanh is
/// off by 2^-11, which a softcap of 50 would turn into an error of 0.02 in a score.
__device__ inline float tanh_of_half(float x) {
  return 1.0f - 2.0f * __fdividef(1.0f, 1.0f + ptx::ex2_approx_ftz_f32(x));
}

/// The largest of a thread's scores in row h, over four partial maxima: one chain of them all
/// would be as long as the tile is wide.
template <int Count>
__device__ float row_maximum(const float (&s)[Count], int h) {
  float top[4] = {s[2 * h], s[2 * h + 1], s[2 * h + 4], s[2 * h + 5]};
#pragma unroll
  for (int i = 8; i < Count; i += 4) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float& part = top[i / 4 % 2 * 2 + c];
      part = fmaxf(part, s[i + 2 * h + c]);
    }
  }
  return fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3]));
}

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

/// Multiplies the two rows of accumulators.
template <int Count>
__device__ inline void scale_rows(float (&o)[Count], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) o[i] *= factor[arch::accumulator_row(i)];
}

}  // namespace tilewright::tile
