// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/attention_decode.h"

#include "device/kernel.h"
#include "ops/decode/plan.h"

namespace tilewright::ops {

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_decode_arguments(const AttentionDecodePlan& plan,
                            const AttentionDecodeArguments& arguments);

/// Enqueues number `index` of the plan's launches. `guess`: what lengths probably are; null: what
/// arguments.lengths are when the kernel begins, maybe before those before it have ended.
/// Errors   as device::Kernel::launch and device::encode_tensor_map
void launch_decode(const device::Device& device, const DecodePlanned& planned,
                   const AttentionDecodeArguments& arguments, std::size_t index,
                   const device::Kernel& kernel, const device::Stream& stream,
                   const std::int32_t* guess = nullptr);

}  // namespace tilewright::ops
