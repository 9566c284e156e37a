// The number formats as data: one table row says everything the encoder and the decoder need.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright {

/// Which codes of a format are not finite numbers.
enum class Specials {
  kIeee,     ///< all-ones exponent: mantissa 0 is infinity, every other mantissa NaN
  kNanOnly,  ///< the all-ones magnitude is NaN; there is no infinity
  kNone,     ///< every code is a finite number
};

/// A binary floating-point format of at most 32 bits: [sign] exponent mantissa, most significant
/// first, in the low bits of a uint32_t "code". Bits above bits() are ignored when decoding.
///
/// With E the exponent field, M the mantissa field and m = mantissa_bits:
///     E > 0:  (-1)^sign * 2^(E - bias) * (1 + M / 2^m)
///     E = 0:  (-1)^sign * 2^(1 - bias) * (M / 2^m)
/// A format without mantissa bits is a pure power of two, 2^(E - bias), also at E = 0: it has
/// neither zero nor subnormals.
///
/// Structural, so it can be a template argument of device code.
struct FormatSpec {
  char name[8];
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool is_signed;
  Specials specials;

  constexpr int bits() const { return exponent_bits + mantissa_bits + (is_signed ? 1 : 0); }
  constexpr uint64_t num_codes() const { return uint64_t{1} << bits(); }
  constexpr bool has_subnormals() const { return mantissa_bits > 0; }
  constexpr bool has_infinity() const { return specials == Specials::kIeee; }
  constexpr bool has_nan() const { return specials != Specials::kNone; }
  /// Exponent of the smallest normal number.
  constexpr int min_exponent() const { return has_subnormals() ? 1 - bias : -bias; }

  constexpr uint32_t mantissa_mask() const { return (uint32_t{1} << mantissa_bits) - 1; }
  constexpr uint32_t magnitude_mask() const {
    return static_cast<uint32_t>((uint64_t{1} << (exponent_bits + mantissa_bits)) - 1);
  }
  /// 0 for the unsigned formats.
  constexpr uint32_t sign_mask() const { return is_signed ? magnitude_mask() + 1 : 0; }

  friend constexpr bool operator==(const FormatSpec&, const FormatSpec&) = default;
};

/// Every number format Tilewright knows.
///
///   fp32, fp16   IEEE binary32 and binary16
///   bf16         the upper half of an fp32
///   tf32         19 bits; the fp32 word that tensor cores read is the code << 13
///   e4m3, e5m2   FP8; finite up to 448 and 57344
///   e3m2, e2m3   FP6; finite up to 28 and 7.5
///   e2m1         FP4; 0 0.5 1 1.5 2 3 4 6
///   ue8m0        MX block scale, 2^(code - 127)
///   ue4m3        NVFP4 block scale; e4m3 whose sign bit hardware ignores, hence 7 bits
///
/// Source   OCP FP8 1.0; OCP Microscaling Formats 1.0, section 5; PTX ISA "Alternate floating-point
///          data formats"
// clang-format off
inline constexpr FormatSpec kFormats[] = {
    // name  exp mant bias signed  specials
    {"fp32",   8, 23, 127, true,  Specials::kIeee},
    {"fp16",   5, 10,  15, true,  Specials::kIeee},
    {"bf16",   8,  7, 127, true,  Specials::kIeee},
    {"tf32",   8, 10, 127, true,  Specials::kIeee},
    {"e4m3",   4,  3,   7, true,  Specials::kNanOnly},
    {"e5m2",   5,  2,  15, true,  Specials::kIeee},
    {"e3m2",   3,  2,   3, true,  Specials::kNone},
    {"e2m3",   2,  3,   1, true,  Specials::kNone},
    {"e2m1",   2,  1,   1, true,  Specials::kNone},
    {"ue8m0",  8,  0, 127, false, Specials::kNanOnly},
    {"ue4m3",  4,  3,   7, false, Specials::kNanOnly},
};
// clang-format on

/// The row of that name, or nullptr.
constexpr const FormatSpec* find_format(std::string_view name) noexcept {
  for (const FormatSpec& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

/// The row of that name.
/// Errors   InvalidArgument for an unknown name (the message lists the known ones)
const FormatSpec& format_by_name(std::string_view name);

// In a namespace of their own: enumerations beside them have enumerators of these names.
namespace formats {
inline constexpr FormatSpec kFp32 = *find_format("fp32");
inline constexpr FormatSpec kFp16 = *find_format("fp16");
inline constexpr FormatSpec kBf16 = *find_format("bf16");
inline constexpr FormatSpec kTf32 = *find_format("tf32");
inline constexpr FormatSpec kE4m3 = *find_format("e4m3");
inline constexpr FormatSpec kE5m2 = *find_format("e5m2");
inline constexpr FormatSpec kE3m2 = *find_format("e3m2");
inline constexpr FormatSpec kE2m3 = *find_format("e2m3");
inline constexpr FormatSpec kE2m1 = *find_format("e2m1");
inline constexpr FormatSpec kUe8m0 = *find_format("ue8m0");
inline constexpr FormatSpec kUe4m3 = *find_format("ue4m3");
}  // namespace formats
using namespace formats;

/// Code of the largest finite magnitude.
constexpr uint32_t max_finite_code(const FormatSpec& format) {
  switch (format.specials) {
    case Specials::kIeee:
      return format.magnitude_mask() - format.mantissa_mask() - 1;
    case Specials::kNanOnly:
      return format.magnitude_mask() - 1;
    case Specials::kNone:
      break;
  }
  return format.magnitude_mask();
}

/// Code of +infinity. The format must have one.
constexpr uint32_t infinity_code(const FormatSpec& format) {
  return max_finite_code(format) + 1;
}

/// Code every NaN is encoded to: positive, all magnitude bits set (0x7fff, 0x7f, 0xff, ...), which
/// is what PTX `cvt` produces. The format must have one.
constexpr uint32_t nan_code(const FormatSpec& format) {
  return format.magnitude_mask();
}

constexpr bool is_infinity(const FormatSpec& format, uint32_t code) {
  return format.has_infinity() && (code & format.magnitude_mask()) == infinity_code(format);
}

constexpr bool is_nan(const FormatSpec& format, uint32_t code) {
  const uint32_t magnitude = code & format.magnitude_mask();
  return format.has_nan() &&
         magnitude > (format.has_infinity() ? infinity_code(format) : max_finite_code(format));
}

}  // namespace tilewright
