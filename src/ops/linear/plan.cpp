#include "ops/linear/plan.h"

#include "ops/linear/problem.h"
#include "ops/linear/rates.h"
#include "ops/operator/choose.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

// What speaks against a kernel, beyond its own obstacle.
std::string find_obstacle(const LinearKernel& kernel, const device::DeviceInfo& device,
                          const LinearPlan& plan) {
  const LinearActivations activations = plan.weight.activations;
  if (!kernel.is_block_scaled() && activations == LinearActivations::kBlockScaled)
    return "reads packed weights: prepare this one for bf16 or fp8 activations";
  std::string obstacle = kernel.obstacle(plan.weight, plan.problem);
  if (!obstacle.empty()) return obstacle;
  obstacle = kernel.device_obstacle(device, plan.problem);
  if (!obstacle.empty()) return obstacle;
  if (kernel.is_block_scaled() && activations != LinearActivations::kBlockScaled) {
    return fmt::format(
        "reads weights as rows with their scales: prepare this one, packed for {}, "
        "for block_scaled activations",
        to_string(activations));
  }
  if (keeps_rows(device, plan.weight) && !kernel.reads_rows()) {
    return fmt::format("reads packed weights; on Blackwell {} ones are kept as rows",
                       plan.weight.format == NumberFormat::kBf16 ? "bf16" : "fp8 by fp8");
  }
  if (plan.problem.m == 0) return {};
  LinearPlan trial = split_groups(plan, kernel).part;
  kernel.lay_out(device, trial);
  for (const Launch& launch : trial.launches) {
    obstacle = launch_obstacle(device.compute_capability, device, launch);
    if (!obstacle.empty()) return obstacle;
  }
  return {};
}

const LinearKernel& choose_kernel(const device::DeviceInfo& device, LinearPlan& plan) {
  const LinearWeightInfo& w = plan.weight;
  const Request request = {
      "linear", plan.problem.kernel, device.name,
      fmt::format("{} weights for {} activations", to_string(w.format), to_string(w.activations)),
      "Ask for bf16 x, for auto, or take another device."};
  return *linear_kernels()[choose(plan, request, linear_kernels(), [&](const auto& kernel) {
    return make_option(kernel->name(), find_obstacle(*kernel, device, plan), [&] {
      const LinearSplit split = split_groups(plan, *kernel);
      return static_cast<double>(split.parts) *
             linear_cost_us(*kernel, device, split.part.weight, plan.problem);
    });
  })];
}

void lay_out(const device::DeviceInfo& device, const LinearKernel& kernel, LinearPlan& plan) {
  LinearSplit split = split_groups(plan, kernel);
  kernel.lay_out(device, split.part);
  plan.workspace_bytes = split.part.workspace_bytes;
  for (std::int64_t i = 0; i < split.parts; ++i)
    plan.launches.insert(plan.launches.end(), split.part.launches.begin(),
                         split.part.launches.end());
}

// Between two numbers of rows in proportion; beyond the last in proportion to the rows.
double time_at(const LinearRates& rates, double m) {
  double before_m = 0, before_us = 0;
  for (std::size_t i = 0; i < kRateRows.size(); ++i) {
    if (!(rates.us[i] > 0)) continue;
    const double at = kRateRows[i], us = static_cast<double>(rates.us[i]);
    if (at >= m) {
      if (before_m == 0) return us;
      return before_us + (us - before_us) * (m - before_m) / (at - before_m);
    }
    before_m = at;
    before_us = us;
  }
  return before_us * m / before_m;
}

// The measured shape that is least different.
const LinearRates* find_rates(const LinearKernel& kernel, const LinearWeightInfo& weight,
                              std::string_view format) {
  const LinearRates* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const LinearRates& rates : kLinearRates) {
    if (rates.kernel != kernel.name() || rates.format != format) continue;
    if (rates.is_fp8 != (weight.activations == LinearActivations::kFp8)) continue;
    const double apart = std::abs(std::log(static_cast<double>(weight.n) / rates.n)) +
                         std::abs(std::log(static_cast<double>(weight.k) / rates.k));
    if (apart >= least) continue;
    least = apart;
    best = &rates;
  }
  return best;
}

}  // namespace

double linear_cost_us(const LinearKernel& kernel, const device::DeviceInfo& device,
                      const LinearWeightInfo& weight, const LinearProblem& p) {
  const LinearRates* rates = find_rates(kernel, weight, to_string(weight.format));
  // Both are decoded by the same instructions.
  if (rates == nullptr && weight.format == NumberFormat::kMxfp4)
    rates = find_rates(kernel, weight, to_string(NumberFormat::kNvfp4));
  const double m = std::max(static_cast<double>(p.m), 1.0);
  const double model = kernel.model_us(device, weight, p);
  // Rates are an H200's; of other chips there are none.
  if (rates == nullptr || is_blackwell(device)) return model;
  // A launch costs the same whatever the shape.
  constexpr double kLaunchUs = 2;
  const double size = static_cast<double>(weight.n) * static_cast<double>(weight.k) /
                      (static_cast<double>(rates->n) * static_cast<double>(rates->k));
  return kLaunchUs + std::max(time_at(*rates, m) - kLaunchUs, 0.1) * size;
}

LinearSplit split_groups(const LinearPlan& plan, const LinearKernel& kernel) {
  LinearSplit split = {plan, 1};
  if (plan.weight.groups == 1 || kernel.takes_groups(plan.weight.format)) return split;
  split.parts = plan.weight.groups;
  split.part.weight.n /= split.parts;
  split.part.weight.groups = 1;
  split.part.launches.resize(plan.launches.size() / static_cast<std::size_t>(split.parts));
  return split;
}

LinearPlan make_linear_plan(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                            const LinearProblem& problem) {
  LinearPlan plan;
  plan.weight = weight;
  plan.problem = complete_linear_problem(weight, problem);
  const LinearKernel& kernel = choose_kernel(device, plan);
  if (plan.problem.m > 0) lay_out(device, kernel, plan);
  plan.flops = linear_flops(weight, plan.problem);
  plan.bytes = linear_bytes(weight, plan.problem);
  plan.notes = linear_notes(plan);
  if (is_blackwell(device)) plan.notes.push_back(blackwell_costs_note());
  return plan;
}

}  // namespace tilewright::ops
