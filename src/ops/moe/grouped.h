// The grouped products of Blackwell: tiles, what they cost by count, where their operands lie.
#pragma once

#include "tilewright/moe.h"

#include "device/device.h"
#include "formats/scale_layout.h"
#include "kernels/linear/grouped/sm100_grouped.h"
#include "ops/block_scaled_linear/kernels.h"

#include <cstdint>
#include <string>

namespace tilewright::ops {

/// G of h in NVFP4: blocks of 16 whose largest magnitude is from 0.0118 to 336 have scales of full
/// precision. Products of DeepSeek-V4, with limit 10 and weights up to 2.5, are within.
inline constexpr float kHiddenEncodeScale = 8;

/// The two products of a layer by one of the tiles that they come in.
struct MoeGroupedVariant : BlockScaledVariant {
  std::string entry(bool is_gate_up) const;
  /// Along a row of k elements.
  std::int64_t scale_tiles(std::int64_t k) const { return scale_tiles_along_k(k / scale_block()); }
};
MoeGroupedVariant moe_grouped_variant(NumberFormat format, bool is_few);

/// Why these experts cannot be multiplied so, whatever the device; empty if they can.
std::string grouped_obstacle(const MoeWeightsInfo& weights);

/// Microseconds of both products by count if every unit works at its peak: tensor cores, bytes that
/// arrive at an SM, shared memory (each as in block_scaled_cost()), and HBM, with each used expert
/// once. Tokens are spread evenly over the experts that uniform routing is expected to visit.
double grouped_cost_us(const device::DeviceInfo& device, const MoeGroupedVariant& variant,
                       const MoeWeightsInfo& weights, const MoeProblem& problem);

/// Rows that are loaded at a time. Few: so that the rows of nearly all experts are at most four
/// boxes, for what is loaded is also multiplied. Else as many as nearly all experts have, or 128.
int grouped_box_rows(const MoeWeightsInfo& weights, const MoeProblem& problem, bool is_few);

}  // namespace tilewright::ops
