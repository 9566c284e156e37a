// A row of a softmax: its units, its softcap, and how it ends.
#pragma once

#include "ptx/math.h"

#include <numbers>

#include <math.h>

namespace tilewright::tile {

inline constexpr float kLog2E = std::numbers::log2e_v<float>, kLn2 = std::numbers::ln2_v<float>;

/// Growth of a running maximum, as a power of 2, up to which results are not rescaled.
/// Probabilities are then at most 2^8, sums of 2^20 of them well inside fp32, each inside fp16.
inline constexpr float kRescaleAbove = 8.0f;

/// tanh(x ln 2 / 2), i.e. (2^x - 1) / (2^x + 1), exact to about 2^-21; the hardware's own tanh is
/// off by 2^-11, which a softcap of 50 would turn into an error of 0.02 in a score.
__device__ inline float tanh_of_half(float x) {
  return 1.0f - 2.0f * __fdividef(1.0f, 1.0f + ptx::ex2_approx_ftz_f32(x));
}

/// ln sum_j e^(score j) of a row with keys: `top` is a score in units of log2, and `sum` that of
/// 2^(score - top).
__device__ inline float natural_lse(float top, float sum) {
  return fmaf(top, kLn2, logf(sum));
}

/// Of maxima that are in units of log2 already: no multiplication, not one by 1 either.
struct NoScale {};
__device__ inline float operator*(float x, NoScale) {
  return x;
}

/// The end of a row: what its results are multiplied with, and its lse, without the sink.
struct RowEnd {
  float factor = 0.0f, lse = -INFINITY;

  /// `max`: the running maximum, -inf if no key was seen; times `scale` it is in units of log2.
  /// `sum`: of 2^(score - maximum). The sink, null for none, is one more key, whose value is 0. It
  /// may be larger than all scores, so the sums are taken relative to the larger of both; +inf
  /// leaves nothing of the results, -inf changes nothing.
  template <class Scale>
  __device__ RowEnd(float max, Scale scale, float sum, const float* sink) {
    if (max == -INFINITY) return;
    const float top = max * scale;
    lse = natural_lse(top, sum);
    float of_sink = 0.0f, share = 1.0f;
    if (sink != nullptr) {
      const float sink_log2 = *sink * kLog2E, larger = fmaxf(top, sink_log2);
      if (larger == INFINITY) return;
      of_sink = exp2f(sink_log2 - larger), share = exp2f(top - larger);
    }
    factor = share / fmaf(sum, share, of_sink);
  }
};

}  // namespace tilewright::tile
