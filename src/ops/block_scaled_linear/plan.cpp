#include "ops/block_scaled_linear/plan.h"

#include "formats/scale_layout.h"
#include "ops/operator/arguments.h"
#include "ops/operator/choose.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxDim = std::int64_t{1} << 24;

constexpr const char* kName = "block-scaled linear";

void check_format(ProblemChecks& checks, NumberFormat format) {
  checks
      .expect(format != NumberFormat::kBf16, "format", format,
              "nvfp4 (by NVFP4 activations), mxfp4 or fp8 (by MXFP8 ones)")
      .remedy("Quantise the weight, or take Linear.");
}

void check_sizes(const BlockScaledWeightInfo& weight, const BlockScaledProblem& p) {
  ProblemChecks checks(kName);
  check_format(checks, weight.format);
  checks.range("n", weight.n, 1, kMaxDim);
  checks
      .expect(weight.k >= 32 && weight.k % 32 == 0 && weight.k <= kMaxDim, "k", weight.k,
              "a multiple of 32 from 32 to 2^24")
      .remedy("Pad weight and x with zeros along k.");
  checks.range("m", p.m, 0, kMaxDim);
  if (weight.is_gate_up) {
    const bool is_nvfp4 = weight.format == NumberFormat::kNvfp4;
    checks.expect(weight.n % 32 == 0, "n", weight.n, "a multiple of 32, half of it a gate");
    checks
        .expect(
            p.out_dtype == DType::kBF16 || p.out_dtype == (is_nvfp4 ? DType::kF4 : DType::kF8_E4M3),
            "out_dtype", p.out_dtype, "BF16, or {} with scales, of a gate and up in {}",
            is_nvfp4 ? "F4" : "F8_E4M3", to_string(weight.format))
        .remedy("Quantise afterwards.");
    checks.expect(p.swiglu_limit > 0, "swiglu_limit", p.swiglu_limit, "a number above 0");
    checks.finish();
    return;
  }
  checks
      .expect(p.out_dtype == DType::kBF16 || p.out_dtype == DType::kF4, "out_dtype", p.out_dtype,
              "BF16, or F4 for NVFP4 with scales; F8_E4M3 of a gate and up")
      .remedy("Convert afterwards.");
  checks
      .expect(p.out_dtype != DType::kF4 || weight.format != NumberFormat::kFp8, "out_dtype",
              p.out_dtype, "BF16 with fp8 weights")
      .remedy("Quantise afterwards.");
  checks
      .expect(p.swiglu_limit == std::numeric_limits<double>::infinity(), "swiglu_limit",
              p.swiglu_limit, "none, as the weight is no gate and up")
      .remedy("Prepare the weight with up_values.");
  checks.finish();
}

// Fills in row sizes that were left out.
void complete_rows(const BlockScaledVariant& variant, const BlockScaledWeightInfo& weight,
                   BlockScaledProblem& p) {
  const std::int64_t x = variant.x_row_bytes(weight.k), columns = variant.out_columns(weight.n),
                     out = variant.out_row_bytes(columns);
  const bool is_bf16 = p.out_dtype == DType::kBF16;
  if (p.x_row_bytes == 0) p.x_row_bytes = x;
  if (p.out_row_bytes == 0) p.out_row_bytes = out;
  ProblemChecks checks(kName);
  checks.expect(p.x_row_bytes >= x && p.x_row_bytes % std::int64_t{kRowAlignment} == 0,
                "x_row_bytes", p.x_row_bytes,
                "a multiple of 16, at least {} for k = {} {} elements", x, weight.k,
                variant.config.is_nvfp4() ? "4-bit" : "8-bit");
  checks.expect(p.out_row_bytes >= out && (!is_bf16 || p.out_row_bytes % 2 == 0), "out_row_bytes",
                p.out_row_bytes, "{}at least {} for n = {} in {}",
                is_bf16 ? "a multiple of 2, " : "", out, columns, to_string(p.out_dtype));
  checks.finish();
}

std::vector<BlockScaledVariant> variants_of(const BlockScaledPlan& plan) {
  const kernels::BlockScaledKind kind = block_scaled_kind(plan.weight.format);
  const bool is_nvfp4 = plan.problem.out_dtype == DType::kF4;
  if (!plan.weight.is_gate_up) return block_scaled_variants(kind, is_nvfp4);
  return block_scaled_swiglu_variants(kind, is_nvfp4, plan.problem.out_dtype == DType::kF8_E4M3);
}

struct Choice {
  BlockScaledVariant variant;
  BlockScaledCost cost;
};

// Among tiles of equal cost, what L2 has to read out decides: it serves all SMs at once, which the
// cost of one does not show.
Choice choose_variant(const device::DeviceInfo& device, BlockScaledPlan& plan) {
  const BlockScaledSizes sizes = {plan.problem.m, plan.weight.n, plan.weight.k};
  const std::vector<BlockScaledVariant> variants = variants_of(plan);
  const Request request = {"block-scaled linear", plan.problem.kernel, device.name,
                           fmt::format("{} weights", to_string(plan.weight.format)),
                           "Take a B200 (sim:b200); Linear multiplies such weights on Hopper."};
  const auto option = [&](const BlockScaledVariant& variant) {
    const BlockScaledCost cost = block_scaled_cost(device, variant, sizes);
    return Option{.name = variant.name(),
                  .obstacle = capability_obstacle(100, device),
                  .cost_us = cost.us,
                  .reservation = {},
                  .l2_bytes = cost.l2_bytes};
  };
  const BlockScaledVariant& chosen = variants[choose(plan, request, variants, option)];
  return {chosen, block_scaled_cost(device, chosen, sizes)};
}

std::vector<PlanNote> notes_of(const BlockScaledPlan& plan, double bound_us) {
  const BlockScaledWeightInfo& w = plan.weight;
  const bool is_nvfp4 = w.format == NumberFormat::kNvfp4;
  std::vector<PlanNote> notes = {
      {"linear",
       fmt::format("m {}, n {}, k {}, weight {} by {} activations, out {}", plan.problem.m, w.n,
                   w.k, to_string(w.format), is_nvfp4 ? "nvfp4" : "mxfp8",
                   plan.problem.out_dtype == DType::kF4        ? "nvfp4"
                   : plan.problem.out_dtype == DType::kF8_E4M3 ? "mxfp8"
                                                               : "bf16")},
      {"kernel", plan.kernel},
      {"bound", fmt::format("{:.2f} us by count: a floor, no time", bound_us)}};
  if (w.is_gate_up)
    notes.push_back({"swiglu", fmt::format("of gate and up, {} columns each, limit {}", w.n / 2,
                                           plan.problem.swiglu_limit)});
  if (plan.launches.empty()) notes.push_back({"launches", "none: x has no rows"});
  return notes;
}

// Bytes from the first row to the last.
std::size_t span_bytes(std::int64_t rows, std::int64_t row_bytes, std::int64_t last) {
  return rows == 0 ? 0 : static_cast<std::size_t>((rows - 1) * row_bytes + last);
}

}  // namespace

kernels::BlockScaledKind block_scaled_kind(NumberFormat format) {
  ProblemChecks checks(kName);
  check_format(checks, format);
  checks.finish();
  if (format == NumberFormat::kNvfp4) return kernels::BlockScaledKind::kNvfp4;
  return format == NumberFormat::kFp8 ? kernels::BlockScaledKind::kMxfp8
                                      : kernels::BlockScaledKind::kMxfp8Mxfp4;
}

BlockScaledVariant planned_variant(const BlockScaledPlan& plan) {
  const std::vector<BlockScaledVariant> variants = variants_of(plan);
  return *std::ranges::find(variants, plan.kernel, &BlockScaledVariant::name);
}

BlockScaledPlan make_block_scaled_plan(const device::DeviceInfo& device,
                                       const BlockScaledWeightInfo& weight,
                                       const BlockScaledProblem& problem) {
  check_sizes(weight, problem);
  BlockScaledPlan plan;
  plan.weight = weight;
  plan.problem = problem;
  const auto [variant, cost] = choose_variant(device, plan);
  if (cost.tiles > std::numeric_limits<std::int32_t>::max())
    refuse(ErrorKind::kUnsupported, kName,
           {{"m", fmt::format("{}", problem.m),
             fmt::format("fewer than 2^31 tiles; by n = {} there are {}", weight.n, cost.tiles),
             "Cut m."}});
  complete_rows(variant, weight, plan.problem);
  const auto cluster = static_cast<std::uint32_t>(variant.config.tile.cluster());
  if (cost.tiles > 0) {
    plan.launches.push_back(
        {.step = "multiply",
         .entry = variant.entry(),
         .grid = {cost.clusters * cluster, 1, 1},
         .block = {kernels::kBlockScaledThreads, 1, 1},
         .cluster = cluster,
         .shared_bytes = static_cast<std::uint32_t>(variant.config.shared_bytes())});
  }
  const std::int64_t m = problem.m, n = weight.n, k = weight.k;
  plan.x_bytes = span_bytes(m, plan.problem.x_row_bytes, variant.x_row_bytes(k));
  plan.x_scales_bytes =
      static_cast<std::size_t>(swizzled_scale_bytes(m, k / variant.scale_block()));
  const std::int64_t columns = variant.out_columns(n);
  plan.out_bytes = span_bytes(m, plan.problem.out_row_bytes, variant.out_row_bytes(columns));
  plan.out_scales_bytes = static_cast<std::size_t>(variant.out_scale_bytes(m, columns));
  plan.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  plan.bytes = cost.memory_bytes + static_cast<double>(plan.out_scales_bytes);
  plan.notes = notes_of(plan, cost.us);
  return plan;
}

}  // namespace tilewright::ops
