#include "ops/linear/plan.h"

#include "base/error.h"
#include "device/kernel_registry.h"
#include "ops/linear/problem.h"
#include "ops/linear/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

struct Choice {
  const LinearKernel* kernel = nullptr;
  std::vector<LinearCandidate> candidates;
};

bool is_embedded(const std::string& entry) {
  return std::ranges::any_of(device::kernel_images(), [&](const device::KernelImage& image) {
    return image.name == entry && image.target == "sm_90a";
  });
}

// What speaks against a kernel, beyond its own obstacle.
std::string find_obstacle(const LinearKernel& kernel, const device::DeviceInfo& device,
                          const LinearPlan& plan) {
  std::string obstacle = kernel.obstacle(plan.weight, plan.problem);
  if (!obstacle.empty()) return obstacle;
  if (device.compute_capability != 90)
    return fmt::format("is for sm_90a; {} has compute capability {}.{}", device.name,
                       device.compute_capability / 10, device.compute_capability % 10);
  if (plan.problem.m == 0) return {};
  LinearPlan trial = plan;
  kernel.lay_out(device, trial);
  for (const LinearLaunch& launch : trial.launches) {
    if (!is_embedded(launch.entry))
      return fmt::format("needs {}, which is not among the embedded kernels", launch.entry);
    if (static_cast<int>(launch.shared_bytes) > device.shared_per_block_optin_bytes)
      return fmt::format("needs {} bytes of shared memory; {} gives {}", launch.shared_bytes,
                         device.name, device.shared_per_block_optin_bytes);
  }
  return {};
}

std::string list_reasons(const std::vector<LinearCandidate>& candidates) {
  std::string text;
  for (const LinearCandidate& c : candidates) text += fmt::format("\n  {} {}", c.name, c.reason);
  return text;
}

const LinearKernel* find_named(const Choice& choice, const std::string& name) {
  const LinearKernel& kernel = find_linear_kernel(name);
  const auto at = std::ranges::find(choice.candidates, name, &LinearCandidate::name);
  if (at->is_possible) return &kernel;
  std::string others;
  for (const LinearCandidate& c : choice.candidates) {
    if (c.is_possible) others += (others.empty() ? "" : ", ") + c.name;
  }
  fail(ErrorKind::kUnsupported, "linear: kernel {} {}. Possible here: {}.", name, at->reason,
       others.empty() ? "none" : others);
}

Choice choose(const device::DeviceInfo& device, const LinearPlan& plan) {
  const LinearProblem& p = plan.problem;
  Choice choice;
  double best_us = std::numeric_limits<double>::infinity();
  for (const auto& kernel : linear_kernels()) {
    LinearCandidate candidate = {.name = kernel->name(),
                                 .reason = find_obstacle(*kernel, device, plan)};
    candidate.is_possible = candidate.reason.empty();
    if (candidate.is_possible) {
      candidate.cost_us = linear_cost_us(*kernel, device, plan.weight, p);
      if (candidate.cost_us < best_us) {
        best_us = candidate.cost_us;
        choice.kernel = kernel.get();
      }
    }
    choice.candidates.push_back(std::move(candidate));
  }
  if (p.kernel != "auto") {
    choice.kernel = find_named(choice, p.kernel);
  } else if (choice.kernel == nullptr) {
    fail(ErrorKind::kUnsupported, "linear: no kernel fits {} weights for {} activations on {}:{}",
         to_string(plan.weight.format), to_string(plan.weight.activations), device.name,
         list_reasons(choice.candidates));
  }
  for (LinearCandidate& c : choice.candidates) {
    if (!c.is_possible || c.name == choice.kernel->name()) continue;
    c.reason = p.kernel != "auto"
                   ? "was not asked for"
                   : fmt::format("is expected to take {:.2f} times as long", c.cost_us / best_us);
  }
  return choice;
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
  if (rates == nullptr && weight.format == WeightFormat::kMxfp4)
    rates = find_rates(kernel, weight, to_string(WeightFormat::kNvfp4));
  const double m = std::max(static_cast<double>(p.m), 1.0);
  const double model = kernel.model_us(device, weight, p);
  if (rates == nullptr) return model;
  // A launch costs the same whatever the shape.
  constexpr double kLaunchUs = 2;
  const double size = static_cast<double>(weight.n) * static_cast<double>(weight.k) /
                      (static_cast<double>(rates->n) * static_cast<double>(rates->k));
  return kLaunchUs + std::max(time_at(*rates, m) - kLaunchUs, 0.1) * size;
}

LinearPlan make_linear_plan(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                            const LinearProblem& problem) {
  LinearPlan plan;
  plan.weight = weight;
  plan.problem = complete_linear_problem(weight, problem);
  Choice choice = choose(device, plan);
  plan.kernel = choice.kernel->name();
  plan.candidates = std::move(choice.candidates);
  if (plan.problem.m > 0) choice.kernel->lay_out(device, plan);
  plan.flops = linear_flops(weight, plan.problem);
  plan.bytes = linear_bytes(weight, plan.problem);
  return plan;
}

}  // namespace tilewright::ops
