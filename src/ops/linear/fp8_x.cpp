#include "ops/linear/fp8_x.h"

#include "kernels/quantize/activation_fp8.h"
#include "kernels/quantize/widen_fp8.h"
#include "ops/linear/problem.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/workspace.h"

namespace tilewright::ops {

namespace {

constexpr std::int64_t kBlock = 128;

std::int64_t round_up(std::int64_t x, std::int64_t step) {
  return (x + step - 1) / step * step;
}

bool has_row_scales(const LinearProblem& p) {
  return p.activation_scales == ScaleSharing::kRow;
}

// Columns that the quantiser writes: whole blocks.
std::int64_t columns(const LinearWeightInfo& weight, const LinearProblem& p) {
  return has_row_scales(p) ? fp8_columns(weight.k) : round_up(weight.k, kBlock);
}

// Where the scales begin.
std::size_t code_bytes(const LinearWeightInfo& weight, const LinearProblem& p) {
  return align_workspace(static_cast<std::size_t>(p.m * columns(weight, p)));
}

std::int64_t scale_elems(const LinearWeightInfo& weight, const LinearProblem& p) {
  return has_row_scales(p) ? p.m : round_up(weight.k, kBlock) / kBlock * fp8_scale_rows(p.m);
}

}  // namespace

bool is_x_quantised_here(const LinearProblem& p) noexcept {
  return p.x_dtype == DType::kBF16;
}

void lay_out_fp8_x(LinearPlan& plan) {
  const LinearProblem& p = plan.problem;
  if (!is_x_quantised_here(p)) return;
  const std::int64_t out_columns = columns(plan.weight, p);
  const auto rows = static_cast<std::uint32_t>(p.m);
  Launch launch;
  if (has_row_scales(p)) {
    launch = {.step = "quantize",
              .entry = "quantize_fp8_token_bf16",
              .grid = {rows, 1, 1},
              .block = {kernels::fp8_token_threads(out_columns), 1, 1}};
  } else {
    launch = {.step = "quantize",
              .entry = "quantize_fp8_block_bf16",
              .grid = {kernels::fp8_block_ctas(p.m, out_columns), 1, 1},
              .block = {kernels::kQuantizeThreads, 1, 1}};
  }
  plan.launches.insert(plan.launches.begin(), launch);
  plan.workspace_bytes =
      code_bytes(plan.weight, p) + 4 * static_cast<std::size_t>(scale_elems(plan.weight, p));
}

Fp8Rows run_fp8_x(const LinearCall& call) {
  const LinearProblem& p = call.plan.problem;
  const LinearWeightInfo& w = call.plan.weight;
  if (!is_x_quantised_here(p)) return {call.arguments.x, p.x_stride, call.arguments.x_scales};
  auto* const workspace = static_cast<std::uint8_t*>(call.arguments.workspace);
  kernels::QuantizeParams params = {};
  params.in = call.arguments.x;
  params.codes = workspace;
  params.scales = workspace + code_bytes(w, p);
  params.in_stride = p.x_stride;
  params.code_stride_bytes = columns(w, p);
  params.scale_row_stride = 1;
  params.scale_block_stride = fp8_scale_rows(p.m);
  params.rows = params.out_rows = static_cast<std::int32_t>(p.m);
  params.cols = static_cast<std::int32_t>(w.k);
  params.out_cols = static_cast<std::int32_t>(columns(w, p));
  params.block_cols = kBlock;
  params.is_in_aligned = 1;
  params.min_amax = kernels::kFp8MinAmax;
  params.code_order = kernels::CodeOrder::kOperand;
  call.launch(0, params);
  return {params.codes, params.code_stride_bytes, static_cast<const float*>(params.scales)};
}

void lay_out_widened_x(LinearPlan& plan) {
  const LinearProblem& p = plan.problem;
  if (is_x_quantised_here(p)) return;
  const std::int64_t pieces = p.m * fp8_columns(plan.weight.k) / 16;
  plan.launches.insert(plan.launches.begin(),
                       {.step = "widen",
                        .entry = "widen_fp8",
                        .grid = {ctas_for(pieces, kernels::kWidenFp8Threads), 1, 1},
                        .block = {kernels::kWidenFp8Threads, 1, 1}});
  plan.workspace_bytes = align_workspace(static_cast<std::size_t>(2 * p.m * plan.weight.k));
}

Bf16Rows run_widened_x(const LinearCall& call) {
  const LinearProblem& p = call.plan.problem;
  const LinearWeightInfo& w = call.plan.weight;
  if (is_x_quantised_here(p))
    return {static_cast<const std::uint16_t*>(call.arguments.x), p.x_stride};
  const bool is_by_row = has_row_scales(p);
  auto* const out = static_cast<std::uint16_t*>(call.arguments.workspace);
  const kernels::WidenFp8Params params = {
      .codes = static_cast<const std::uint8_t*>(call.arguments.x),
      .scales = call.arguments.x_scales,
      .out = out,
      .code_stride_bytes = p.x_stride,
      .scale_row_stride = 1,
      .scale_block_stride = is_by_row ? 0 : fp8_scale_rows(p.m),
      .rows = static_cast<std::int32_t>(p.m),
      .columns = static_cast<std::int32_t>(w.k),
      .pieces = static_cast<std::int32_t>(fp8_columns(w.k) / 16)};
  call.launch(0, params);
  return {out, w.k};
}

double widened_x_us(const LinearWeightInfo& weight, const LinearProblem& p) noexcept {
  if (is_x_quantised_here(p)) return 0;
  constexpr double kLaunchUs = 2, kBytesPerUs = 7e6;  // a B200's
  return kLaunchUs + 5 * static_cast<double>(p.m * weight.k) / kBytesPerUs;
}

double fp8_x_us(const LinearWeightInfo& weight, const LinearProblem& p) noexcept {
  if (!is_x_quantised_here(p)) return 0;
  constexpr double kLaunchUs = 2, kBytesPerUs = 3e6;
  return kLaunchUs + 3 * static_cast<double>(p.m * weight.k) / kBytesPerUs;
}

}  // namespace tilewright::ops
