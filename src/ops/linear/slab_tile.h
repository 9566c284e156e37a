// How the slab kernel cuts a weight: for a linear layer, and for a stack of two.
#pragma once

#include "tilewright/linear.h"

#include "device/device.h"
#include "kernels/linear/slab/slab.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::ops {

/// Warps of a CTA, and the most stages of each.
inline constexpr int kSlabWarps = 16, kSlabStages = 3;

/// How a launch cuts the weights of a stack.
struct SlabStack {
  std::vector<kernels::SlabTile> tiles;
  std::vector<kernels::SlabParams> sizes;
};

/// Why the kernel cannot read a weight; empty if it can.
std::string slab_obstacle(const LinearWeightInfo& weight, std::int64_t m);

/// m, n, k and matrices; the rest is zero.
kernels::SlabParams slab_sizes(const LinearWeightInfo& weight, std::int64_t m);

/// Bytes of the weight that the busiest CTA reads.
std::int64_t slab_bytes(const kernels::SlabTile& tile, kernels::SlabParams sizes);

/// The tile of at most `most_ctas` CTAs whose busiest one reads least; of equals the tallest.
/// `bricks`: those to choose from. Its shared memory may be more than there is.
kernels::SlabTile choose_slab_tile(const device::DeviceInfo& device, kernels::WeightFormat format,
                                   const kernels::SlabParams& sizes, int most_ctas,
                                   std::span<const int> bricks);

/// Shared memory of a launch that needs so much: more than half of an SM's. Two such CTAs do not
/// fit on an SM, so those of the next launch take one SM each.
std::uint32_t slab_shared_bytes(const device::DeviceInfo& device, std::uint32_t needed) noexcept;

}  // namespace tilewright::ops
