// Quotients that are rounded up.
#pragma once

#include <cstdint>

namespace tilewright::ops {

/// For a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The extent of a grid whose CTAs take so many items each.
constexpr std::uint32_t ctas_for(std::int64_t items, std::int64_t items_per_cta) {
  return static_cast<std::uint32_t>(ceil_div(items, items_per_cta));
}

}  // namespace tilewright::ops
