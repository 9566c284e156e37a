// From a prepare problem to its plan, and from addresses to the arguments of its kernels.
#pragma once

#include "tilewright/attention_prepare.h"

#include "device/device.h"
#include "kernels/attention/k8/k8_prepare.h"

namespace tilewright::ops {

/// Errors   as AttentionPrepare's constructor
AttentionPreparePlan make_attention_prepare_plan(const device::DeviceInfo& device,
                                                 const AttentionPrepareProblem& problem);

/// What attention computes on once this has run: contiguous e4m3 operands.
AttentionProblem prepared_problem(const AttentionPrepareProblem& problem);

/// What depends on the plan alone: everything but addresses.
kernels::K8PrepareParams attention_prepare_numbers(const AttentionPreparePlan& plan);

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void bind_attention_prepare(const AttentionPreparePlan& plan, const AttentionPrepareArguments& a,
                            kernels::K8PrepareParams& params);

}  // namespace tilewright::ops
