// The block-scaled linear operator: a plan, its loaded kernel, and launching it.
#include "tilewright/block_scaled_linear.h"

#include "base/error.h"
#include "ops/block_scaled_linear/bind.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/weight.h"
#include "ops/operator/planned_launch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

struct BlockScaledLinear::State {
  BlockScaledWeight weight;
  BlockScaledPlan plan;
  ops::BlockScaledVariant variant;
  std::vector<device::Kernel> entries;  // one a launch
};

namespace {

void check_address(const char* name, const void* address, std::size_t alignment) {
  require(address != nullptr, ErrorKind::kInvalidArgument,
          "block-scaled linear: the address of {} is null; the plan needs it", name);
  require(reinterpret_cast<std::uintptr_t>(address) % alignment == 0, ErrorKind::kInvalidArgument,
          "block-scaled linear: the address of {} is {}; expected a multiple of {}", name, address,
          alignment);
}

void check_factor(const char* name, float value) {
  require(std::isfinite(value) && value > 0 && std::isfinite(1 / value),
          ErrorKind::kInvalidArgument,
          "block-scaled linear: {} = {}; expected a finite number above 0 with a finite reciprocal",
          name, value);
}

void check_arguments(const BlockScaledPlan& plan, const BlockScaledArguments& a) {
  constexpr std::size_t kCopyAlignment = 16;
  const bool is_requantising = plan.problem.out_dtype == DType::kF4;
  check_address("x", a.x, kCopyAlignment);
  check_address("x_scales", a.x_scales, kCopyAlignment);
  check_address("out", a.out, is_requantising ? 1 : 2);
  check_factor("x_tensor_scale", a.x_tensor_scale);
  if (!is_requantising) return;
  check_address("out_scales", a.out_scales, kCopyAlignment);
  check_factor("out_encode_scale", a.out_encode_scale);
}

}  // namespace

BlockScaledLinear::BlockScaledLinear(const BlockScaledWeight& weight,
                                     const BlockScaledProblem& problem) {
  const device::Device& device = weight.device().internal();
  BlockScaledPlan plan = ops::make_block_scaled_plan(device.info(), weight.info(), problem);
  const ops::BlockScaledVariant variant = ops::planned_variant(plan);
  auto entries = ops::load_entries(device, plan.launches);
  state_ = std::make_unique<State>(State{weight, std::move(plan), variant, std::move(entries)});
}

BlockScaledLinear::~BlockScaledLinear() = default;
BlockScaledLinear::BlockScaledLinear(BlockScaledLinear&&) noexcept = default;
BlockScaledLinear& BlockScaledLinear::operator=(BlockScaledLinear&&) noexcept = default;

const BlockScaledPlan& BlockScaledLinear::plan() const noexcept {
  return state_->plan;
}

void BlockScaledLinear::run(const BlockScaledArguments& a) const {
  const BlockScaledPlan& plan = state_->plan;
  if (plan.launches.empty()) return;
  check_arguments(plan, a);
  const BlockScaledWeight::State& weight = state_->weight.internal();
  const device::Device& device = weight.handle.internal();
  const auto pointer = [](const device::Buffer& buffer) {
    return reinterpret_cast<const void*>(buffer.address());
  };
  const kernels::BlockScaledGemmParams params = ops::bind_block_scaled(
      device, state_->variant, {plan.problem.m, weight.info.n, weight.info.k},
      {.a = a.x,
       .b = pointer(weight.values),
       .a_scales = a.x_scales,
       .b_scales = pointer(weight.scales),
       .d = a.out,
       .d_scales = a.out_scales,
       .a_row_bytes = plan.problem.x_row_bytes,
       .b_row_bytes = weight.row_bytes,
       .d_row_bytes = plan.problem.out_row_bytes},
      {.alpha = a.x_tensor_scale * weight.global_scale, .encode_scale = a.out_encode_scale});
  const auto stream = ops::lent_stream(device, a.stream);
  const LinearLaunch& launch = plan.launches.front();
  state_->entries.front().launch({.grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                                  .block = {launch.block[0], launch.block[1], launch.block[2]},
                                  .dynamic_shared_bytes = launch.shared_bytes},
                                 params, stream);
}

BlockScaledPlan plan_block_scaled_linear(const Device& device, const BlockScaledWeightInfo& weight,
                                         const BlockScaledProblem& problem) {
  return ops::make_block_scaled_plan(device.internal().info(), weight, problem);
}

std::string BlockScaledPlan::to_string() const {
  const bool is_nvfp4 = weight.format == WeightFormat::kNvfp4;
  std::string text =
      fmt::format("linear     m {}, n {}, k {}, weight {} by {} activations, out {}\n", problem.m,
                  weight.n, weight.k, tilewright::to_string(weight.format),
                  is_nvfp4 ? "nvfp4" : "mxfp8", problem.out_dtype == DType::kF4 ? "nvfp4" : "bf16");
  text += fmt::format("kernel     {}\n", kernel);
  if (launches.empty()) text += "launches   none: x has no rows\n";
  for (const LinearLaunch& launch : launches) {
    text += fmt::format(
        "launch     {}: grid {}, block {}, clusters of {}, {} bytes of shared memory\n",
        launch.entry, launch.grid[0], launch.block[0], launch.cluster, launch.shared_bytes);
  }
  text += fmt::format("work       {:.6g} GFLOP, {:.6g} MB\n", flops * 1e-9, bytes * 1e-6);
  const auto chosen = std::ranges::find(candidates, kernel, &LinearCandidate::name);
  text += fmt::format("bound      {:.2f} us by count: a floor, no time\n", chosen->cost_us);
  for (const LinearCandidate& candidate : candidates) {
    if (candidate.name == kernel) continue;
    text += fmt::format("not {}: it {}\n", candidate.name, candidate.reason);
  }
  return text;
}

}  // namespace tilewright
