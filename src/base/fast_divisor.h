// Division by a number that is known before the loop.
#pragma once

#include <cstdint>

namespace tilewright {

/// x / divisor for 0 <= x < 2^31 by one multiplication and a shift: see make_fast_divisor().
struct FastDivisor {
  std::uint32_t multiplier, shift;

  constexpr std::uint32_t divide(std::uint32_t x) const {
    return static_cast<std::uint32_t>((std::uint64_t{2} * x * multiplier) >> 32) >> shift;
  }
};

}  // namespace tilewright
