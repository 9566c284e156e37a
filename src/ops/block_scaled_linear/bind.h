// From a kernel, sizes and addresses to its arguments.
#pragma once

#include "device/device.h"
#include "ops/block_scaled_linear/kernels.h"

#include <limits>

namespace tilewright::ops {

/// Where operands and results lie on the device, and how far their rows are apart.
struct BlockScaledMemory {
  const void *a = nullptr, *b = nullptr;
  const void *a_scales = nullptr, *b_scales = nullptr;  ///< 128x4 order
  void *d = nullptr, *d_scales = nullptr;
  std::int64_t a_row_bytes = 0, b_row_bytes = 0, d_row_bytes = 0;
};

struct BlockScaledFactors {
  float alpha = 1;         ///< product of the operands' tensor scales
  float encode_scale = 1;  ///< of results requantised to NVFP4
  float swiglu_limit = std::numeric_limits<float>::infinity();
};

/// Tensor maps, numbers of tiles, and the rest of what the kernel reads. Sizes of 0 need no maps.
/// Errors   as encode_tensor_map
kernels::BlockScaledGemmParams bind_block_scaled(const device::Device& device,
                                                 const BlockScaledVariant& variant,
                                                 const BlockScaledSizes& sizes,
                                                 const BlockScaledMemory& memory,
                                                 const BlockScaledFactors& factors);

}  // namespace tilewright::ops
