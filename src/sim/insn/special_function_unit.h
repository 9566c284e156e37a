// The special-function unit (MUFU) of an H200, bit for bit.
//
// Its interpolator was described by Oberman and Siu ("A High-Performance Area-Efficient
// Multifunction Interpolator", ARITH 2005). The leading bits of the argument choose a segment, the
// 17 bits after them are x, and the result is
//
//     floor(constant + linear * x + square * truncated_square(x))
//
// The coefficients were recovered from recordings of all arguments (docs/notes, "special
// functions"); with them and the rules below, results equal the recordings for every argument.
#pragma once

#include "sim/insn/float_ops.h"

#include <bit>
#include <cstdint>

namespace tilewright::sim::special {

/// In units of 2^-17 of the result's last place (of 2^-24 for sine and tanh, 2^-23 for logarithms).
struct Segment {
  std::int64_t constant;
  std::int32_t linear, square;
};

}  // namespace tilewright::sim::special

#include "sim/insn/special_function_tables.h"

namespace tilewright::sim::special {

inline constexpr std::uint32_t kSign = 0x80000000, kInfinityWord = 0x7f800000, kOneWord = 0x3f800000;
inline constexpr std::uint32_t kMantissa = 0x007fffff;

/// x^2 of 17 bits in 15: the unit's squarer leaves out every partial product below 2^19.
inline std::uint32_t truncated_square(std::uint32_t x) {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = 0; bit <= 8; ++bit) sum += (0 - (x >> bit & 1)) & (x >> (18 - bit));
  sum += (0 - (x >> 9 & 1)) & ((x >> 10) << 1);
  for (std::uint32_t bit = 10; bit < 17; ++bit) {
    sum += (0 - (x >> bit & 1)) & ((x >> (bit + 1)) << (2 * bit - 17) | 1U << (2 * bit - 19));
  }
  return sum;
}

inline std::int64_t interpolate(const Segment& segment, std::uint32_t x) {
  return segment.constant + std::int64_t{segment.linear} * x +
         std::int64_t{segment.square} * truncated_square(x);
}

/// A fixed-point number as a float, towards zero. `value` is not negative and below 2^62.
inline std::uint32_t from_fixed(std::uint64_t value, int fraction_bits) {
  if (value == 0) return 0;
  const int zeros = std::countl_zero(value);
  const auto mantissa = static_cast<std::uint32_t>((value << zeros) >> 40);
  return (static_cast<std::uint32_t>(127 + 63 - zeros - fraction_bits - 1) << 23) + mantissa;
}

/// What the unit gives for a word; subnormal arguments count as zero, but for tanh.
inline std::uint32_t unit_reciprocal(std::uint32_t word) {
  const std::uint32_t sign = word & kSign, magnitude = word & ~kSign;
  const std::uint32_t exponent = magnitude >> 23, mantissa = word & kMantissa;
  if (magnitude > kInfinityWord) return kNanF32;
  if (exponent == 0) return sign | kInfinityWord;
  if (exponent == 255) return sign;
  const std::int64_t y = interpolate(kReciprocalTable[mantissa >> 16], (mantissa & 0xffff) << 1) >> 17;
  const auto result = static_cast<std::uint32_t>(y) + kOneWord - ((exponent - 127) << 23);
  return sign | (result - 0x00800000 < kInfinityWord ? result : 0);
}

inline std::uint32_t unit_reciprocal_root(std::uint32_t word) {
  const std::uint32_t magnitude = word & ~kSign, mantissa = word & kMantissa;
  const std::uint32_t exponent = magnitude >> 23;
  if (magnitude > kInfinityWord) return kNanF32;
  if (exponent == 0) return (word & kSign) | kInfinityWord;
  if ((word & kSign) != 0) return kNanF32;
  if (exponent == 255) return 0;
  const std::uint32_t is_even = ~exponent & 1;
  if ((mantissa | is_even) == 0) return kOneWord - ((exponent - 127) << 22);
  const Segment& segment = kReciprocalRootTable[is_even << 6 | mantissa >> 17];
  const auto y = static_cast<std::uint32_t>(interpolate(segment, mantissa & 0x1ffff) >> 17);
  return y + kOneWord - ((exponent - 127 - is_even) << 22);
}

inline std::uint32_t unit_root(std::uint32_t word) {
  const std::uint32_t magnitude = word & ~kSign, mantissa = word & kMantissa;
  const std::uint32_t exponent = magnitude >> 23;
  if (magnitude > kInfinityWord) return kNanF32;
  if (exponent == 0) return word & kSign;
  if ((word & kSign) != 0) return kNanF32;
  if (exponent == 255) return word;
  const std::uint32_t is_even = ~exponent & 1;
  const Segment& segment = kRootTable[is_even << 6 | mantissa >> 17];
  const auto y = static_cast<std::uint32_t>(interpolate(segment, mantissa & 0x1ffff) >> 17);
  return y + kOneWord + ((exponent - 127 - is_even) << 22);
}

inline std::uint32_t unit_logarithm(std::uint32_t word) {
  const std::uint32_t magnitude = word & ~kSign, mantissa = word & kMantissa;
  const std::uint32_t exponent = magnitude >> 23;
  if (magnitude > kInfinityWord) return kNanF32;
  if (exponent == 0) return kSign | kInfinityWord;
  if ((word & kSign) != 0) return kNanF32;
  if (exponent == 255) return word;
  if (word == kOneWord) return 0;
  // 36 bits of fraction, a negative sum as its complement
  const std::int64_t fraction = interpolate(kLogarithmTable[mantissa >> 17], mantissa & 0x1ffff) >> 4;
  const std::int64_t sum = (std::int64_t{exponent} - 127) * (std::int64_t{1} << 36) + fraction;
  if (sum < 0) return kSign | from_fixed(static_cast<std::uint64_t>(~sum), 36);
  return from_fixed(static_cast<std::uint64_t>(sum), 36);
}

inline std::uint32_t unit_exponential(std::uint32_t word) {
  const std::uint32_t magnitude = word & ~kSign, exponent = magnitude >> 23;
  if (magnitude > kInfinityWord) return kNanF32;
  if (exponent == 0) return kOneWord;
  if (magnitude >= 0x43000000) return (word & kSign) != 0 && magnitude > 0x43000000 ? 0 : kInfinityWord;
  const std::uint32_t mantissa = (word & kMantissa) | 0x00800000;
  std::uint32_t fixed = exponent >= 127 ? mantissa << (exponent - 127)
                                        : (exponent > 103 ? mantissa >> (127 - exponent) : 0);
  if ((word & kSign) != 0) fixed = (fixed & kMantissa) == 0 ? 0 - fixed : ~fixed;
  const std::int64_t y = interpolate(kExponentialTable[fixed >> 17 & 63], fixed & 0x1ffff) >> 17;
  const std::int32_t whole = static_cast<std::int32_t>(fixed) >> 23;
  return whole < -126 ? 0 : static_cast<std::uint32_t>(y) + kOneWord + static_cast<std::uint32_t>(whole) * 0x00800000;
}

/// Of a phase in units of 2^-25 turns.
inline std::uint32_t sine_of_phase(std::uint32_t phase) {
  std::uint32_t x = phase & kMantissa;
  if ((phase >> 23 & 1) != 0) x = ~x & kMantissa;
  const std::int64_t y = interpolate(kSineTable[x >> 17], x & 0x1ffff);
  return from_fixed(static_cast<std::uint64_t>(y), 41) | (phase >> 24 & 1) << 31;
}

inline std::uint32_t phase_of(std::uint32_t word) {
  const std::uint32_t exponent = word >> 23 & 255, mantissa = (word & kMantissa) | 0x00800000;
  // the fraction of the magnitude, cut to 25 bits
  if (exponent >= 150) return 0;
  return exponent >= 125 ? mantissa << (exponent - 125) : (exponent > 101 ? mantissa >> (125 - exponent) : 0);
}

inline std::uint32_t unit_sine(std::uint32_t word) {
  if ((word & ~kSign) >= kInfinityWord) return kNanF32;
  return sine_of_phase(phase_of(word) & 0x1ffffff) ^ (word & kSign);
}

inline std::uint32_t unit_cosine(std::uint32_t word) {
  if ((word & ~kSign) >= kInfinityWord) return kNanF32;
  return sine_of_phase((phase_of(word) + 0x800000) & 0x1ffffff);
}

inline std::uint32_t unit_tanh(std::uint32_t word) {
  const std::uint32_t sign = word & kSign, magnitude = word & ~kSign;
  const std::uint32_t exponent = magnitude >> 23, mantissa = word & kMantissa;
  if (magnitude > kInfinityWord) return kNanF32;
  if (exponent < 119) return word;
  if (exponent >= 130) return sign | kOneWord;
  // per exponent, so many leading bits of the mantissa choose among so many segments
  constexpr std::uint8_t kBits[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};
  constexpr std::uint8_t kFirst[] = {0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43};
  const std::uint32_t bits = kBits[exponent - 119];
  const Segment& segment = kTanhTable[kFirst[exponent - 119] + (mantissa >> (23 - bits))];
  const std::int64_t y = interpolate(segment, mantissa >> (6 - bits) & 0x1ffff);
  return sign | from_fixed(static_cast<std::uint64_t>(y), 41);
}

}  // namespace tilewright::sim::special
