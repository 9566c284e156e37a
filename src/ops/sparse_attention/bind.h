// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/sparse_attention.h"

#include "device/kernel.h"
#include "ops/sparse_attention/plan.h"

namespace tilewright::ops {

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_sparse_arguments(const SparseAttentionPlan& plan,
                            const SparseAttentionArguments& arguments);

/// Enqueues number `index` of the plan's launches. Errors as device::Kernel::launch.
void launch_sparse(const SparsePlanned& planned, const SparseAttentionArguments& arguments,
                   std::size_t index, const device::Kernel& kernel, const device::Stream& stream);

}  // namespace tilewright::ops
