// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/attention.h"

#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/k7/k7_paged.h"
#include "ops/attention/kernels.h"

namespace tilewright::ops {

/// The arguments of all kernels: each takes the AttentionParams, with what it needs besides.
struct AttentionNumbers {
  kernels::AttentionFp8Params params;
  kernels::AttentionPages pages;
  FastDivisor page_divisor;  ///< by pages.page_size
};

/// What depends on the plan alone: everything but addresses and tensor maps.
AttentionNumbers attention_numbers(const AttentionPlan& plan, const AttentionKernel& kernel,
                                   const device::DeviceInfo& device);

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_attention_arguments(const AttentionPlan& plan, const AttentionArguments& arguments);

/// Adds addresses and tensor maps. Errors as encode_tensor_map.
void bind_attention(const device::Device& device, const AttentionPlan& plan,
                    const AttentionKernel& kernel, const AttentionArguments& arguments,
                    AttentionNumbers& numbers);

}  // namespace tilewright::ops
