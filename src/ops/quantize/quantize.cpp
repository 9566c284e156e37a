// The quantise operator: a plan, its loaded kernel, and launching it.
#include "tilewright/quantize.h"

#include "device/internal.h"
#include "ops/operator/operator.h"
#include "ops/quantize/plan.h"

namespace tilewright {

struct Quantize::State : ops::LoadedPlan<QuantizePlan> {
  kernels::QuantizeParams numbers = ops::quantize_numbers(plan());  // without addresses

  using LoadedPlan::LoadedPlan;
};

Quantize::Quantize(const Device& device, const QuantizeProblem& problem)
    : state_(std::make_unique<State>(device,
                                     ops::make_quantize_plan(opened(device).info(), problem))) {}

Quantize::~Quantize() = default;
Quantize::Quantize(Quantize&&) noexcept = default;
Quantize& Quantize::operator=(Quantize&&) noexcept = default;

const QuantizePlan& Quantize::plan() const noexcept {
  return state_->plan();
}

void Quantize::run(const QuantizeArguments& a) const {
  const State& state = *state_;
  const QuantizePlan& plan = state.plan();
  ops::check_quantize_arguments(plan, a);
  if (state.entries.empty()) return;
  const device::Stream stream = state.stream(a.stream);
  constexpr std::uintptr_t kVectorBytes = 16;
  const auto row_bytes =
      static_cast<std::uintptr_t>(plan.problem.row_stride * bits_per_elem(plan.problem.dtype) / 8);
  kernels::QuantizeParams params = state.numbers;
  params.in = a.in;
  params.row_index = plan.problem.has_row_index ? a.row_index : nullptr;
  params.codes = a.codes;
  params.scales = a.scales;
  params.encode_scale = plan.problem.has_encode_scale_address ? a.encode_scale : nullptr;
  params.tensor_scale = a.tensor_scale;
  params.partial_amax = static_cast<float*>(a.workspace);
  params.is_in_aligned =
      reinterpret_cast<std::uintptr_t>(a.in) % kVectorBytes == 0 && row_bytes % kVectorBytes == 0;
  device::LaunchConfig config = ops::plain_launch(plan.launches.front());
  config.is_cooperative = plan.is_cooperative;
  state.entries.front().launch(config, params, stream);
}

QuantizePlan plan_quantize(const Device& device, const QuantizeProblem& problem) {
  return ops::make_quantize_plan(opened(device).info(), problem);
}

QuantizePlan plan_quantize_on_host(const QuantizeProblem& problem) {
  return ops::make_quantize_sizes(problem);
}

}  // namespace tilewright
