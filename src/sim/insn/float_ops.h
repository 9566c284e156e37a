// Arithmetic on single f32 and f64 values as the device does it: canonical NaN, flushed subnormals.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tilewright::sim {

inline constexpr std::uint32_t kNanF32 = 0x7fffffff;
inline constexpr std::uint64_t kNanF64 = 0xfff8000000000000;

namespace floating {

inline std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}
inline float from_bits(std::uint32_t x) {
  return std::bit_cast<float>(x);
}
inline double from_bits(std::uint64_t x) {
  return std::bit_cast<double>(x);
}

template <class T>
T canonical(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return x != x ? from_bits(kNanF32) : x;
  } else {
    return x != x ? from_bits(kNanF64) : x;
  }
}

/// Subnormal -> zero of the same sign.
inline float flush(float x) {
  const std::uint32_t word = bits(x);
  return from_bits((word & 0x7f800000) == 0 ? word & 0x80000000 : word);
}

template <bool kFtz, class T>
T input(T x) {
  if constexpr (kFtz) {
    return flush(x);
  } else {
    return x;
  }
}

/// NaN -> +0, else clamped to [0, 1].
template <class T>
T clamp01(T x) {
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}

template <bool kFtz, bool kSat, class T>
T result(T x) {
  if constexpr (kFtz) x = flush(x);
  if constexpr (kSat) {
    return clamp01(x);
  } else {
    return canonical(x);
  }
}

template <class T, bool kFtz, bool kSat>
T add(T a, T b) {
  return result<kFtz, kSat>(input<kFtz>(a) + input<kFtz>(b));
}
template <class T, bool kFtz, bool kSat>
T sub(T a, T b) {
  return result<kFtz, kSat>(input<kFtz>(a) - input<kFtz>(b));
}
template <class T, bool kFtz, bool kSat>
T mul(T a, T b) {
  return result<kFtz, kSat>(input<kFtz>(a) * input<kFtz>(b));
}
/// One rounding: the compiler makes one instruction of it.
template <class T, bool kFtz, bool kSat>
T fma(T a, T b, T c) {
  return result<kFtz, kSat>(std::fma(input<kFtz>(a), input<kFtz>(b), input<kFtz>(c)));
}
template <class T, bool kFtz>
T div(T a, T b) {
  return result<kFtz, false>(input<kFtz>(a) / input<kFtz>(b));
}
/// The device multiplies by a reciprocal, which is flushed to zero for |b| > 2^126.
template <bool kFtz>
float div_approx(float a, float b) {
  const float x = input<kFtz>(a);
  const float y = input<kFtz>(b);
  const bool is_huge = std::fabs(y) > 0x1p126f;
  return result<kFtz, false>(is_huge ? x * std::copysign(0.0f, y) : x / y);
}
template <class T, bool kFtz>
T sqrt(T a) {
  return result<kFtz, false>(std::sqrt(input<kFtz>(a)));
}
template <class T, bool kFtz>
T reciprocal(T a) {
  return result<kFtz, false>(T{1} / input<kFtz>(a));
}

/// A NaN operand is dropped unless kNan; +0 > -0.
template <class T, bool kFtz, bool kNan, bool kMax>
T min_max(T a, T b) {
  const T x = input<kFtz>(a);
  const T y = input<kFtz>(b);
  // equal numbers differ at most in the sign of zero
  const T equal = kMax ? from_bits(bits(x) & bits(y)) : from_bits(bits(x) | bits(y));
  T r = (kMax ? x > y : x < y) ? x : y;
  r = x == y ? equal : r;
  if constexpr (kNan) {
    r = x != x ? x : r;  // y, if it is the NaN, has been chosen already
  } else {
    r = y != y ? x : r;
  }
  return canonical(r);
}
template <class T, bool kFtz, bool kNan, bool kMax>
T min_max3(T a, T b, T c) {
  return min_max<T, kFtz, kNan, kMax>(min_max<T, kFtz, kNan, kMax>(a, b), c);
}
/// Of the magnitudes, with the sign of the product.
template <class T, bool kFtz, bool kNan, bool kMax>
T min_max_xorsign(T a, T b) {
  const T r = min_max<T, kFtz, kNan, kMax>(std::fabs(a), std::fabs(b));
  constexpr auto kSign = std::bit_cast<decltype(bits(a))>(-T{0});
  return r != r ? r : from_bits(bits(r) | ((bits(a) ^ bits(b)) & kSign));
}

template <class T, bool kFtz>
T neg(T a) {
  return -input<kFtz>(a);
}
template <class T, bool kFtz>
T abs(T a) {
  return std::fabs(input<kFtz>(a));
}
/// The sign of a and the magnitude of b.
template <class T>
T copysign(T a, T b) {
  return std::copysign(b, a);
}

}  // namespace floating
}  // namespace tilewright::sim
