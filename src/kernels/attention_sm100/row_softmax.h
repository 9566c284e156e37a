// Softmax with a row a thread: what Tensor Memory gives, where lane = row. No shuffles, and one
// number each for maximum and sum. Scores are in units of log2 once scaled.
#pragma once

#include "kernels/attention/mask.h"
#include "tile/packed_row.h"
#include "tile/row_end.h"

#include <cstdint>

namespace tilewright::tile {

/// All powers by the special function unit; polynomial.h has another.
struct NoPolynomial {
  static constexpr int kEvery = 1;
  static __device__ float2 powers(float2 x) { return ptx::ex2_approx_ftz_f32(x); }
};

/// s becomes 2^(scale * s + offset); returns the sum. Every Polynomial::kEvery-th pair of powers is
/// Polynomial::powers().
template <class Polynomial = NoPolynomial, int Chunks>
__device__ float exponentiate_row(float (&s)[Chunks][32], float scale, float offset) {
  float2 part[2] = {};
#pragma unroll
  for (int i = 0; i < Chunks * 16; ++i) {
    float* const x = &s[i / 16][i % 16 * 2];
    float2 y = ptx::fma_rn_f32x2(make_float2(x[0], x[1]), ptx::both(scale), ptx::both(offset));
    const bool by_polynomial = i % Polynomial::kEvery == Polynomial::kEvery - 1;
    y = by_polynomial ? Polynomial::powers(y) : ptx::ex2_approx_ftz_f32(y);
    x[0] = y.x, x[1] = y.y;
    part[i % 2] = ptx::add_rn_f32x2(part[i % 2], y);
  }
  return (part[0].x + part[0].y) + (part[1].x + part[1].y);
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

  /// Takes the largest of a tile's scores in. True for all rows of a warp or none: then sums and
  /// results so far are to be multiplied with `factor`.
  template <int Chunks>
  __device__ bool raise(const float (&s)[Chunks][32], float scale, float& factor) {
    return raise_to(largest_of(s, reference), scale, factor);
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

  /// s becomes exp2(scale * s - base), and goes into the sum.
  template <class Polynomial = NoPolynomial, int Chunks>
  __device__ void exponentiate(float (&s)[Chunks][32], float scale) {
    sum += exponentiate_row<Polynomial>(s, scale, -base(scale));
  }
};

}  // namespace tilewright::tile
