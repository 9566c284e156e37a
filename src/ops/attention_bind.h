// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/attention.h"

#include "kernels/attention/attention.h"
#include "ops/attention_kernels.h"

namespace tilewright::ops {

/// What depends on the plan alone: everything but addresses and tensor maps.
kernels::AttentionParams attention_numbers(const AttentionPlan& plan, const AttentionKernel& kernel,
                                           const device::DeviceInfo& device);

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_attention_arguments(const AttentionPlan& plan, const AttentionArguments& arguments);

/// Adds addresses and tensor maps. Errors as encode_tensor_map.
void bind_attention(const device::Device& device, const AttentionPlan& plan,
                    const AttentionKernel& kernel, const AttentionArguments& arguments,
                    kernels::AttentionParams& params);

}  // namespace tilewright::ops
