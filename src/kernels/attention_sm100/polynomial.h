// Powers by multiply-adds, for a share of a row: the special function unit does 16 a clock.
#pragma once

#include "ptx/math.h"
#include "ptx/packed_math.h"

namespace tilewright::tile {

/// 2^x of two numbers by multiply-adds, for x <= 127: their units do 128 a clock, those of special
/// functions 16. NaN stays NaN; 0 below 2^-126.5. x is n + f, |f| <= 1/2, exactly. Errors are below
/// 1.75e-7, and so below 2^-22, ex2.approx's: of the polynomial at most 9.32e-8, of its last
/// rounding 2^-24, of those before, halved by f and less, 2.2e-8 together. Added to
/// 1.5 * 2^23 + 127, n + 127 stands in the lowest bits, and moved up it is 2^n.
/// Source: Cody and Waite, "Software Manual for the Elementary Functions"; coefficients fitted by
/// Lawson's method to the relative error, rounded one after the other.
__device__ inline float2 ex2_polynomial(float2 x) {
  constexpr float kShift = 12583039.0f;
  constexpr float kCoefficients[] = {0.0013269554f, 0.009671293f, 0.05550711f,
                                     0.24022247f,   0.693147f,    1.0f};
  const float2 clamped =
      make_float2(ptx::max_nan_f32(x.x, -127.0f), ptx::max_nan_f32(x.y, -127.0f));
  const float2 shifted = ptx::add_rn_f32x2(clamped, ptx::both(kShift));
  const float2 whole = ptx::add_rn_f32x2(shifted, ptx::both(-kShift));
  const float2 f = ptx::fma_rn_f32x2(whole, ptx::both(-1.0f), clamped);
  float2 y = ptx::both(kCoefficients[0]);
#pragma unroll
  for (int i = 1; i < 6; ++i) y = ptx::fma_rn_f32x2(f, y, ptx::both(kCoefficients[i]));
  return ptx::mul_rn_f32x2(y, make_float2(__uint_as_float(__float_as_uint(shifted.x) << 23),
                                          __uint_as_float(__float_as_uint(shifted.y) << 23)));
}

/// For exponentiate_row(): every kEvery-th pair of powers.
template <int Every>
struct EveryPairByPolynomial {
  static constexpr int kEvery = Every;
  static __device__ float2 powers(float2 x) { return ex2_polynomial(x); }
};

}  // namespace tilewright::tile
