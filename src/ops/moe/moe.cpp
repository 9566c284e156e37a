// The Mixture-of-Experts operator: a plan, its loaded kernels, and launching them.
#include "tilewright/moe.h"

#include "base/error.h"
#include "device/internal.h"
#include "kernels/moe/permute.h"
#include "ops/moe/bind.h"
#include "ops/moe/plan.h"
#include "ops/moe/weights.h"
#include "ops/operator/operator.h"

#include <utility>

namespace tilewright {

struct Moe::State {
  MoeWeights weights;
  ops::MoePlanned planned;
  std::vector<device::Kernel> entries;  // one a launch

  const device::Device& device() const { return opened(weights.device()); }
};

Moe::Moe(const MoeWeights& weights, const MoeProblem& problem) {
  const device::Device& device = opened(weights.device());
  ops::MoePlanned planned = ops::make_moe_plan(device.info(), weights.info(), problem);
  auto entries = ops::load_entries(device, planned.plan.launches);
  state_ = std::make_unique<State>(State{weights, std::move(planned), std::move(entries)});
}

Moe::~Moe() = default;
Moe::Moe(Moe&&) noexcept = default;
Moe& Moe::operator=(Moe&&) noexcept = default;

const MoePlan& Moe::plan() const noexcept {
  return state_->planned.plan;
}

void Moe::run(const MoeArguments& arguments) const {
  const State& state = *state_;
  ops::check_moe_arguments(state.planned.plan, arguments);
  const auto stream = ops::lent_stream(state.device(), arguments.stream);
  const ops::MoeCall call(state.planned, Internal::of(state.weights), arguments);
  for (std::size_t i = 0; i < state.entries.size(); ++i) call.launch(i, state.entries[i], stream);
}

void Moe::run_launch(std::size_t index, const MoeArguments& arguments) const {
  const State& state = *state_;
  ops::check_moe_arguments(state.planned.plan, arguments);
  require(index < state.entries.size(), ErrorKind::kInvalidArgument,
          "moe: launch {} of a plan with {}; expected a number below that: they count from 0",
          index, state.entries.size());
  ops::MoeCall(state.planned, Internal::of(state.weights), arguments)
      .launch(index, state.entries[index], ops::lent_stream(state.device(), arguments.stream));
}

void Moe::check(const MoeArguments& arguments) const {
  const State& state = *state_;
  const MoeProblem& p = state.planned.plan.problem;
  ops::lent_stream(state.device(), arguments.stream).synchronize();
  if (p.tokens == 0) return;
  kernels::MoeStatus status;
  const device::Device& device = state.device();
  const device::CurrentContext current = device.make_current();
  const auto workspace = reinterpret_cast<device::abi::CUdeviceptr>(arguments.workspace);
  device.check(
      device.cu().memcpy_dtoh(&status, workspace + state.planned.workspace.status, sizeof status),
      "cuMemcpyDtoH");
  const auto refuse = [&](std::uint32_t count, std::uint32_t slot, const char* what) {
    if (count == 0) return;
    std::int32_t id = 0;
    const auto address = reinterpret_cast<device::abi::CUdeviceptr>(ids(arguments));
    device.check(device.cu().memcpy_dtoh(&id, address + 4 * std::size_t{slot}, sizeof id),
                 "cuMemcpyDtoH");
    fail(ErrorKind::kInvalidArgument,
         "moe: ids[{}, {}] = {} {}; {} such ids added nothing. Expected {} different experts of 0 "
         "to {}, or -1 for none. Check the router.",
         slot / p.topk, slot % p.topk, id, what, count, p.topk,
         state.planned.plan.weights.experts - 1);
  };
  refuse(status.num_out_of_range, status.first_out_of_range, "is no expert");
  refuse(status.num_duplicated, status.first_duplicated, "stands twice in its row");
}

const std::int32_t* Moe::ids(const MoeArguments& arguments) const noexcept {
  return ops::MoeCall(state_->planned, Internal::of(state_->weights), arguments).ids();
}

const float* Moe::weights(const MoeArguments& arguments) const noexcept {
  return ops::MoeCall(state_->planned, Internal::of(state_->weights), arguments).route_weights();
}

MoePlan plan_moe(const Device& device, const MoeWeightsInfo& weights, const MoeProblem& problem) {
  return ops::make_moe_plan(opened(device).info(), weights, problem).plan;
}

}  // namespace tilewright
