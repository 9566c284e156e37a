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

#include "sim/insn/scalar/float_ops.h"

#include <bit>
#include <cstdint>
#include <utility>

namespace tilewright::sim::special {

/// In units of 2^-17 of the result's last place (of 2^-24 for sine and tanh, 2^-23 for logarithms).
template <int kCount>
struct Segments {
  std::int64_t constant[kCount];
  std::int32_t linear[kCount], square[kCount];
};

}  // namespace tilewright::sim::special

#include "sim/insn/scalar/special_function_tables.h"

namespace tilewright::sim::special {

inline constexpr std::uint32_t kSign = 0x80000000, kInfinityWord = 0x7f800000;
inline constexpr std::uint32_t kOneWord = 0x3f800000, kMantissa = 0x007fffff, kHidden = 0x00800000;

/// Written so that no compiler makes a branch of it.
inline std::uint32_t choose(bool condition, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = 0 - static_cast<std::uint32_t>(condition);
  return (a & mask) | (b & ~mask);
}

/// The partial products that bit `kBit` of x has with itself and the bits above, from 2^19 on.
template <std::uint32_t kBit>
[[gnu::always_inline]] inline std::uint32_t square_row(std::uint32_t x) {
  const std::uint32_t taken = 0 - (x >> kBit & 1);
  if constexpr (kBit <= 8) return taken & (x >> (18 - kBit));
  if constexpr (kBit == 9) return taken & ((x >> 10) << 1);
  if constexpr (kBit >= 10) {
    return taken & ((x >> (kBit + 1)) << (2 * kBit - 17) | 1U << (2 * kBit - 19));
  }
}

/// x^2 of 17 bits in 15: the unit's squarer leaves out every partial product below 2^19.
template <std::uint32_t... kBits>
[[gnu::always_inline]] inline std::uint32_t truncated_square(
    std::uint32_t x, std::integer_sequence<std::uint32_t, kBits...>) {
  return (square_row<kBits>(x) + ...);
}
[[gnu::always_inline]] inline std::uint32_t truncated_square(std::uint32_t x) {
  return truncated_square(x, std::make_integer_sequence<std::uint32_t, 17>{});
}

/// `place` is a segment and below it the 17 bits of x, `squared` what truncated_square gives for x.
/// The sum, and 2^40 (2^23 in the last place), which makes it positive.
template <int kCount>
std::uint64_t interpolate(const Segments<kCount>& table, std::uint32_t place,
                          std::uint32_t squared) {
  const std::uint32_t segment = place >> 17;
  const auto x = static_cast<std::int32_t>(place & 0x1ffff);
  const std::int64_t sum = table.constant[segment] + std::int64_t{table.linear[segment]} * x +
                           std::int64_t{table.square[segment]} * static_cast<std::int32_t>(squared);
  return static_cast<std::uint64_t>(sum + (std::int64_t{1} << 40));
}
inline constexpr std::uint64_t kShift = std::uint64_t{1} << 40;

inline std::uint32_t last_places(std::uint64_t sum) {
  return static_cast<std::uint32_t>(sum >> 17) - kHidden;
}

/// A fixed-point number below 2^52 as a float, towards zero.
inline std::uint32_t from_fixed(std::uint64_t value, std::uint32_t fraction_bits) {
  constexpr double kTwo52 = 0x1p52;
  const double exact = floating::from_bits(value | std::bit_cast<std::uint64_t>(kTwo52)) - kTwo52;
  const std::uint64_t word =
      (floating::bits(exact) >> 29) - (std::uint64_t{1023 - 127 + fraction_bits} << 23);
  return static_cast<std::uint32_t>(word & (0 - static_cast<std::uint64_t>(value != 0)));
}

// Each function: its table, the argument's place there, and the result of the sum. All are written
// without branches, so that lanes become vectors: results of special arguments are chosen last.
// Subnormal arguments count as zero, but for tanh.

struct UnitReciprocal {
  static constexpr const auto& kTable = kReciprocal;
  static std::uint32_t place(std::uint32_t word) { return (word & kMantissa) << 1; }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t sign = word & kSign, magnitude = word & ~kSign;
    const std::uint32_t exponent = magnitude >> 23;
    std::uint32_t r = last_places(sum) + kOneWord - ((exponent - 127) << 23);
    r = choose(r - kHidden < kInfinityWord - kHidden, r, 0);
    r = choose(exponent == 0, kInfinityWord, r);
    r = choose(exponent == 255, 0, r);
    return choose(magnitude > kInfinityWord, kNanF32, sign | r);
  }
};

/// Tables for exponents of both parities, the odd ones first.
inline std::uint32_t root_place(std::uint32_t word) {
  return (~word & kHidden) | (word & kMantissa);
}

struct UnitReciprocalRoot {
  static constexpr const auto& kTable = kReciprocalRoot;
  static std::uint32_t place(std::uint32_t word) { return root_place(word); }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t magnitude = word & ~kSign, mantissa = word & kMantissa;
    const std::uint32_t exponent = magnitude >> 23, is_even = ~exponent & 1;
    std::uint32_t r = choose((mantissa | is_even) == 0, 0, last_places(sum));  // powers of 4
    r += kOneWord - ((exponent - 127 - is_even) << 22);
    r = choose(exponent == 255, 0, r);
    r = choose((word & kSign) != 0, kNanF32, r);
    r = choose(exponent == 0, (word & kSign) | kInfinityWord, r);
    return choose(magnitude > kInfinityWord, kNanF32, r);
  }
};

struct UnitRoot {
  static constexpr const auto& kTable = kRoot;
  static std::uint32_t place(std::uint32_t word) { return root_place(word); }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t magnitude = word & ~kSign;
    const std::uint32_t exponent = magnitude >> 23, is_even = ~exponent & 1;
    std::uint32_t r = last_places(sum) + kOneWord + ((exponent - 127 - is_even) << 22);
    r = choose(exponent == 255, word, r);
    r = choose((word & kSign) != 0, kNanF32, r);
    r = choose(exponent == 0, word & kSign, r);
    return choose(magnitude > kInfinityWord, kNanF32, r);
  }
};

/// The exponent and 36 bits of fraction; a negative number is cut as its complement.
struct UnitLogarithm {
  static constexpr const auto& kTable = kLogarithm;
  static std::uint32_t place(std::uint32_t word) { return word & kMantissa; }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t magnitude = word & ~kSign, exponent = magnitude >> 23;
    const std::uint64_t total = sum - kShift + ((std::uint64_t{exponent} - 127) << 40);
    const std::uint64_t complement = 0 - (total >> 63);
    std::uint32_t r = from_fixed((total ^ complement) >> 4, 36);
    r |= static_cast<std::uint32_t>(complement) & kSign;
    r = choose(word == kOneWord, 0, r);
    r = choose(exponent == 255, word, r);
    r = choose((word & kSign) != 0, kNanF32, r);
    r = choose(exponent == 0, kSign | kInfinityWord, r);
    return choose(magnitude > kInfinityWord, kNanF32, r);
  }
};

struct UnitExponential {
  static constexpr const auto& kTable = kExponential;
  /// 23 bits of fraction; a negative number that is no integer is cut as its complement.
  static std::uint32_t fixed(std::uint32_t word) {
    const std::uint32_t exponent = word >> 23 & 255, mantissa = (word & kMantissa) | kHidden;
    const std::uint32_t left = choose(exponent - 127 < 8, exponent - 127, 0);
    const std::uint32_t right =
        choose(127 - exponent < 24, 127 - exponent, choose(exponent < 127, 24, 0));
    const std::uint32_t cut = mantissa << left >> right;
    const std::uint32_t is_whole = static_cast<std::uint32_t>((cut & kMantissa) == 0);
    return choose((word & kSign) != 0, ~cut + is_whole, cut);
  }
  static std::uint32_t place(std::uint32_t word) { return fixed(word) & kMantissa; }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t magnitude = word & ~kSign;
    const bool is_negative = (word & kSign) != 0;
    const auto whole = static_cast<std::int32_t>(fixed(word)) >> 23;
    std::uint32_t r = last_places(sum) + kOneWord + (static_cast<std::uint32_t>(whole) << 23);
    r = choose(whole < -126, 0, r);
    r = choose(magnitude >= 0x43000000, choose(is_negative, 0, kInfinityWord), r);
    return choose(magnitude > kInfinityWord, kNanF32, r);
  }
};

/// Of a number of turns, of which 25 bits of fraction count.
template <std::uint32_t kQuarter>
struct UnitWave {
  static constexpr const auto& kTable = kSine;
  static std::uint32_t phase(std::uint32_t word) {
    const std::uint32_t exponent = word >> 23 & 255, mantissa = (word & kMantissa) | kHidden;
    const std::uint32_t left = choose(exponent - 125 < 25, exponent - 125, 0);
    const std::uint32_t right =
        choose(125 - exponent < 24, 125 - exponent, choose(exponent < 125, 24, 0));
    return choose(exponent < 150, mantissa << left >> right, 0) + (kQuarter << 23);
  }
  static std::uint32_t place(std::uint32_t word) {
    const std::uint32_t turns = phase(word);
    return (turns ^ (0 - (turns >> 23 & 1))) & kMantissa;  // backwards by complement
  }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t odd = kQuarter == 0 ? word & kSign : 0;
    const std::uint32_t r = from_fixed(sum - kShift, 41) | (phase(word) >> 24 & 1) << 31;
    return choose((word & ~kSign) >= kInfinityWord, kNanF32, r ^ odd);
  }
};
using UnitSine = UnitWave<0>;
using UnitCosine = UnitWave<1>;

struct UnitTanh {
  static constexpr const auto& kTable = kTanh;
  /// From 2^-8 on: so many leading bits of the mantissa choose among the segments from the first.
  static constexpr std::uint32_t kBits[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};
  static constexpr std::uint32_t kFirst[] = {0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43};

  static std::uint32_t place(std::uint32_t word) {
    const std::uint32_t exponent = word >> 23 & 255, mantissa = word & kMantissa;
    const std::uint32_t octave = choose(exponent - 119 < 11, exponent - 119, 0);
    return (kFirst[octave] << 17) + (mantissa >> (6 - kBits[octave]));
  }
  static std::uint32_t result(std::uint32_t word, std::uint64_t sum) {
    const std::uint32_t magnitude = word & ~kSign, exponent = magnitude >> 23;
    std::uint32_t r = from_fixed(sum - kShift, 41);
    r = choose(exponent < 119, magnitude, r);
    r = choose(exponent > 129, kOneWord, r);
    return choose(magnitude > kInfinityWord, kNanF32, (word & kSign) | r);
  }
};

/// One word through the unit.
template <class Unit>
std::uint32_t unit(std::uint32_t word) {
  const std::uint32_t place = Unit::place(word);
  return Unit::result(word, interpolate(Unit::kTable, place, truncated_square(place & 0x1ffff)));
}

/// Many words; only looking up the tables is no vector instruction.
template <class Unit, int kCount>
void unit(const std::uint32_t* words, std::uint32_t* results) {
  alignas(64) std::uint32_t places[kCount], squared[kCount];
  alignas(64) std::uint64_t sums[kCount];
  for (int i = 0; i < kCount; ++i) places[i] = Unit::place(words[i]);
  for (int i = 0; i < kCount; ++i) squared[i] = truncated_square(places[i] & 0x1ffff);
  for (int i = 0; i < kCount; ++i) sums[i] = interpolate(Unit::kTable, places[i], squared[i]);
  for (int i = 0; i < kCount; ++i) results[i] = Unit::result(words[i], sums[i]);
}

}  // namespace tilewright::sim::special
