// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/latent_attention.h"

#include "device/device.h"
#include "device/kernel.h"
#include "ops/latent_attention/plan.h"

namespace tilewright::ops {

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_latent_arguments(const LatentAttentionPlan& plan,
                            const LatentAttentionArguments& arguments);

/// Enqueues number `index` of the plan's launches. Errors as device::Kernel::launch.
void launch_latent(const device::Device& device, const LatentPlanned& planned,
                   const LatentAttentionArguments& arguments, std::size_t index,
                   const device::Kernel& kernel, const device::Stream& stream);

}  // namespace tilewright::ops
