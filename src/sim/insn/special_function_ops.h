// The functions of the special-function unit, computed in double and rounded once to f32.
//
// The device guarantees (PTX ISA): ex2 and rcp 2 and 1 units in the last place, sqrt and rsqrt a
// relative error of 2^-23 and 2^-22.9, lg2 2^-22 (absolute between 1/2 and 2), sin and cos 2^-20.5
// (absolute, within [-pi, pi]), tanh 2^-11. What it gives within these bounds is not published, so
// the correctly rounded value stands for it; kernels are compared with a tolerance there.
#pragma once

#include "sim/insn/float_ops.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace tilewright::sim::special {

using floating::bits;
using floating::from_bits;

/// Ten multiplications and additions, written out: a loop inside keeps the compiler from making
/// vectors of the lanes.
inline double polynomial(double x, const double (&c)[11]) {
  double p = std::fma(c[10], x, c[9]);
  p = std::fma(p, x, c[8]);
  p = std::fma(p, x, c[7]);
  p = std::fma(p, x, c[6]);
  p = std::fma(p, x, c[5]);
  p = std::fma(p, x, c[4]);
  p = std::fma(p, x, c[3]);
  p = std::fma(p, x, c[2]);
  p = std::fma(p, x, c[1]);
  return std::fma(p, x, c[0]);
}

/// 2^x within 2^-51, for results that a float can hold: beyond 2^+-200 it is 2^+-200.
inline double exp2(double x) {
  // 2^r on [-1/2, 1/2]: the polynomial through the Chebyshev nodes
  constexpr double kPoly[] = {0x1.0000000000000p+0,  0x1.62e42fefa3a19p-1,  0x1.ebfbdff82c598p-3,
                              0x1.c6b08d703ce49p-5,  0x1.3b2ab6fba1ddap-7,  0x1.5d87fe9d7a584p-10,
                              0x1.430913096fd9fp-13, 0x1.ffcb54062e698p-17, 0x1.62bfd47773353p-20,
                              0x1.b675bca4eeebbp-24, 0x1.e6063f7217bc6p-28};
  constexpr double kShift = 0x1.8p52;  // leaves the nearest integer in the lowest bits
  double y = x > 200.0 ? 200.0 : x;
  y = y < -200.0 ? -200.0 : y;
  const double shifted = y + kShift;
  const double r = y - (shifted - kShift);
  const double p = polynomial(r, kPoly);
  const double scaled = from_bits(bits(p) + (bits(shifted) << 52));
  return x != x ? x : scaled;
}

/// log2(x) of a positive finite x within 2^-51, relative also near 1; the limits at 0 and infinity.
inline double log2(double x) {
  // 2 / ((2k + 1) ln 2): log2((1 + s) / (1 - s)) as a series in s
  constexpr double kSeries[] = {0x1.71547652b82fep+1, 0x1.ec709dc3a03fdp-1, 0x1.2776c50ef9bfep-1,
                                0x1.a61762a7aded9p-2, 0x1.484b13d7c02a9p-2, 0x1.0c9a84994022dp-2,
                                0x1.c68f568d31760p-3, 0x1.89f3b1694cffep-3, 0x1.5b9ac9b743f0dp-3,
                                0x1.3703c1f4d0ffep-3, 0x1.1964ec6fc9491p-3};
  constexpr std::uint64_t kOne = 0x3ff0000000000000;
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  constexpr std::uint64_t kMantissa = 0x000fffffffffffff;
  constexpr double kTwo52 = 0x1p52;
  const std::uint64_t shifted = bits(x) + (kOne - kRootHalf);
  const double exponent =
      from_bits((shifted >> 52) | std::bit_cast<std::uint64_t>(kTwo52)) - (kTwo52 + 1023.0);
  const double m = from_bits((shifted & kMantissa) + kRootHalf);
  const double f = m - 1.0;
  const double s = f / (f + 2.0);
  const double z = s * s;
  const double p = polynomial(z, kSeries);
  double r = std::fma(s, p, exponent);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  r = x == 0.0 ? -kInfinity : r;
  r = x == kInfinity ? x : r;
  return x < 0.0 || x != x ? from_bits(kNanF64) : r;
}

template <bool kFtz>
float ex2(float a) {
  return floating::result<kFtz, false>(
      static_cast<float>(exp2(static_cast<double>(floating::input<kFtz>(a)))));
}
template <bool kFtz>
float lg2(float a) {
  return floating::result<kFtz, false>(
      static_cast<float>(log2(static_cast<double>(floating::input<kFtz>(a)))));
}
template <bool kFtz>
float rsqrt(float a) {
  const auto x = static_cast<double>(floating::input<kFtz>(a));
  return floating::result<kFtz, false>(static_cast<float>(1.0 / std::sqrt(x)));
}
template <bool kFtz>
float sine(float a) {
  const auto x = static_cast<double>(floating::input<kFtz>(a));
  return floating::result<kFtz, false>(static_cast<float>(std::sin(x)));
}
template <bool kFtz>
float cosine(float a) {
  const auto x = static_cast<double>(floating::input<kFtz>(a));
  return floating::result<kFtz, false>(static_cast<float>(std::cos(x)));
}
inline float hyperbolic_tangent(float a) {
  return floating::canonical(static_cast<float>(std::tanh(static_cast<double>(a))));
}

/// The gross approximations of f64: 20 bits of mantissa in, 20 bits out, the low word zero.
inline double high_word(double x) {
  return from_bits(bits(x) & 0xffffffff00000000);
}
inline double flush64(double x) {
  const std::uint64_t word = bits(x);
  return from_bits((word & 0x7ff0000000000000) == 0 ? word & 0x8000000000000000 : word);
}
inline double rounded_high_word(double x) {
  const bool is_finite = std::fabs(x) < std::numeric_limits<double>::infinity();
  return flush64(high_word(is_finite ? from_bits(bits(x) + 0x80000000) : floating::canonical(x)));
}
inline double rcp_gross(double a) {
  return rounded_high_word(1.0 / flush64(high_word(a)));
}
inline double rsqrt_gross(double a) {
  return rounded_high_word(1.0 / std::sqrt(flush64(high_word(a))));
}
inline double rsqrt64(double a) {
  return floating::result_of<false, false>(1.0 / std::sqrt(a), a);
}

/// The classes of testp.
enum class NumberClass : std::uint8_t {
  kFinite,
  kInfinite,
  kNumber,
  kNotANumber,
  kNormal,
  kSubnormal
};

template <class T, NumberClass kClass>
bool is_of_class(T a) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kSmallest = std::numeric_limits<T>::min();
  const T x = std::fabs(a);
  if constexpr (kClass == NumberClass::kFinite) return x < kInfinity;
  if constexpr (kClass == NumberClass::kInfinite) return x == kInfinity;
  if constexpr (kClass == NumberClass::kNumber) return x == x;
  if constexpr (kClass == NumberClass::kNotANumber) return x != x;
  // zero counts as normal
  if constexpr (kClass == NumberClass::kNormal) {
    return (x >= kSmallest && x < kInfinity) || x == T{0};
  }
  if constexpr (kClass == NumberClass::kSubnormal) return x > T{0} && x < kSmallest;
}

}  // namespace tilewright::sim::special
