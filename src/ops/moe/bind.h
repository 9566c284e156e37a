// From a plan and addresses to the arguments of its kernels.
#pragma once

#include "tilewright/moe.h"

#include "device/internal.h"
#include "device/kernel.h"
#include "ops/moe/plan.h"
#include "ops/moe/weights.h"
#include "ops/operator/workspace.h"

namespace tilewright::ops {

/// Errors   InvalidArgument if an address that the problem needs is null or not aligned
void check_moe_arguments(const MoePlan& plan, const MoeArguments& arguments);

/// One run of a plan: what its launches have in common.
class MoeCall {
 public:
  MoeCall(const MoePlanned& planned, const StateOf<MoeWeights>& weights,
          const MoeArguments& arguments) noexcept
      : planned_(planned), weights_(weights), arguments_(arguments) {}

  /// Enqueues number `index` of the plan's launches. Errors as device::Kernel::launch.
  void launch(std::size_t index, const device::Kernel& kernel, const device::Stream& stream) const;

  /// Enqueues the launch of a direct kernel with the work of `shared` beside it.
  void launch_with(const MoeCall& shared, const device::Kernel& kernel,
                   const device::Stream& stream) const;

  const std::int32_t* ids() const noexcept;
  const float* route_weights() const noexcept;

 private:
  template <class T>
  T* at(std::size_t offset) const noexcept {
    return part_of<T>(arguments_.workspace, offset);
  }
  const MoeProblem& problem() const noexcept { return planned_.plan.problem; }
  const MoeWeightsInfo& info() const noexcept { return weights_.info; }
  const std::int32_t* shared_first() const noexcept;
  void launch_direct(const MoeCall* shared, const device::Kernel& kernel,
                     const device::Stream& stream) const;

  const MoePlanned& planned_;
  const StateOf<MoeWeights>& weights_;
  const MoeArguments& arguments_;

  friend struct MoeParamsMaker;
};

}  // namespace tilewright::ops
