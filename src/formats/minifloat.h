// Encoding and decoding of the formats of format_spec.h.
//
// Plain constexpr arithmetic on integers: no allocation, no exception, no <cmath>. The same code
// runs on the host, in static_assert, and on the device (nvcc --expt-relaxed-constexpr).
#pragma once

#include "formats/format_spec.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tilewright {

/// What to do with a value that lies between two codes. The name in PTX stands at the end.
enum class Rounding {
  kNearestEven,  ///< to the nearer code, a tie to the even mantissa                   .rn
  kNearestAway,  ///< to the nearer code, a tie away from zero (tf32 only in PTX)      .rna
  kTowardZero,   ///< truncate                                                         .rz
  kUp,           ///< toward +infinity; for ue8m0 the next power of two                .rp
  kDown,         ///< toward -infinity                                                 .rm
  kStochastic,   ///< away from zero if adding the random bits to the part cut off carries   .rs
};

/// What to do with infinities and with values that round beyond the largest finite number.
enum class Saturation {
  kDefault,   ///< as the shortest `cvt` and CUDA's constructors: kSaturate up to 8 bits, else kNone
  kSaturate,  ///< the largest finite number of that sign (.satfinite)
  kNone,      ///< infinity, or NaN where there is none; formats without NaN saturate regardless
};

struct EncodeOptions {
  Rounding rounding = Rounding::kNearestEven;
  Saturation saturation = Saturation::kDefault;
  uint32_t random_bits = 0;  ///< kStochastic: the lowest num_random_bits of it are used
  int num_random_bits = 0;   ///< kStochastic: 0 (which truncates) to 32
};

namespace minifloat_detail {

inline constexpr int kDoubleMantissaBits = 52;
inline constexpr int kDoubleBias = 1023;
inline constexpr uint64_t kDoubleSign = uint64_t{1} << 63;
inline constexpr uint64_t kDoubleInfinity = uint64_t{0x7ff} << kDoubleMantissaBits;
inline constexpr uint64_t kDoubleNan = kDoubleInfinity | uint64_t{1} << (kDoubleMantissaBits - 1);

/// 2^exponent for -1022 <= exponent <= 1023.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias)
                               << kDoubleMantissaBits);
}

/// A finite magnitude as significand * 2^(exponent - 52); exact, subnormals included.
struct Magnitude {
  uint64_t significand;
  int exponent;
};

constexpr Magnitude split(uint64_t magnitude_bits) {
  const uint64_t mantissa = magnitude_bits & ((uint64_t{1} << kDoubleMantissaBits) - 1);
  const int field = static_cast<int>(magnitude_bits >> kDoubleMantissaBits);
  if (field == 0) return {mantissa, 1 - kDoubleBias};
  return {mantissa | uint64_t{1} << kDoubleMantissaBits, field - kDoubleBias};
}

/// value >> shift, with the lowest bit also set if anything nonzero was cut off: far below the
/// smallest number, directed rounding still has to see that the value is not zero.
constexpr uint64_t shift_right_sticky(uint64_t value, int shift) {
  if (shift > 63) return value != 0 ? 1 : 0;
  const uint64_t kept = value >> shift;
  return (kept << shift) == value ? kept : kept | 1;
}

/// True if the magnitude `kept + fraction / 2^64` is to be rounded to kept + 1.
///
/// A tie goes to the even `kept`, not to the even code. The two differ only without mantissa bits,
/// where `kept` is always 1 and a tie therefore goes up (IEEE 754-2019, section 4.3.1).
constexpr bool rounds_up(uint64_t kept, uint64_t fraction, bool is_negative,
                         const EncodeOptions& options) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  switch (options.rounding) {
    case Rounding::kNearestEven:
      return fraction > kHalf || (fraction == kHalf && (kept & 1) != 0);
    case Rounding::kNearestAway:
      return fraction >= kHalf;
    case Rounding::kTowardZero:
      return false;
    case Rounding::kUp:
      return fraction != 0 && !is_negative;
    case Rounding::kDown:
      return fraction != 0 && is_negative;
    case Rounding::kStochastic:
      break;
  }
  const int n = options.num_random_bits;
  if (n <= 0) return false;
  const uint64_t random = options.random_bits & ((uint64_t{1} << n) - 1);
  return ((fraction >> (64 - n)) + random) >> n != 0;
}

/// Magnitude code of a finite value as if the exponent field had no upper end: anything above
/// max_finite_code() is an overflow.
constexpr uint64_t round_magnitude(const FormatSpec& format, Magnitude value, bool is_negative,
                                   const EncodeOptions& options) {
  // Codes of one binade are spaced 2^(exponent - mantissa_bits); below the smallest normal number
  // the spacing no longer shrinks. `shift` is how many bits of the significand lie below it.
  const int exponent = std::max(value.exponent, format.min_exponent());
  int shift = kDoubleMantissaBits - format.mantissa_bits + (exponent - value.exponent);
  if (shift > 63) {
    value.significand = shift_right_sticky(value.significand, shift - 63);
    shift = 63;
  }
  const uint64_t fraction = value.significand << (64 - shift);
  uint64_t kept = value.significand >> shift;
  if (rounds_up(kept, fraction, is_negative, options)) ++kept;

  // `kept` carries the implicit bit, so a carry out of the mantissa moves to the next binade, and a
  // subnormal that grows to 2^mantissa_bits becomes the smallest normal number.
  const uint64_t binade = static_cast<uint64_t>(exponent - format.min_exponent());
  if (format.has_subnormals()) return (binade << format.mantissa_bits) + kept;
  return kept == 0 ? 0 : binade + kept - 1;  // no zero: the smallest power of two instead
}

/// True if IEEE 754 lets an overflowing finite value of that sign stay at the largest finite
/// number.
constexpr bool stops_at_max_finite(Rounding rounding, bool is_negative) {
  return rounding == Rounding::kTowardZero || (rounding == Rounding::kUp && is_negative) ||
         (rounding == Rounding::kDown && !is_negative);
}

constexpr bool saturates(const FormatSpec& format, Saturation saturation) {
  if (!format.has_nan() || saturation == Saturation::kSaturate) return true;
  return saturation == Saturation::kDefault && format.bits() <= 8;
}

}  // namespace minifloat_detail

/// The value of a code, exact. NaN codes give a quiet NaN.
constexpr double decode(const FormatSpec& format, uint32_t code) {
  using namespace minifloat_detail;
  const uint64_t sign = (code & format.sign_mask()) != 0 ? kDoubleSign : 0;
  if (is_nan(format, code)) return std::bit_cast<double>(kDoubleNan);
  if (is_infinity(format, code)) return std::bit_cast<double>(sign | kDoubleInfinity);

  const uint32_t magnitude = code & format.magnitude_mask();
  const int field = static_cast<int>(magnitude >> format.mantissa_bits);
  const bool is_subnormal = format.has_subnormals() && field == 0;
  const int exponent = is_subnormal ? format.min_exponent() : field - format.bias;
  const uint32_t implicit_bit = is_subnormal ? 0 : format.mantissa_mask() + 1;
  const double significand = (magnitude & format.mantissa_mask()) | implicit_bit;
  const double value = significand * power_of_two(exponent - format.mantissa_bits);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(value) | sign);
}

/// The code of x under the given options. A float argument converts to double exactly, so there is
/// one rounding.
///
///   NaN        nan_code(), sign and payload dropped; formats without NaN: +max_finite
///   zero       keeps its sign; ue8m0 has no zero and gives its smallest number, 2^-127
///   overflow   (after rounding) and infinities: see Saturation; the sign is kept, on NaN as well.
///              With kNone a finite value still stays at the largest finite number if the rounding
///              direction points that way (IEEE 754-2019, section 7.4)
///   unsigned   ue8m0 and ue4m3 encode |x|: `cvt` to ue8m0 ignores the sign, and so does the tensor
///              core when it reads an e4m3 as ue4m3
///
/// Source   PTX ISA "cvt"; CUDA's host conversions in cuda_fp16.h, cuda_bf16.h, cuda_fp8.h,
///          cuda_fp6.h, cuda_fp4.h, with which the tests compare every rule they define. PTX has
///          fewer combinations (fp8: nearest even and stochastic only; ue8m0: .rz and .rp only);
///          the others follow the same general rule.
constexpr uint32_t encode(const FormatSpec& format, double x, const EncodeOptions& options = {}) {
  using namespace minifloat_detail;
  const uint64_t word = std::bit_cast<uint64_t>(x);
  const uint64_t magnitude = word & ~kDoubleSign;
  const bool is_nan_input = magnitude > kDoubleInfinity;
  if (is_nan_input) return format.has_nan() ? nan_code(format) : max_finite_code(format);

  const bool is_negative = format.is_signed && (word & kDoubleSign) != 0;
  const uint32_t sign = is_negative ? format.sign_mask() : 0;
  const bool is_finite = magnitude < kDoubleInfinity;
  if (is_finite) {
    const uint64_t code = round_magnitude(format, split(magnitude), is_negative, options);
    if (code <= max_finite_code(format)) return sign | static_cast<uint32_t>(code);
  }
  if (saturates(format, options.saturation) ||
      (is_finite && stops_at_max_finite(options.rounding, is_negative))) {
    return sign | max_finite_code(format);
  }
  return sign | (format.has_infinity() ? infinity_code(format) : nan_code(format));
}

/// decode and encode with the format as a template argument: the spelling for device code,
/// which cannot take the address of a host constant such as kE4m3.
template <FormatSpec kFormat>
constexpr double decode(uint32_t code) {
  return decode(kFormat, code);
}
template <FormatSpec kFormat>
constexpr uint32_t encode(double x, const EncodeOptions& options = {}) {
  return encode(kFormat, x, options);
}

/// x rounded to the format: decode(encode(x)).
constexpr double round_to(const FormatSpec& format, double x, const EncodeOptions& options = {}) {
  return decode(format, encode(format, x, options));
}

/// Largest finite value.
constexpr double max_finite(const FormatSpec& format) {
  return decode(format, max_finite_code(format));
}

/// Smallest positive normal value, 2^min_exponent.
constexpr double min_normal(const FormatSpec& format) {
  return minifloat_detail::power_of_two(format.min_exponent());
}

/// Smallest positive value. ue8m0 has no subnormals; there it is min_normal().
constexpr double min_subnormal(const FormatSpec& format) {
  return minifloat_detail::power_of_two(format.min_exponent() - format.mantissa_bits);
}

/// Exponent of the largest finite value, floor(log2(max_finite)).
constexpr int max_exponent(const FormatSpec& format) {
  return static_cast<int>(max_finite_code(format) >> format.mantissa_bits) - format.bias;
}

/// Distance between the codes around |x|, in the units of x: 2^(floor(log2 |x|) - mantissa_bits),
/// no less than min_subnormal(), and beyond max_finite() (also for infinity and NaN) as at
/// max_finite(). At a power of two it is the distance to the next larger code.
constexpr double spacing(const FormatSpec& format, double x) {
  using namespace minifloat_detail;
  const int exponent = split(std::bit_cast<uint64_t>(x) & ~kDoubleSign).exponent;
  return power_of_two(std::clamp(exponent, format.min_exponent(), max_exponent(format)) -
                      format.mantissa_bits);
}

}  // namespace tilewright
