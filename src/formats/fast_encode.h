// encode() of minifloat.h for the common case, in about ten operations: fp32 to a small signed
// format, to nearest even, saturating. Host and device.
#pragma once

#include "formats/format_spec.h"

#include <bit>
#include <cstdint>

namespace tilewright {

/// encode(format, x) for an x that is not NaN and a signed format of at most 8 bits.
///
/// Adding 2^(e + 23 - mantissa_bits) to a number of binade e leaves the number in the spacing of
/// the format as the last bits of the sum, rounded by the addition itself.
constexpr std::uint32_t encode_nearest(const FormatSpec& format, float x) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(x);
  const int exponent_shift = 23 - format.mantissa_bits;
  const std::uint32_t top = max_finite_code(format);
  const std::uint32_t min_binade = static_cast<std::uint32_t>(127 + format.min_exponent()) << 23;
  // The largest finite number: its code, moved from the format's bias to that of fp32.
  const std::uint32_t most =
      (top << exponent_shift) + (static_cast<std::uint32_t>(127 - format.bias) << 23);
  std::uint32_t magnitude = word & 0x7fffffffu;
  magnitude = magnitude < most ? magnitude : most;
  std::uint32_t binade = magnitude & 0x7f800000u;
  binade = binade > min_binade ? binade : min_binade;
  const std::uint32_t unit = binade + (static_cast<std::uint32_t>(exponent_shift) << 23);
  const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(unit);
  const std::uint32_t steps = std::bit_cast<std::uint32_t>(sum) - unit;
  return steps + ((binade - min_binade) >> exponent_shift) + (word >> 31 << (format.bits() - 1));
}

/// The spelling for device code, as in minifloat.h.
template <FormatSpec kFormat>
constexpr std::uint32_t encode_nearest(float x) {
  return encode_nearest(kFormat, x);
}

}  // namespace tilewright
