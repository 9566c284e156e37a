// From a weight and a problem to launches, by arithmetic alone.
#pragma once

#include "tilewright/linear.h"

#include "device/device.h"
#include "ops/linear/kernel.h"

#include <cstdint>
#include <vector>

namespace tilewright::ops {

/// Errors   as Linear's constructor
LinearPlan make_linear_plan(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                            const LinearProblem& problem);

/// Expected microseconds: from the table of measured times (linear_rates.h) of the nearest shape if
/// the kernel stands there, else by its model. Only its order among kernels means something.
double linear_cost_us(const LinearKernel& kernel, const device::DeviceInfo& device,
                      const LinearWeightInfo& weight, const LinearProblem& problem);

/// How a kernel goes through the groups of a weight: `part` is the plan of each of so many parts,
/// which are the groups, or all of them at once.
struct LinearSplit {
  LinearPlan part;
  std::int64_t parts = 1;
};
/// Of a plan with or without launches.
LinearSplit split_groups(const LinearPlan& plan, const LinearKernel& kernel);

/// How problem and kernel read.
std::vector<PlanNote> linear_notes(const LinearPlan& plan);

}  // namespace tilewright::ops
