#include "ops/moe/grouped.h"

#include "kernels/moe/scatter.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/moe/problem.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

const char* stem(kernels::BlockScaledKind kind) {
  if (kind == kernels::BlockScaledKind::kNvfp4) return "sm100_moe_nvfp4";
  return kind == kernels::BlockScaledKind::kMxfp8Mxfp4 ? "sm100_moe_mxfp8_mxfp4"
                                                       : "sm100_moe_mxfp8";
}

double tokens_of_expert(const MoeWeightsInfo& w, const MoeProblem& p) {
  const double active = expected_active_experts(w, p) + (w.has_shared ? 1 : 0);
  return static_cast<double>(moe_expected_rows(w, p)) / std::max(1.0, active);
}

}  // namespace

std::string MoeGroupedVariant::entry(bool is_gate_up) const {
  return fmt::format("{}_{}_{}", stem(config.kind), is_gate_up ? "gate_up" : "down", name());
}

MoeGroupedVariant moe_grouped_variant(NumberFormat format, bool is_few) {
  return {{kernels::grouped_config(block_scaled_kind(format), is_few)}};
}

std::string grouped_obstacle(const MoeWeightsInfo& w) {
  if (w.activations != LinearActivations::kBlockScaled)
    return fmt::format("needs weights prepared for block_scaled activations; these are for {}",
                       to_string(w.activations));
  if (w.format == NumberFormat::kBf16) return "multiplies weights of 4 or 8 bits; these are bf16";
  if (w.hidden % 32 != 0 || w.inter % 32 != 0)
    return fmt::format("wants hidden and inter in multiples of 32; they are {} and {}", w.hidden,
                       w.inter);
  if (w.hidden > kernels::kMoeScatterMaxColumns)
    return fmt::format("is for hidden up to {}", kernels::kMoeScatterMaxColumns);
  return {};
}

double grouped_cost_us(const device::DeviceInfo& device, const MoeGroupedVariant& variant,
                       const MoeWeightsInfo& w, const MoeProblem& p) {
  const double active = expected_active_experts(w, p) + (w.has_shared ? 1 : 0);
  if (active == 0) return 0;
  const kernels::BlockScaledConfig& c = variant.config;
  const auto rows = static_cast<std::int64_t>(std::ceil(tokens_of_expert(w, p)));
  const double room = std::max(device.num_sms / c.tile.cluster(), 1);
  double us = 0;
  for (const auto& [n, k] : {std::pair{2 * w.inter, w.hidden}, std::pair{w.hidden, w.inter}}) {
    // What one tile costs a CTA, by a product that has no other.
    const BlockScaledCost tile = block_scaled_cost(
        device, variant, {std::min<std::int64_t>(rows, c.tile_m()), c.columns(), k});
    const double tiles =
        active * static_cast<double>(ceil_div(rows, c.tile_m()) * ceil_div(n, c.columns()));
    const double rounds = std::max(1.0, tiles / room);
    const double clocks =
        rounds * std::max({tile.tensor_clocks, tile.arriving_clocks, tile.shared_clocks});
    us += clocks / (1e-3 * device.clock_khz);
  }
  return std::max(us, moe_bytes(w, p) / memory_bytes_per_us(device));
}

int grouped_box_rows(const MoeWeightsInfo& weights, const MoeProblem& problem, bool is_few) {
  const double mean = tokens_of_expert(weights, problem);
  const double wanted = mean + 3 * std::sqrt(mean);
  if (is_few) return wanted <= 32 ? 8 : 16;
  return wanted <= 8 ? 8 : wanted <= 16 ? 16 : wanted <= 32 ? 32 : 128;
}

}  // namespace tilewright::ops
