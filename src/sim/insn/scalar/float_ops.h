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

inline double quiet(double nan) {
  return from_bits(bits(nan) | 0x0008000000000000);
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

/// A NaN of f32 is the canonical one. A NaN of f64 is that of the first of `operands` that is one,
/// made quiet; if none is, the negative quiet one. An H200 prefers b to c to a.
template <bool kFtz, bool kSat, class T, class... Operands>
T result_of(T x, [[maybe_unused]] Operands... operands) {
  if constexpr (std::is_same_v<T, double>) {
    const double values[] = {operands...};
    double nan = from_bits(kNanF64);
    for (int i = static_cast<int>(sizeof...(Operands)) - 1; i >= 0; --i) {
      nan = values[i] != values[i] ? quiet(values[i]) : nan;
    }
    return x != x ? nan : x;
  } else {
    return result<kFtz, kSat>(x);
  }
}

/// Flushes a product or sum whose value, rounded as if exponents had no lower end, is below the
/// smallest normal number. `scaled` is that value times 2^24. (Measured on an H200.)
inline float flush_tiny(float x, float scaled) {
  return std::fabs(scaled) < 0x1p-102f ? std::copysign(0.0f, x) : x;
}

template <class T, bool kFtz, bool kSat>
T add(T a, T b) {
  return result_of<kFtz, kSat>(input<kFtz>(a) + input<kFtz>(b), b, a);
}
template <class T, bool kFtz, bool kSat>
T sub(T a, T b) {
  return result_of<kFtz, kSat>(input<kFtz>(a) - input<kFtz>(b), b, a);
}
template <class T, bool kFtz, bool kSat>
T mul(T a, T b) {
  const T x = input<kFtz>(a);
  const T y = input<kFtz>(b);
  if constexpr (kFtz) {
    return result<false, kSat>(flush_tiny(x * y, (x * 0x1p24f) * y));
  } else {
    return result_of<false, kSat>(x * y, b, a);
  }
}
/// One rounding: the compiler makes one instruction of it.
template <class T, bool kFtz, bool kSat>
T fma(T a, T b, T c) {
  const T x = input<kFtz>(a);
  const T y = input<kFtz>(b);
  const T z = input<kFtz>(c);
  if constexpr (kFtz) {
    const T scaled = std::fma(x * 0x1p24f, y, z * 0x1p24f);
    return result<false, kSat>(flush_tiny(std::fma(x, y, z), scaled));
  } else {
    return result_of<false, kSat>(std::fma(x, y, z), b, c, a);
  }
}
template <class T, bool kFtz>
T div(T a, T b) {
  return result_of<kFtz, false>(input<kFtz>(a) / input<kFtz>(b), a, b);
}
template <class T, bool kFtz>
T sqrt(T a) {
  return result_of<kFtz, false>(std::sqrt(input<kFtz>(a)), a);
}
template <class T, bool kFtz>
T reciprocal(T a) {
  return result_of<kFtz, false>(T{1} / input<kFtz>(a), a);
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
  return result_of<false, false>(r, y, x);
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

/// A NaN keeps its sign: it is a result like others.
template <class T, bool kFtz>
T neg(T a) {
  return result_of<false, false>(a != a ? a : -input<kFtz>(a), a);
}
template <class T, bool kFtz>
T abs(T a) {
  return result_of<false, false>(a != a ? a : std::fabs(input<kFtz>(a)), a);
}
/// The sign of a and the magnitude of b.
template <class T>
T copysign(T a, T b) {
  return std::copysign(b, a);
}

}  // namespace floating
}  // namespace tilewright::sim
