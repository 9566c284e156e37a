// Some tens of tokens in bf16, k divided over CTAs of the grid:
// kernels/linear/wide/sm90_wide_spread.h.
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/linear/spread.h"
#include "ops/linear/wide_bind.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/workspace.h"

#include <algorithm>
#include <cmath>

namespace tilewright::ops {

namespace {

using kernels::WideBf16Params;
using kernels::WideSpreadTile;

/// Of k, that a part has at least.
constexpr std::int64_t kFewestSpreadSteps = 2;

const char* format_name(kernels::WeightFormat format) {
  return format == kernels::WeightFormat::kFp8 ? "fp8" : "bf16";
}

class WideSpread : public LinearKernel {
 public:
  WideSpread()
      : LinearKernel("wide_bf16_spread",
                     "tensor cores fed from registers, k divided over CTAs of the grid", 90) {}

  bool takes_groups(NumberFormat format) const override {
    return Spread::has_entry(to_kernel(format));
  }
  std::string obstacle(const LinearWeightInfo& weight, const LinearProblem& p) const override {
    if (p.x_dtype != DType::kBF16) return "reads bf16 activations";
    if (!Spread::has_entry(to_kernel(weight.format))) return "is for fp8 and bf16 weights";
    if (weight.groups > 1 && weight.k % kernels::kWideBf16Step != 0)
      return fmt::format("takes groups of k a multiple of {}", kernels::kWideBf16Step);
    if (p.m > Spread::kMostRows)
      return fmt::format("is for at most {} rows of x", Spread::kMostRows);
    return {};
  }

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const Spread spread = cut(device, plan.weight, plan.problem);
    plan.launches = {spread.launch(device, "multiply")};
    plan.workspace_bytes = spread.workspace_bytes();
  }

  void run(const LinearCall& call) const override {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    const Spread spread = cut(call.device.info(), w, p);
    WideBf16Params params = {};
    bind_wide(call.device,
              {.x = {"x", call.arguments.x, w.k * w.groups, p.m, 2 * p.x_stride, 2,
                     WideSpreadTile::kTokens},
               .bricks = call.bricks<std::uint8_t>(),
               .block_scales = call.block_scales(),
               .shape = call.weight.shape,
               .y = call.arguments.out,
               .y_pitch = p.out_stride},
              params);
    spread.bind(call.arguments.workspace, params);
    params.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.matrices = static_cast<std::int32_t>(w.groups);
    params.alpha = call.weight.alpha_bf16;
    params.is_f32 = p.out_dtype == DType::kF32;
    params.has_power_scales = call.weight.has_power_scales;
    call.entries[0].launch(spread.config(call.plan.launches[0]), params, call.stream);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    constexpr double kBytesPerUs = 4.3e6;
    return std::max(linear_bytes(weight, p) / kBytesPerUs, cut(device, weight, p).model_us(device));
  }

 private:
  static Spread cut(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                    const LinearProblem& p) {
    return {device,
            {packed_shape(weight).format, p.m, weight.n / weight.groups, weight.k, weight.groups}};
  }
};

}  // namespace

Spread::Spread(const device::DeviceInfo& device, const SpreadProduct& product)
    : rows(product.m), steps(ceil_div(product.k, kernels::kWideBf16Step)) {
  const std::int64_t sms = device.num_sms;
  double least = 0;  // rows by parts of k that the busiest SM has
  // The tile of five warpgroups has no registers for the scales of gate and up.
  const bool has_five = product.format == kernels::WeightFormat::kFp8 && !product.is_swiglu;
  for (int warpgroups = 4; warpgroups <= (has_five ? 5 : 4); ++warpgroups) {
    const WideSpreadTile of = {product.format, warpgroups};
    // Of no rows as of one: nothing is launched then, but the plan lists what it would take.
    const std::int64_t count =
        of.units(std::max<std::int64_t>(product.m, 1), product.n, product.groups);
    const std::int64_t most =
        std::min<std::int64_t>(steps / kFewestSpreadSteps, WideSpreadTile::kMaxSplits);
    const std::int64_t parts = std::max<std::int64_t>(std::min(sms / count, most), 1);
    const double cost =
        static_cast<double>(ceil_div(count * parts, sms) * of.rows()) / static_cast<double>(parts);
    if (units > 0 && cost >= least) continue;
    least = cost;
    tile = of;
    units = count;
    splits = static_cast<int>(parts);
  }
}

Launch Spread::launch(const device::DeviceInfo& device, const char* step) const {
  const std::int64_t ctas = std::min<std::int64_t>(units * splits, device.num_sms);
  return {.step = step,
          .entry = fmt::format("linear_wide_spread_{}{}", format_name(tile.format),
                               tile.warpgroups == 4 ? "" : "_w5"),
          .grid = {static_cast<std::uint32_t>(ctas), 1, 1},
          .block = {static_cast<std::uint32_t>(tile.threads()), 1, 1},
          .shared_bytes = static_cast<std::uint32_t>(tile.layout().shared_bytes())};
}

device::LaunchConfig Spread::config(const Launch& launch) const {
  device::LaunchConfig config = dependent_launch(launch);
  config.is_cooperative = splits > 1;  // CTAs wait for each other's sums
  return config;
}

std::size_t Spread::workspace_bytes() const noexcept {
  return align_workspace(static_cast<std::size_t>(tile.sum_bytes(units, splits)));
}

void Spread::bind(void* sums, kernels::WideBf16Params& params) const noexcept {
  params.tile_tokens = params.box_tokens = WideSpreadTile::kTokens;
  params.cluster_rows = 1;
  params.splits = splits;
  params.stages = tile.layout().stages();
  params.parts = splits > 1 ? static_cast<float*>(sums) : nullptr;
}

// 64 of K by 256 rows, and what a launch costs by itself (an H100): 5 us, and 6.5 more with the
// exchange of sums. In a step of a model with 64 rows those 5 are not seen where sums are exchanged
// (the kernel before fills them, it seems), and products of this kernel make shorter steps than
// those of others that take less by themselves: 1536 x 4096 of FP8, 14.6 us against the 12.6 of
// `band`. So the constant has to be below 9.5 there, and what is left without the 5 us is.
double Spread::model_us(const device::DeviceInfo& device) const noexcept {
  constexpr double kStepUs = 0.73, kRows = 256, kAloneUs = 5, kExchangeUs = 6.5;
  constexpr std::int64_t kRowsBesideOthers = 33;  // fewer are taken for rows by themselves
  const double turns = std::ceil(static_cast<double>(units * splits) / device.num_sms);
  const double seen_us = splits > 1 && rows >= kRowsBesideOthers ? 0 : kAloneUs;
  return seen_us + (splits > 1 ? kExchangeUs : 0) +
         turns * static_cast<double>(steps) / splits * kStepUs * tile.rows() / kRows;
}

bool are_power_scales(std::span<const float> scales) noexcept {
  return std::ranges::all_of(scales, [](float scale) {
    int exponent;  // of a scale that is half of a power of two, as frexp() has it
    return std::frexp(scale, &exponent) == 0.5f && exponent - 1 >= kernels::kLeastPowerScale &&
           exponent - 1 <= kernels::kMostPowerScale;
  });
}

void add_wide_spread_kernels(LinearKernelList& list) {
  list.push_back(std::make_unique<WideSpread>());
}

}  // namespace tilewright::ops
