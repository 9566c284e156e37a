// Tensor maps of tiles: what a copy is told comes from the value that kernels take descriptors from
// (arch::SmemBox).
#pragma once

#include "arch/smem_descriptor.h"
#include "device/tensor_map.h"

#include <cstdint>

namespace tilewright::ops {

/// The swizzle of a map whose copies write such boxes.
constexpr device::TensorMapSwizzle map_swizzle(const arch::SmemBox& box) {
  switch (box.swizzle) {
    case arch::SmemSwizzle::k32B:
      return device::TensorMapSwizzle::k32B;
    case arch::SmemSwizzle::k64B:
      return device::TensorMapSwizzle::k64B;
    case arch::SmemSwizzle::k128B:
      return device::TensorMapSwizzle::k128B;
    case arch::SmemSwizzle::k128B32BAtom:
      return device::TensorMapSwizzle::k128BAtom32B;
    default:
      return device::TensorMapSwizzle::kNone;
  }
}

/// Extent of a box along the contiguous index, in elements: a span of the swizzle, or whole rows.
constexpr std::uint32_t map_columns(const arch::SmemBox& box, std::uint32_t elem_bytes) {
  const bool is_plain = box.swizzle == arch::SmemSwizzle::kNone;
  return static_cast<std::uint32_t>(is_plain ? box.row_bytes : box.span()) / elem_bytes;
}
constexpr std::uint32_t map_rows(const arch::SmemBox& box) {
  return static_cast<std::uint32_t>(box.rows);
}

}  // namespace tilewright::ops
