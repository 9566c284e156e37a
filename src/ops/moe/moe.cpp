// The Mixture-of-Experts operator: a plan, its loaded kernels, and launching them.
#include "tilewright/moe.h"

#include "base/error.h"
#include "device/internal.h"
#include "kernels/moe/permute.h"
#include "ops/moe/bind.h"
#include "ops/moe/direct.h"
#include "ops/moe/plan.h"
#include "ops/moe/problem.h"
#include "ops/moe/weights.h"
#include "ops/operator/operator.h"

#include <utility>

namespace tilewright {

struct Moe::State : ops::LoadedPlan<ops::MoePlanned> {
  State(const MoeWeights& prepared, ops::MoePlanned made)
      : LoadedPlan(prepared.device(), std::move(made)), weights(prepared) {
    if (!is_direct()) return;  // those that do a shared expert's work as well may need more
    for (const device::Kernel& kernel : entries)
      kernel.allow_dynamic_shared_bytes(static_cast<std::uint32_t>(ops::kMostDirectSharedBytes));
  }

  bool is_direct() const {
    return planned.details.kernel == ops::MoeKernel::kDirect && !plan().launches.empty();
  }

  MoeWeights weights;  // keeps their memory
};

Moe::Moe(const MoeWeights& weights, const MoeProblem& problem) {
  const device::DeviceInfo& info = opened(weights.device()).info();
  state_ = std::make_unique<State>(weights, ops::make_moe_plan(info, weights.info(), problem));
}

Moe::~Moe() = default;
Moe::Moe(Moe&&) noexcept = default;
Moe& Moe::operator=(Moe&&) noexcept = default;

const MoePlan& Moe::plan() const noexcept {
  return state_->plan();
}

void Moe::run(const MoeArguments& arguments) const {
  const State& state = *state_;
  ops::check_moe_arguments(state.plan(), arguments);
  const auto stream = state.stream(arguments.stream);
  const ops::MoeCall call(state.planned, Internal::of(state.weights), arguments);
  for (std::size_t i = 0; i < state.entries.size(); ++i) call.launch(i, state.entries[i], stream);
}

void Moe::run_with_shared(const MoeArguments& arguments, const Moe& shared,
                          const MoeArguments& shared_arguments) const {
  const State &state = *state_, &others = *shared.state_;
  require(ops::is_single(shared.plan().problem), ErrorKind::kInvalidArgument,
          "moe: the shared expert of run_with_shared() is routed; expected a plan with the routing "
          "of a single expert (kSingle)");
  const bool are_direct =
      state.is_direct() && others.is_direct() && shared.plan().weights.format == NumberFormat::kFp8;
  const MoePlan &first = state.plan(), &second = shared.plan();
  if (!are_direct || !ops::fits_one_launch(state.device().info(), {first.weights, first.problem},
                                           {second.weights, second.problem})) {
    run(arguments);
    MoeArguments behind = shared_arguments;
    behind.stream = arguments.stream;
    return shared.run(behind);
  }
  ops::check_moe_arguments(state.plan(), arguments);
  ops::check_moe_arguments(shared.plan(), shared_arguments);
  require(arguments.workspace != shared_arguments.workspace, ErrorKind::kInvalidArgument,
          "moe: the shared expert of run_with_shared() has the same workspace; expected one of its "
          "own, as both are written at once");
  const auto stream = state.stream(arguments.stream);
  const ops::MoeCall call(state.planned, Internal::of(state.weights), arguments);
  const ops::MoeCall beside(others.planned, Internal::of(others.weights), shared_arguments);
  call.launch_with(beside, state.entries.front(), stream);
}

void Moe::run_launch(std::size_t index, const MoeArguments& arguments) const {
  const State& state = *state_;
  ops::check_moe_arguments(state.plan(), arguments);
  require(index < state.entries.size(), ErrorKind::kInvalidArgument,
          "moe: launch {} of a plan with {}; expected a number below that: they count from 0",
          index, state.entries.size());
  ops::MoeCall(state.planned, Internal::of(state.weights), arguments)
      .launch(index, state.entries[index], state.stream(arguments.stream));
}

void Moe::check(const MoeArguments& arguments) const {
  const State& state = *state_;
  const MoeProblem& p = state.plan().problem;
  state.stream(arguments.stream).synchronize();
  if (p.tokens == 0 || ops::is_single(p)) return;
  kernels::MoeStatus status;
  const device::Device& device = state.device();
  const device::CurrentContext current = device.make_current();
  const auto workspace = reinterpret_cast<device::abi::CUdeviceptr>(arguments.workspace);
  device.check(
      device.cu().memcpy_dtoh(&status, workspace + state.planned.workspace.status, sizeof status),
      "cuMemcpyDtoH");
  if (ops::is_grouped_input(p)) {
    require(status.num_out_of_range == 0, ErrorKind::kInvalidArgument,
            "moe: counts[{}] is out of range, as {} in all are; expected 0 to {} {}. They were "
            "taken as the nearest that fit. Check the dispatch.",
            status.first_out_of_range, status.num_out_of_range, p.tokens,
            ops::is_in_rooms(p) ? "in each" : "in all");
    return;
  }
  const auto refuse = [&](std::uint32_t count, std::uint32_t slot, const char* what) {
    if (count == 0) return;
    std::int32_t id = 0;
    const auto address = reinterpret_cast<device::abi::CUdeviceptr>(ids(arguments));
    device.check(device.cu().memcpy_dtoh(&id, address + 4 * std::size_t{slot}, sizeof id),
                 "cuMemcpyDtoH");
    fail(ErrorKind::kInvalidArgument,
         "moe: ids[{}, {}] = {} {}; {} such ids added nothing. Expected {} different experts of 0 "
         "to {}, or -1 for none. Check the router.",
         slot / p.topk, slot % p.topk, id, what, count, p.topk, state.plan().weights.experts - 1);
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
