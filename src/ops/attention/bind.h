// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/attention.h"

#include "kernels/attention/k7/k7_fp8.h"
#include "ops/attention/kernels.h"

namespace tilewright::ops {

/// What depends on the plan alone: everything but addresses and tensor maps. Kernels that do not
/// compute in e4m3 take the AttentionParams of it.
kernels::AttentionFp8Params attention_numbers(const AttentionPlan& plan,
                                              const AttentionKernel& kernel,
                                              const device::DeviceInfo& device);

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_attention_arguments(const AttentionPlan& plan, const AttentionArguments& arguments);

/// Adds addresses and tensor maps. Errors as encode_tensor_map.
void bind_attention(const device::Device& device, const AttentionPlan& plan,
                    const AttentionKernel& kernel, const AttentionArguments& arguments,
                    kernels::AttentionFp8Params& params);

}  // namespace tilewright::ops
