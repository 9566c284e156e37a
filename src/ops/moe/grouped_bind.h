// From operands to the arguments of a grouped product.
#pragma once

#include "device/device.h"
#include "kernels/linear/grouped/sm100_grouped.h"
#include "ops/moe/grouped.h"
#include "ops/moe/weights.h"

#include <cstdint>

namespace tilewright::ops {

/// One product. Addresses are of the device.
struct MoeGroupedProduct {
  const PackedExperts& experts;
  std::int64_t matrices, rows;  ///< of weights, and the rows of all experts that there may be
  const void *x, *x_scales;     ///< codes and scales of x or h
  void *out, *out_scales;       ///< h and its scales, or y in bf16
  bool is_gate_up;
  int box_rows;
};

/// The maps and sizes; offsets, factors and the limit are left to the caller.
/// Errors   as encode_tensor_map
kernels::MoeGroupedParams bind_grouped(const device::Device& device,
                                       const MoeGroupedVariant& variant,
                                       const MoeGroupedProduct& product);

}  // namespace tilewright::ops
