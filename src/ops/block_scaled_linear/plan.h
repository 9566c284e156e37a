// From a weight's shape and a problem to a launch, by arithmetic alone.
#pragma once

#include "tilewright/block_scaled_linear.h"

#include "device/device.h"
#include "ops/block_scaled_linear/kernels.h"

namespace tilewright::ops {

/// The kernels that read such a weight.
/// Errors   InvalidArgument if none does
kernels::BlockScaledKind block_scaled_kind(NumberFormat format);

/// Errors   as BlockScaledLinear's constructor
BlockScaledPlan make_block_scaled_plan(const device::DeviceInfo& device,
                                       const BlockScaledWeightInfo& weight,
                                       const BlockScaledProblem& problem);

/// The variant that a plan has chosen.
BlockScaledVariant planned_variant(const BlockScaledPlan& plan);

}  // namespace tilewright::ops
