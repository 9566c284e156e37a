#include "ops/moe/direct.h"

#include "ops/linear/pack.h"
#include "ops/moe/problem.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

// Rows of tokens in the shared memory of a direct launch.
std::int64_t direct_rows(const MoeWeightsInfo& w, const MoeProblem& p, bool is_down) {
  return is_down ? moe_rows(w, p) : p.tokens;
}

}  // namespace

kernels::MoeDirectTile direct_tile(const device::DeviceInfo& device, const MoeWeightsInfo& w,
                                   bool is_down) {
  const std::int64_t k = is_down ? w.inter : w.hidden, n = is_down ? w.hidden : 2 * w.inter;
  const std::int64_t blocks = ceil_div(k, kernels::kBrickK);
  kernels::MoeDirectTile tile = {
      .warps = kernels::MoeDirectTile::kMaxWarps, .parts = 1, .ctas = 1, .round = 2};
  while (2 * tile.parts <= tile.warps && 4 * 2 * tile.parts <= blocks) tile.parts *= 2;
  const std::int64_t bricks = n / kernels::kBrickRows;
  tile.ctas = device.num_sms;
  // Of down a CTA has whole bricks of all experts: as many CTAs as share them evenly.
  if (is_down) tile.ctas = static_cast<int>(ceil_div(bricks, ceil_div(bricks, device.num_sms)));
  return tile;
}

std::string direct_obstacle(const device::DeviceInfo& device, const MoeWeightsInfo& w,
                            const MoeProblem& p) {
  if (is_grouped_input(p)) return "routes tokens itself, and takes none that come grouped";
  if (p.tokens > kernels::kMoeDirectMaxTokens)
    return fmt::format("is for up to {} tokens", kernels::kMoeDirectMaxTokens);
  for (const bool is_down : {false, true}) {
    const std::int64_t bytes = direct_shared_bytes(w, p, direct_tile(device, w, is_down), is_down);
    if (bytes > kMostDirectSharedBytes)
      return fmt::format("keeps all rows of {} in shared memory, {} bytes of the {} that there are",
                         is_down ? "h" : "x", bytes, kMostDirectSharedBytes);
  }
  return {};
}

std::int64_t direct_rings_at(const MoeWeightsInfo& w, const MoeProblem& p, bool is_down) noexcept {
  const std::int64_t k = is_down ? w.inter : w.hidden;
  const std::int64_t row = kernels::MoeDirectTile::token_bytes(static_cast<std::int32_t>(k));
  return ceil_div(direct_rows(w, p, is_down) * row, 128) * 128;
}

std::int64_t direct_shared_bytes(const MoeWeightsInfo& w, const MoeProblem& p,
                                 const kernels::MoeDirectTile& tile, bool is_down) noexcept {
  const std::int64_t y_at =
      direct_rings_at(w, p, is_down) + tile.rings_bytes(to_kernel(w.format)) + tile.sums_bytes();
  if (!is_down) return y_at;
  const auto n = static_cast<std::int32_t>(w.hidden);
  return y_at +
         moe_rows(w, p) * kernels::moe_direct_cta_bricks(n, tile.ctas) * kernels::kBrickRows * 4;
}

DirectPair direct_pair(const device::DeviceInfo& device, const MoePlanned& first,
                       const MoePlanned& second, bool is_down) {
  DirectPair best = {first.details.direct(!is_down), second.details.direct(!is_down), 0};
  const auto bytes = [&](const MoePlan& plan) {
    const double active =
        expected_active_experts(plan.weights, plan.problem) + (plan.weights.has_shared ? 1.0 : 0.0);
    return std::max(1.0, active) * expert_bytes(plan.weights);
  };
  // Of down a CTA has whole bricks.
  const auto share = [&](const MoePlan& plan, int ctas) {
    if (!is_down) return bytes(plan) / ctas;
    const auto bricks = static_cast<double>(plan.weights.hidden / kernels::kBrickRows);
    return bytes(plan) * std::ceil(bricks / ctas) / bricks;
  };
  double least = std::numeric_limits<double>::infinity();
  for (int ctas = 1; ctas < device.num_sms; ++ctas) {
    const int others = device.num_sms - ctas;
    const double cost = std::max(share(first.plan, ctas), share(second.plan, others));
    if (cost >= least) continue;
    least = cost;
    best.first.ctas = ctas;
    best.second.ctas = others;
  }
  const auto shared_bytes = [&](const MoePlan& plan, const kernels::MoeDirectTile& tile) {
    return direct_shared_bytes(plan.weights, plan.problem, tile, is_down);
  };
  best.shared_bytes = static_cast<std::uint32_t>(
      std::max(shared_bytes(first.plan, best.first), shared_bytes(second.plan, best.second)));
  return best;
}

bool fits_one_launch(const device::DeviceInfo& device, const MoePlanned& first,
                     const MoePlanned& second) {
  return std::ranges::all_of(std::array{false, true}, [&](bool is_down) {
    return direct_pair(device, first, second, is_down).shared_bytes <= kMostDirectSharedBytes;
  });
}

}  // namespace tilewright::ops
