// The numbers of a FastDivisor, for the host.
#pragma once

#include "base/fast_divisor.h"

#include <cstdint>

namespace tilewright {

/// For 1 <= divisor < 2^31. With 2^(shift - 1) < divisor <= 2^shift the multiplier
/// ceil(2^(31 + shift) / divisor) exceeds the quotient by less than divisor <= 2^shift in
/// 2^(31 + shift), which no x below 2^31 turns into 1.
constexpr FastDivisor make_fast_divisor(std::uint32_t divisor) {
  std::uint32_t shift = 0;
  while ((std::uint32_t{1} << shift) < divisor) ++shift;
  const std::uint64_t power = std::uint64_t{1} << (31 + shift);
  return {static_cast<std::uint32_t>((power + divisor - 1) / divisor), shift};
}

}  // namespace tilewright
