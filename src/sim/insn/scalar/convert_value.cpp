#include "sim/insn/scalar/convert_value.h"

#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/half_lanes.h"

#include <limits>

namespace tilewright::sim {
namespace {

std::uint64_t low_bits(std::uint64_t word, int bits) {
  return bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
}

__extension__ using Wide = __int128;

Wide integer_value(Type type, std::uint64_t word) {
  const int bits = bits_of(type);
  word = low_bits(word, bits);
  if (!is_signed(type)) return static_cast<Wide>(word);
  return static_cast<Wide>(static_cast<std::int64_t>(word << (64 - bits)) >> (64 - bits));
}

Wide smallest(Type type) {
  return is_signed(type) ? -(Wide{1} << (bits_of(type) - 1)) : Wide{0};
}
Wide largest(Type type) {
  return (Wide{1} << (bits_of(type) - (is_signed(type) ? 1 : 0))) - 1;
}

/// An integer as a double; what does not fit leaves its mark in the lowest bit (round to odd), so
/// that a later rounding to f32 or less is right.
double odd_double(Wide value) {
  const bool is_negative = value < 0;
  auto magnitude = static_cast<std::uint64_t>(is_negative ? -value : value);
  const int excess = 64 - 53 - std::countl_zero(magnitude);
  if (excess > 0) {
    const std::uint64_t kept = magnitude >> excess;
    const bool is_inexact = (kept << excess) != magnitude;
    magnitude = (is_inexact ? kept | 1 : kept) << excess;
  }
  const auto x = static_cast<double>(magnitude);
  return is_negative ? -x : x;
}

double load(Type from, std::uint64_t word) {
  switch (from) {
    case Type::kF64:
      return std::bit_cast<double>(word);
    case Type::kF32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(word));
    default:
      break;
  }
  if (is_integer(from)) return odd_double(integer_value(from, word));
  const FormatSpec& format = *format_of(from);
  return decode(format, static_cast<std::uint32_t>(low_bits(word, format.bits())));
}

double round_to_integral(double x, IntegralRounding rounding) {
  switch (rounding) {
    case IntegralRounding::kNearest:
      return std::nearbyint(x);
    case IntegralRounding::kZero:
      return std::trunc(x);
    case IntegralRounding::kDown:
      return std::floor(x);
    case IntegralRounding::kUp:
      return std::ceil(x);
    default:
      return x;
  }
}

/// NaN: 0, but the highest bit alone if f64 or a 64-bit integer takes part.
std::uint64_t to_integer(const Conversion& conversion, double x) {
  const Type to = conversion.to;
  const int bits = bits_of(to);
  if (x != x) {
    const bool is_wide = conversion.from == Type::kF64 || bits == 64;
    return is_wide ? std::uint64_t{1} << (bits - 1) : 0;
  }
  const Wide low = smallest(to);
  const Wide high = largest(to);
  if (x <= static_cast<double>(low)) return low_bits(static_cast<std::uint64_t>(low), bits);
  if (x >= static_cast<double>(high)) return low_bits(static_cast<std::uint64_t>(high), bits);
  return low_bits(static_cast<std::uint64_t>(static_cast<Wide>(x)), bits);
}

std::uint64_t nan_of(Type to) {
  switch (to) {
    case Type::kF64:
      return kNanF64;
    case Type::kF32:
    case Type::kTf32:
      return kNanF32;
    case Type::kF16:
    case Type::kBf16:
      return kNanHalf;
    default: {
      const FormatSpec& format = *format_of(to);
      return format.has_nan() ? nan_code(format) : max_finite_code(format);
    }
  }
}

std::uint64_t to_float(const Conversion& conversion, double x) {
  if (conversion.sat) x = floating::clamp01(x);
  if (x != x) return nan_of(conversion.to);
  if (conversion.relu && std::signbit(x)) x = 0.0;
  switch (conversion.to) {
    case Type::kF64:
      return std::bit_cast<std::uint64_t>(x);
    case Type::kTf32:
      return std::uint64_t{encode(kTf32, x, conversion.encode)} << 13;
    case Type::kF32: {
      const std::uint32_t word = encode(kFp32, x, conversion.encode);
      return conversion.ftz && (word & 0x7f800000) == 0 ? word & 0x80000000 : word;
    }
    default:
      return encode(*format_of(conversion.to), x, conversion.encode);
  }
}

/// A NaN between f64 and another type keeps its sign and the upper bits of its payload, and bf16
/// becomes f32 by a shift; any other NaN becomes the canonical one. (Measured on an H200.)
bool keeps_nan(const Conversion& c) {
  if (c.sat || c.relu) return false;
  const bool is_known = c.to == Type::kF64 || c.to == Type::kF32 || c.to == Type::kF16;
  return is_known && (c.from == Type::kF64 || c.to == Type::kF64 ||
                      (c.from == Type::kBf16 && c.to == Type::kF32));
}

struct FloatLayout {
  int bits, mantissa_bits;
};
FloatLayout layout_of(Type type) {
  switch (type) {
    case Type::kF64:
      return {64, 52};
    case Type::kF32:
      return {32, 23};
    case Type::kF16:
      return {16, 10};
    default:
      return {16, 7};
  }
}

bool is_nan_code(Type type, std::uint64_t word) {
  if (!is_scalar_float(type)) return false;
  const auto [bits, mantissa] = layout_of(type);
  const std::uint64_t magnitude = low_bits(word, bits - 1);
  const std::uint64_t infinity = (std::uint64_t{1} << (bits - 1)) - (std::uint64_t{1} << mantissa);
  return magnitude > infinity;
}

std::uint64_t move_nan(Type to, Type from, std::uint64_t word) {
  const FloatLayout a = layout_of(from);
  const FloatLayout b = layout_of(to);
  word = low_bits(word, a.bits);
  const std::uint64_t sign = word >> (a.bits - 1) << (b.bits - 1);
  const std::uint64_t payload = low_bits(word, a.mantissa_bits);
  const int up = b.mantissa_bits - a.mantissa_bits;
  const std::uint64_t moved = up >= 0 ? payload << up : payload >> -up;
  const bool stays_signaling = from == Type::kBf16;
  const std::uint64_t quiet = stays_signaling ? 0 : std::uint64_t{1} << (b.mantissa_bits - 1);
  const std::uint64_t infinity =
      (std::uint64_t{1} << (b.bits - 1)) - (std::uint64_t{1} << b.mantissa_bits);
  return sign | infinity | quiet | moved;
}

}  // namespace

const FormatSpec* format_of(Type type) noexcept {
  switch (type) {
    case Type::kF16:
      return &kFp16;
    case Type::kBf16:
      return &kBf16;
    case Type::kE4m3:
      return &kE4m3;
    case Type::kE5m2:
      return &kE5m2;
    case Type::kE2m3:
      return &kE2m3;
    case Type::kE3m2:
      return &kE3m2;
    case Type::kE2m1:
      return &kE2m1;
    case Type::kUe8m0:
      return &kUe8m0;
    default:
      return nullptr;
  }
}

std::uint64_t convert(const Conversion& conversion, std::uint64_t source) {
  const Type to = conversion.to;
  if (is_integer(conversion.from) && is_integer(to)) {
    Wide value = integer_value(conversion.from, source);
    if (conversion.sat) value = std::clamp(value, smallest(to), largest(to));
    return low_bits(static_cast<std::uint64_t>(value), bits_of(to));
  }
  if (keeps_nan(conversion) && is_nan_code(conversion.from, source)) {
    return move_nan(to, conversion.from, source);
  }
  double x = load(conversion.from, source);
  if (conversion.ftz && conversion.from == Type::kF32 && std::fabs(x) < 0x1p-126) {
    x = std::copysign(0.0, x);
  }
  x = round_to_integral(x, conversion.integral);
  return is_integer(to) ? to_integer(conversion, x) : to_float(conversion, x);
}

}  // namespace tilewright::sim
