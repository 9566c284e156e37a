// Softmax with a row a thread: what Tensor Memory gives, where lane = row. No shuffles, and one
// number each for maximum and sum. Scores are in units of log2 once scaled.
#pragma once

#include "kernels/attention/mask.h"
#include "ptx/math.h"
#include "tile/row_end.h"

#include <cstdint>

namespace tilewright::tile {

/// 2^x by fused multiply-adds, for x <= 8, off by at most 8.9e-5: the multiply-add units do 128 a
/// clock, the special-function units 16. The integer part of x goes straight into the exponent:
/// added to 1.5 * 2^23 and rounded down, it stands in the lowest bits. What is below 2^-127 becomes
/// that.
__device__ inline float ex2_cubic(float x) {
  constexpr float kShift = 12582912.0f;
  const float clamped = fmaxf(x, -127.0f), shifted = __fadd_rd(clamped, kShift);
  const float fraction = clamped - (shifted - kShift);
  float y = fmaf(fraction, 0.07711909f, 0.22756439f);
  y = fmaf(fraction, y, 0.69514614f);
  y = fmaf(fraction, y, 1.0f);
  return __uint_as_float(__float_as_uint(y) + (__float_as_uint(shifted) << 23));
}

/// With a softcap: tanh(s * scale / softcap); scale_log2 brings that to units of log2.
template <int Chunks>
__device__ void cap_row(float (&s)[Chunks][32], float softcap_scale) {
  if (softcap_scale == 0.0f) return;
#pragma unroll
  for (int i = 0; i < Chunks * 32; ++i)
    s[i / 32][i % 32] = tanh_of_half(s[i / 32][i % 32] * softcap_scale);
}

/// Scores of keys that the row does not see become -inf; `start` is the key of column 0.
template <int Chunks>
__device__ void hide_row_keys(float (&s)[Chunks][32], const VisibleKeys& visible,
                              std::int32_t start) {
#pragma unroll
  for (int i = 0; i < Chunks * 32; ++i) {
    const std::int32_t key = start + i;
    if (key < visible.begin || key >= visible.end) s[i / 32][i % 32] = -INFINITY;
  }
}

struct RowSoftmax {
  float reference = -INFINITY;  ///< running maximum; -inf: no key seen yet
  float sum = 0.0f;

  __device__ float base(float scale) const {
    return reference == -INFINITY ? 0.0f : reference * scale;
  }

  /// The largest score so far.
  template <int Chunks>
  __device__ float largest(const float (&s)[Chunks][32]) const {
    float top[4] = {reference, reference, reference, reference};
#pragma unroll
    for (int i = 0; i < Chunks * 32; ++i) top[i % 4] = fmaxf(top[i % 4], s[i / 32][i % 32]);
    return fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3]));
  }

  /// Takes the largest of a tile's scores in. True for all rows of a warp or none: then sums and
  /// results so far are to be multiplied with `factor`.
  template <int Chunks>
  __device__ bool raise(const float (&s)[Chunks][32], float scale, float& factor) {
    return raise_to(largest(s), scale, factor);
  }
  __device__ bool raise_to(float largest, float scale, float& factor) {
    // A difference of two infinities is no growth: NaN compares false.
    const bool grows = (largest - reference) * scale > kRescaleAbove;
    if (!__any_sync(0xffffffffu, grows)) return false;
    const float before = reference * scale;
    reference = largest;
    factor = ptx::ex2_approx_ftz_f32(before - base(scale));
    sum *= factor;
    return true;
  }

  /// s becomes exp2(scale * s - base), and goes into the sum. Every CubicShare-th power is a cubic,
  /// 0 for none.
  template <int CubicShare = 0, int Chunks>
  __device__ void exponentiate(float (&s)[Chunks][32], float scale) {
    const float minus_base = -base(scale);
    float part[4] = {};
#pragma unroll
    for (int i = 0; i < Chunks * 32; ++i) {
      float& x = s[i / 32][i % 32];
      const bool by_cubic = CubicShare > 0 && i % max(CubicShare, 1) == CubicShare - 1;
      x = fmaf(x, scale, minus_base);
      x = by_cubic ? ex2_cubic(x) : ptx::ex2_approx_ftz_f32(x);
      part[i % 4] += x;
    }
    sum += (part[0] + part[1]) + (part[2] + part[3]);
  }
};

}  // namespace tilewright::tile
