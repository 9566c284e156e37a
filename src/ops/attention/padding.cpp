#include "ops/attention/padding.h"

#include "ops/attention/fp8.h"
#include "ops/attention/problem.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/workspace.h"

#include <algorithm>
#include <bit>

namespace tilewright::ops {

namespace {

constexpr int kNarrowest = 64;
constexpr std::int64_t kOutBytes = 2;  // of an element

// Whether no column that does not exist reaches memory: the map of out is between, or the kernel
// looks at the end of a row.
bool ends_rows(const AttentionKernel& kernel, const AttentionProblem& p) {
  const AttentionVariant& variant = *kernel.find_variant(p);
  if (variant.clips) return true;
  if (p.is_packed) return false;
  if (kernel.fp8 == AttentionFp8::kNone) return variant.writes_boxes;
  return choose_fp8(kernel, p).variant->stages_out;
}

}  // namespace

int padded_head_dim(std::int64_t head_dim) noexcept {
  const auto width = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(head_dim, 1)));
  return std::max(static_cast<int>(width), kNarrowest);
}

bool is_padded_to(std::int64_t head_dim, int width) noexcept {
  return head_dim <= width && (width == kNarrowest || 2 * head_dim > width);
}

int attention_width(const AttentionKernel& kernel, const AttentionProblem& p) {
  return kernel.find_variant(p)->head_dim;
}

int attention_value_width(const AttentionKernel& kernel, const AttentionProblem& p) {
  return kernel.find_variant(p)->value_dim;
}

bool trims(const AttentionKernel& kernel, const AttentionProblem& p) {
  return attention_value_width(kernel, p) != attention_value_dim(p) && !ends_rows(kernel, p);
}

std::size_t padded_out_bytes(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (!trims(kernel, p)) return 0;
  return static_cast<std::size_t>(attention_q_rows(p) * p.heads * attention_value_width(kernel, p) *
                                  kOutBytes);
}

double trim_cost_us(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (!trims(kernel, p)) return 0;
  constexpr double kLaunchUs = 2, kBytesPerUs = 4.8e6;
  return kLaunchUs + 2.0 * static_cast<double>(padded_out_bytes(kernel, p)) / kBytesPerUs;
}

Launch trim_launch(const AttentionProblem& p) {
  return {
      .step = "trim",
      .entry = "attention_trim",
      .grid = {static_cast<std::uint32_t>(p.batch * ceil_div(p.q_len, kernels::kTrimRows)), 1, 1},
      .block = {kernels::kTrimThreads, 1, 1}};
}

void* padded_out(const AttentionPlan& plan, const AttentionKernel& kernel, void* workspace) {
  const std::size_t bytes = align_workspace(padded_out_bytes(kernel, plan.problem));
  return static_cast<std::byte*>(workspace) + (plan.workspace_bytes - bytes);
}

kernels::AttentionStrides padded_out_strides(const AttentionKernel& kernel,
                                             const AttentionProblem& p) {
  const std::int64_t width = attention_value_width(kernel, p), row = p.heads * width;
  return {p.is_packed ? 0 : p.q_len * row, row, width};
}

kernels::AttentionTrimParams trim_params(const AttentionPlan& plan, const AttentionKernel& kernel,
                                         const AttentionArguments& a) {
  const AttentionProblem& p = plan.problem;
  return {.padded = padded_out(plan, kernel, a.workspace),
          .out = a.out,
          .cu_q = p.is_packed ? a.cu_q : nullptr,
          .strides = {p.out_strides.batch, p.out_strides.row, p.out_strides.head},
          .heads = narrow(p.heads),
          .q_len = narrow(p.q_len),
          .head_dim = narrow(attention_value_dim(p)),
          .width = attention_value_width(kernel, p),
          .row_tiles = narrow(ceil_div(p.q_len, kernels::kTrimRows))};
}

}  // namespace tilewright::ops
