// Special registers, and places in a grid as numbers.
#pragma once

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <cstdint>

namespace tilewright::sim {

/// The coordinates of number `linear` in an array of this extent, x first.
inline Dim3 index_of(std::uint64_t linear, const Dim3& extent) {
  const auto x = static_cast<std::uint32_t>(linear % extent.x);
  const auto y = static_cast<std::uint32_t>(linear / extent.x % extent.y);
  const auto z = static_cast<std::uint32_t>(linear / (std::uint64_t{extent.x} * extent.y));
  return {x, y, z};
}

inline Dim3 divide(const Dim3& a, const Dim3& b) {
  return {a.x / b.x, a.y / b.y, a.z / b.z};
}

/// The value of a special register in one lane when its warp starts.
std::uint64_t special_value(const Warp& warp, const SpecialRow& special, int lane);

}  // namespace tilewright::sim
