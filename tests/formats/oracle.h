// Rounding by search in a table of values: the slow second witness for encode() and decode().
//
// It shares only the FormatSpec with the code under test. Values come from the textbook formula and
// std::ldexp, and the code of x from the two table entries around it, compared as real numbers.
#pragma once

#include "formats/minifloat.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tilewright::oracle {

/// Value of a code with sign 0, read as a finite number even where the format has a NaN or
/// infinity: that is the number which overflow is measured against.
inline double magnitude_value(const FormatSpec& format, uint32_t code) {
  const uint32_t mantissa_codes = 1u << format.mantissa_bits;
  const int field = static_cast<int>(code / mantissa_codes);
  const double fraction = static_cast<double>(code % mantissa_codes) / mantissa_codes;
  if (field == 0 && format.mantissa_bits > 0) return std::ldexp(fraction, 1 - format.bias);
  return std::ldexp(1 + fraction, field - format.bias);
}

/// The finite magnitudes of a format, then the first value beyond them.
class Rounder {
 public:
  explicit Rounder(const FormatSpec& format) : format_(format) {
    const uint32_t beyond = max_finite_code(format) + 1;
    for (uint32_t code = 0; code <= beyond; ++code) {
      values_.push_back(magnitude_value(format, code));
    }
  }

  /// values()[code] for the finite codes, then one more.
  const std::vector<double>& values() const { return values_; }

  uint32_t encode(double x, const EncodeOptions& options) const {
    const bool is_negative = format_.is_signed && std::signbit(x);
    const uint32_t sign = is_negative ? 1u << (format_.bits() - 1) : 0;
    if (std::isnan(x)) return nan_result();
    const double magnitude = std::fabs(x);
    const size_t below = index_below(magnitude);
    if (magnitude <= values_[0]) return sign;  // +-0, or the smallest power of two of ue8m0
    const bool is_beyond = below + 1 == values_.size();
    if (!is_beyond && !rounds_up(magnitude, below, is_negative, options)) {
      return sign | static_cast<uint32_t>(below);
    }
    if (!is_beyond && below + 2 < values_.size()) return sign | static_cast<uint32_t>(below + 1);
    return sign | overflow(magnitude, is_negative, options);
  }

 private:
  uint32_t nan_result() const {
    if (format_.specials == Specials::kNone) return max_finite_code(format_);
    return (1u << (format_.exponent_bits + format_.mantissa_bits)) - 1;
  }

  /// Index of the largest table value <= magnitude; 0 if there is none.
  size_t index_below(double magnitude) const {
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    return above == values_.begin() ? 0 : static_cast<size_t>(above - values_.begin()) - 1;
  }

  bool rounds_up(double magnitude, size_t below, bool is_negative,
                 const EncodeOptions& options) const {
    const double low = values_[below];
    const double high = values_[below + 1];
    const double middle = low + (high - low) / 2;  // exact: one bit more than the format has
    // Without mantissa bits both neighbours have the significand 1: the larger one is "even".
    const bool is_low_even = format_.mantissa_bits > 0 && below % 2 == 0;
    switch (options.rounding) {
      case Rounding::kNearestEven:
        return magnitude > middle || (magnitude == middle && !is_low_even);
      case Rounding::kNearestAway:
        return magnitude >= middle;
      case Rounding::kTowardZero:
        return false;
      case Rounding::kUp:
        return magnitude > low && !is_negative;
      case Rounding::kDown:
        return magnitude > low && is_negative;
      case Rounding::kStochastic:
        break;
    }
    const double steps = std::ldexp(1.0, options.num_random_bits);
    const double cut_off = std::floor((magnitude - low) / (high - low) * steps);
    return cut_off + std::fmod(options.random_bits, steps) >= steps;
  }

  uint32_t overflow(double magnitude, bool is_negative, const EncodeOptions& options) const {
    const bool points_inward = options.rounding == Rounding::kTowardZero ||
                               options.rounding == (is_negative ? Rounding::kUp : Rounding::kDown);
    const bool is_wide = format_.bits() > 8;
    const bool saturates = format_.specials == Specials::kNone ||
                           options.saturation == Saturation::kSaturate ||
                           (options.saturation == Saturation::kDefault && !is_wide);
    if (saturates || (points_inward && !std::isinf(magnitude))) return max_finite_code(format_);
    return max_finite_code(format_) + 1;  // infinity, or the only NaN
  }

  FormatSpec format_;
  std::vector<double> values_;
};

/// Every format but fp32, whose 2^31 magnitudes do not fit a table.
inline std::vector<FormatSpec> searchable_formats() {
  std::vector<FormatSpec> formats;
  for (const FormatSpec& format : kFormats) {
    if (format.bits() <= 19) formats.push_back(format);
  }
  return formats;
}

inline constexpr Rounding kRoundings[] = {Rounding::kNearestEven, Rounding::kNearestAway,
                                          Rounding::kTowardZero, Rounding::kUp, Rounding::kDown};
inline constexpr Saturation kSaturations[] = {Saturation::kDefault, Saturation::kSaturate,
                                              Saturation::kNone};

}  // namespace tilewright::oracle
