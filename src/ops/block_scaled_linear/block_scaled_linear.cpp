// The block-scaled linear operator: a plan, its loaded kernel, and launching it.
#include "tilewright/block_scaled_linear.h"

#include "device/internal.h"
#include "ops/block_scaled_linear/bind.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/weight.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"

#include <cmath>
#include <utility>

namespace tilewright {

struct BlockScaledLinear::State : ops::LoadedPlan<BlockScaledPlan> {
  State(const BlockScaledWeight& prepared, BlockScaledPlan made)
      : LoadedPlan(prepared.device(), std::move(made)), weight(prepared) {}

  BlockScaledWeight weight;  // keeps its memory
  ops::BlockScaledVariant variant = ops::planned_variant(plan());
};

namespace {

constexpr ops::ArgumentChecks kChecks("block-scaled linear");

void check_factor(const char* name, float value) {
  kChecks.check(std::isfinite(value) && value > 0 && std::isfinite(1 / value),
                "{} = {}; expected a finite number above 0 with a finite reciprocal", name, value);
}

void check_arguments(const BlockScaledPlan& plan, const BlockScaledArguments& a) {
  const bool is_nvfp4 = plan.problem.out_dtype == DType::kF4;
  const bool is_requantising = plan.problem.out_dtype != DType::kBF16;
  kChecks.address("x", a.x, ops::kRowAlignment);
  kChecks.address("x_scales", a.x_scales, ops::kRowAlignment);
  kChecks.address("out", a.out, is_requantising ? 1 : 2);
  check_factor("x_tensor_scale", a.x_tensor_scale);
  if (!is_requantising) return;
  kChecks.address("out_scales", a.out_scales, ops::kRowAlignment);
  if (is_nvfp4) check_factor("out_encode_scale", a.out_encode_scale);
}

}  // namespace

BlockScaledLinear::BlockScaledLinear(const BlockScaledWeight& weight,
                                     const BlockScaledProblem& problem) {
  state_ = std::make_unique<State>(
      weight, plan_block_scaled_linear(weight.device(), weight.info(), problem));
}

BlockScaledLinear::~BlockScaledLinear() = default;
BlockScaledLinear::BlockScaledLinear(BlockScaledLinear&&) noexcept = default;
BlockScaledLinear& BlockScaledLinear::operator=(BlockScaledLinear&&) noexcept = default;

const BlockScaledPlan& BlockScaledLinear::plan() const noexcept {
  return state_->plan();
}

void BlockScaledLinear::run(const BlockScaledArguments& a) const {
  const BlockScaledPlan& plan = state_->plan();
  if (plan.launches.empty()) return;
  check_arguments(plan, a);
  const auto& weight = Internal::of(state_->weight);
  const auto pointer = [](const device::Buffer& buffer) {
    return reinterpret_cast<const void*>(buffer.address());
  };
  const kernels::BlockScaledGemmParams params = ops::bind_block_scaled(
      state_->device(), state_->variant, {plan.problem.m, weight.info.n, weight.info.k},
      {.a = a.x,
       .b = pointer(weight.values),
       .a_scales = a.x_scales,
       .b_scales = pointer(weight.scales),
       .d = a.out,
       .d_scales = a.out_scales,
       .a_row_bytes = plan.problem.x_row_bytes,
       .b_row_bytes = weight.row_bytes,
       .d_row_bytes = plan.problem.out_row_bytes},
      {.alpha = a.x_tensor_scale * weight.global_scale,
       .encode_scale = a.out_encode_scale,
       .swiglu_limit = static_cast<float>(plan.problem.swiglu_limit)});
  // The cluster is compiled in.
  Launch launch = plan.launches.front();
  launch.cluster = 1;
  state_->entries.front().launch(ops::plain_launch(launch), params, state_->stream(a.stream));
}

BlockScaledPlan plan_block_scaled_linear(const Device& device, const BlockScaledWeightInfo& weight,
                                         const BlockScaledProblem& problem) {
  return ops::make_block_scaled_plan(opened(device).info(), weight, problem);
}

}  // namespace tilewright
