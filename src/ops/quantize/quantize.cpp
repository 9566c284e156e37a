// The quantise operator: a plan, its loaded kernel, and launching it.
#include "tilewright/quantize.h"

#include "device/kernel_registry.h"
#include "ops/operator/planned_launch.h"
#include "ops/quantize/plan.h"

#include <utility>

#include <fmt/format.h>

namespace tilewright {

struct Quantize::State {
  Device handle;  // keeps the device open
  QuantizePlan plan;
  std::optional<device::Kernel> kernel;
  kernels::QuantizeParams numbers;  // without addresses
};

Quantize::Quantize(const Device& device, const QuantizeProblem& problem) {
  QuantizePlan plan = ops::make_quantize_plan(device.internal().info(), problem);
  std::optional<device::Kernel> kernel;
  if (!plan.entry.empty()) kernel = device::load_kernel(device.internal(), plan.entry);
  const kernels::QuantizeParams numbers = ops::quantize_numbers(plan);
  state_ = std::make_unique<State>(State{device, std::move(plan), std::move(kernel), numbers});
}

Quantize::~Quantize() = default;
Quantize::Quantize(Quantize&&) noexcept = default;
Quantize& Quantize::operator=(Quantize&&) noexcept = default;

const QuantizePlan& Quantize::plan() const noexcept {
  return state_->plan;
}

void Quantize::run(const QuantizeArguments& a) const {
  const State& state = *state_;
  const QuantizePlan& plan = state.plan;
  ops::check_quantize_arguments(plan, a);
  if (!state.kernel) return;
  const device::Device& device = state.handle.internal();
  const auto stream = ops::lent_stream(device, a.stream);
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
  state.kernel->launch({.grid = {plan.grid[0], plan.grid[1], plan.grid[2]},
                        .block = {plan.block[0], plan.block[1], plan.block[2]},
                        .is_cooperative = plan.is_cooperative},
                       params, stream);
}

QuantizePlan plan_quantize(const Device& device, const QuantizeProblem& problem) {
  return ops::make_quantize_plan(device.internal().info(), problem);
}

QuantizePlan plan_quantize_on_host(const QuantizeProblem& problem) {
  return ops::make_quantize_sizes(problem);
}

std::string QuantizePlan::to_string() const {
  const QuantizeProblem& p = problem;
  std::string text = fmt::format("problem    {} of {} [{}, {}]", p.format,
                                 tilewright::to_string(p.dtype), p.rows, p.cols);
  if (p.scales != "nearest") text += ", scales " + p.scales;
  if (p.has_row_index) text += ", gathered rows";
  text += fmt::format("\nresult     codes [{}, {}]{}, scales [{}, {}] of {} bytes{}\n", p.out_rows,
                      p.out_cols, p.has_operand_order ? " in operand order" : "", scale_rows,
                      scale_cols, bytes_per_scale,
                      p.has_128x4_scales         ? " in 128x4 order"
                      : p.has_block_major_scales ? ", block-major"
                                                 : "");
  if (!entry.empty()) {
    text += fmt::format("kernel     {}, grid {} x {}, {} threads{}, workspace {} bytes\n", entry,
                        grid[0], grid[1], block[0], is_cooperative ? ", cooperative" : "",
                        workspace_bytes);
  }
  return text + fmt::format("memory     {:.4g} MB read and written once\n", bytes * 1e-6);
}

}  // namespace tilewright
