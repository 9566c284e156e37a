// The approximate instructions: sequences around the special-function unit, as ptxas writes them.
//
// `before` makes of the argument what the unit is given, `after` of argument and result what the
// instruction gives. Multiplications and additions are those of f32 in the form named.
#pragma once

#include "sim/insn/lanes.h"
#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/half_lanes.h"
#include "sim/insn/scalar/special_function_unit.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace tilewright::sim::special {

using floating::bits;
using floating::from_bits;

inline constexpr float kSmallestNormal = 0x1p-126f, kLarge = 0x1p126f;

/// Instructions that are the unit alone.
template <class U>
struct Alone {
  using Unit = U;
  static std::uint32_t before(float a) { return bits(a); }
  static float after(float, std::uint32_t result) { return from_bits(result); }
};

/// A subnormal argument is multiplied by 2^24 first, and the result made good.
template <class U, auto kMend>
struct Scaled {
  using Unit = U;
  static bool is_small(float a) { return std::fabs(a) < kSmallestNormal; }
  static std::uint32_t before(float a) { return bits(is_small(a) ? a * 0x1p24f : a); }
  static float after(float a, std::uint32_t result) {
    const float r = from_bits(result);
    return floating::canonical(is_small(a) ? kMend(r) : r);
  }
};
inline float mend_root(float r) {
  return r * 0x1p-12f;
}
inline float mend_reciprocal_root(float r) {
  return r * 0x1p12f;
}
inline float mend_logarithm(float r) {
  return r - 24.0f;
}

/// As well scaled where the reciprocal would be subnormal.
struct Reciprocal {
  using Unit = UnitReciprocal;
  static float scale(float a) {
    const float small = std::fabs(a) < kSmallestNormal ? 0x1p24f : 1.0f;
    return std::fabs(a) > kLarge ? 0.25f : small;
  }
  static std::uint32_t before(float a) { return bits(a * scale(a)); }
  static float after(float a, std::uint32_t result) {
    return floating::canonical(from_bits(result) * scale(a));
  }
};

/// Squared where 2^a is subnormal.
struct Exponential {
  using Unit = UnitExponential;
  static std::uint32_t before(float a) { return bits(a < -126.0f ? a * 0.5f : a); }
  static float after(float a, std::uint32_t result) {
    const float r = from_bits(result);
    return a < -126.0f ? r * r : r;
  }
};

/// The unit takes turns: the argument times 1 / 2 pi, rounded towards zero.
template <class U>
struct Wave {
  using Unit = U;
  static std::uint32_t before(float a) {
    constexpr double kTurn = 0x1.45f306p-3;  // 1 / 2 pi as a float
    constexpr std::uint64_t kMagnitude = 0x7fffffffffffffff;
    const std::uint64_t product = bits(static_cast<double>(a) * kTurn) & kMagnitude;  // exact
    const std::uint64_t cut = (product >> 29) - (std::uint64_t{1023 - 127} << 23);
    const std::uint64_t is_normal = 0 - static_cast<std::uint64_t>(product >= 0x3810000000000000);
    const auto turns = static_cast<std::uint32_t>(cut & is_normal);
    const bool is_special = (bits(a) & ~kSign) >= kInfinityWord;
    return choose(is_special, bits(a), (bits(a) & kSign) | turns);
  }
  static float after(float, std::uint32_t result) { return from_bits(result); }
};

/// a / b: a times the reciprocal of b, both scaled where the form says so.
template <bool kFtz, bool kFull>
struct Quotient {
  static float scale(float b) {
    const bool is_small = !kFtz && std::fabs(b) < kSmallestNormal;
    const bool is_large = kFull && std::fabs(b) > kLarge;
    return is_large ? 0.25f : (is_small ? 0x1p24f : 1.0f);
  }
  static float scaled(float x, float b) {
    const float s = scale(b);
    return s == 1.0f ? x : floating::mul<float, kFtz, false>(x, s);
  }
  static std::uint32_t before(float b) { return bits(scaled(b, b)); }
  static float after(float a, float b, std::uint32_t result) {
    return floating::mul<float, kFtz, false>(from_bits(result), scaled(a, b));
  }
};

template <class Op>
Step special_lanes(Warp& warp, const Insn& insn, std::uint32_t active) {
  const float* const a = warp.row<float>(insn.op[1]);
  alignas(64) std::uint32_t words[kLanes], results[kLanes];
  alignas(64) float values[kLanes];
  for (int i = 0; i < kLanes; ++i) words[i] = Op::before(a[i]);
  unit<typename Op::Unit, kLanes>(words, results);
  for (int i = 0; i < kLanes; ++i) values[i] = Op::after(a[i], results[i]);
  blend(warp.row<float>(insn.op[0]), values, active);
  return Step::kNext;
}

template <class Op>
Step quotient_lanes(Warp& warp, const Insn& insn, std::uint32_t active) {
  const float* const a = warp.row<float>(insn.op[1]);
  const float* const b = warp.row<float>(insn.op[2]);
  alignas(64) std::uint32_t words[kLanes], results[kLanes];
  alignas(64) float values[kLanes];
  for (int i = 0; i < kLanes; ++i) words[i] = Op::before(b[i]);
  unit<UnitReciprocal, kLanes>(words, results);
  for (int i = 0; i < kLanes; ++i) values[i] = Op::after(a[i], b[i], results[i]);
  blend(warp.row<float>(insn.op[0]), values, active);
  return Step::kNext;
}

/// Of halves: the unit on the widened argument, its result rounded towards zero.
template <class Format, class Unit, int kCount>
Step half_unit_lanes(Warp& warp, const Insn& insn, std::uint32_t active) {
  using Lane = std::conditional_t<kCount == kLanes, std::uint16_t, std::uint32_t>;
  alignas(64) float arguments[kCount], values[kCount];
  alignas(64) std::uint32_t words[kCount], results[kCount];
  alignas(64) std::uint16_t codes[kCount];
  Format::widen(warp.row<std::uint16_t>(insn.op[1]), arguments, kCount);
  for (int i = 0; i < kCount; ++i) words[i] = bits(arguments[i]);
  unit<Unit, kCount>(words, results);
  if constexpr (std::is_same_v<Format, half::F16>) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int i = 0; i < kCount; ++i) {
      const float r = from_bits(results[i]);
      values[i] = r >= 0x1p16f ? kInfinity : r;
    }
    half::F16::narrow<_MM_FROUND_TO_ZERO>(values, codes, kCount);
  } else {
    for (int i = 0; i < kCount; ++i) codes[i] = static_cast<std::uint16_t>(results[i] >> 16);
  }
  Lane lanes_of_codes[kLanes];
  std::memcpy(lanes_of_codes, codes, sizeof codes);
  blend(warp.row<Lane>(insn.op[0]), lanes_of_codes, active);
  return Step::kNext;
}

/// The unit on the high word of an f64, of which it gives the high word: 20 bits of mantissa go
/// through the tables of f32, and 20 are kept. The low word is not read, and zero in the result.
template <class Unit>
double unit64(double a) {
  constexpr std::uint32_t kOne64 = 0x3ff00000, kInfinity64 = 0x7ff00000, kBits20 = 0x000fffff;
  const auto high = static_cast<std::uint32_t>(bits(a) >> 32);
  const std::uint32_t magnitude = high & ~kSign, exponent = magnitude >> 20;
  const bool is_root = std::is_same_v<Unit, UnitReciprocalRoot>;
  const std::uint32_t is_even = is_root ? ~exponent & 1 : 0;
  const std::uint32_t place =
      is_root ? is_even << 23 | (high & kBits20) << 3 : (high & kBits20) << 4;
  const std::uint64_t sum = interpolate(Unit::kTable, place, truncated_square(place & 0x1ffff));
  std::uint32_t r = static_cast<std::uint32_t>(sum >> 20) - (kHidden >> 3);
  if (is_root && ((high & kBits20) | is_even) == 0) r = 0;  // powers of 4
  r += kOne64 - ((exponent - 1023 - is_even) << (is_root ? 19 : 20));
  if (!is_root && r - 0x00100000 >= kInfinity64 - 0x00100000) r = 0;
  if (exponent == 2047) r = 0;
  if (exponent == 0) r = kInfinity64;
  const bool is_nan = magnitude > kInfinity64 || (is_root && high != magnitude && exponent != 0);
  return from_bits(std::uint64_t{is_nan ? kNanF32 : (high & kSign) | r} << 32);
}

/// A step from the unit's approximation, of third order.
inline double rsqrt64(double a) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a != a) return floating::result_of<false, false>(a + a, a);
  if (a == 0.0) return std::copysign(kInfinity, a);
  if (a < 0.0) return from_bits(kNanF64);
  if (a == kInfinity) return 0.0;
  const bool is_small = a < 0x1p-1022;
  const double x = is_small ? a * 0x1p54 : a;
  const double y = unit64<UnitReciprocalRoot>(x);
  const double error = std::fma(x, -(y * y), 1.0);
  const double r = std::fma(std::fma(error, 0.375, 0.5), y * error, y);
  return is_small ? r * 0x1p27 : r;
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
