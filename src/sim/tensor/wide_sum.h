// An exact sum of dyadic numbers of any exponent that tensor-core operands can have.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tilewright::sim {

/// A fixed-point number of 1280 bits in two's complement whose lowest bit is 2^kLowestExponent.
class WideSum {
 public:
  /// Smallest product of two bf16 with two scales: 2^(2*(-126-7) - 2*127); tf32 needs 3 bits more.
  static constexpr int kLowestExponent = -640;

  /// magnitude * 2^lowest_exponent, and less than one unit of that more if has_remainder.
  struct Value {
    std::uint64_t magnitude = 0;
    int lowest_exponent = 0;
    bool is_negative = false;
    bool has_remainder = false;
  };

  /// Adds value * 2^exponent.
  void add(std::int64_t value, int exponent) {
    const auto bit = static_cast<unsigned>(exponent - kLowestExponent);
    const auto wide = static_cast<__int128_t>(value) * (static_cast<__int128_t>(1) << (bit % 64));
    const auto bits = static_cast<__uint128_t>(wide);
    const std::uint64_t fill = value < 0 ? ~std::uint64_t{0} : 0;
    std::uint64_t carry = 0;
    for (std::size_t i = bit / 64; i < limbs_.size(); ++i) {
      const std::size_t part = i - bit / 64;
      const std::uint64_t addend =
          part > 1 ? fill : static_cast<std::uint64_t>(bits >> (64 * part));
      const auto sum = static_cast<__uint128_t>(limbs_[i]) + addend + carry;
      limbs_[i] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
  }

  /// The sum with its 64 highest bits kept.
  Value value() const {
    Value result;
    auto limbs = limbs_;
    result.is_negative = limbs.back() >> 63 != 0;
    if (result.is_negative) negate(limbs);
    std::size_t top = limbs.size() - 1;
    while (top > 0 && limbs[top] == 0) --top;
    const int shift = std::countl_zero(limbs[top]);  // 64 only if everything is zero
    if (limbs[top] == 0) return {};
    result.magnitude = limbs[top] << shift;
    if (top > 0 && shift > 0) result.magnitude |= limbs[top - 1] >> (64 - shift);
    result.lowest_exponent = kLowestExponent + static_cast<int>(64 * top) - shift;
    if (top > 0) result.has_remainder = limbs[top - 1] << shift != 0;
    for (std::size_t i = 0; i + 1 < top; ++i) result.has_remainder |= limbs[i] != 0;
    return result;
  }

 private:
  using Limbs = std::array<std::uint64_t, 20>;

  static void negate(Limbs& limbs) {
    std::uint64_t carry = 1;
    for (std::uint64_t& limb : limbs) {
      limb = ~limb + carry;
      carry = carry != 0 && limb == 0 ? 1 : 0;
    }
  }

  Limbs limbs_{};
};

}  // namespace tilewright::sim
