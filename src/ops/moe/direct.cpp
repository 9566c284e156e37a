#include "ops/moe/direct.h"

#include "ops/linear/pack.h"
#include "ops/moe/problem.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

using kernels::MoeDirectProduct;

// More are slower: what is asked for first comes later when everything is asked for at once.
constexpr std::int64_t kStages = 2;

// Experts that are expected to have tokens.
std::int64_t expected_groups(const DirectExperts& experts) {
  const double active = expected_active_experts(experts.weights, experts.problem);
  return std::max<std::int64_t>(1, std::llround(active)) + (experts.weights.has_shared ? 1 : 0);
}

// No units, and nothing that is divided by is 0.
MoeDirectProduct no_product() {
  MoeDirectProduct p = {};
  p.k = p.unit_bricks = p.k_warps = p.teams = p.slots = 1;
  return p;
}

// One of the two products of a plan, cut for so many CTAs.
class ProductCut {
 public:
  ProductCut(const DirectExperts& experts, bool is_down, int ctas)
      : experts_(experts), is_down_(is_down), ctas_(ctas) {
    const MoeWeightsInfo& w = experts.weights;
    product_.n = static_cast<std::int32_t>(is_down ? w.hidden : 2 * w.inter);
    product_.k = static_cast<std::int32_t>(is_down ? w.inter : w.hidden);
    product_.brick_bytes = kernels::brick_bytes(to_kernel(w.format));
    cut_rows();
    cut_columns(0, kernels::kMoeDirectWarps);
  }

  const MoeDirectProduct& product() const { return product_; }
  /// What the busiest warp does, in bricks.
  double cost() const { return cost_; }
  std::int64_t stage_bytes() const {
    return std::int64_t{product_.unit_bricks} * product_.brick_bytes;
  }
  /// Of all teams, a unit each.
  std::int64_t sums_bytes() const {
    return std::int64_t{kernels::kMoeDirectWarps} * product_.unit_bricks * kernels::kBrickRows *
           experts_.problem.tokens * 4;
  }
  /// Of a CTA, at most, in one group of down.
  std::int64_t columns() const {
    return ceil_div(product_.row_units, ctas_) * product_.unit_bricks * kernels::kBrickRows;
  }
  /// As many units between barriers as there are, or fit.
  MoeDirectProduct with_slots(std::int64_t bytes) const {
    MoeDirectProduct p = product_;
    p.slots = static_cast<std::int32_t>(std::clamp<std::int64_t>(
        bytes / sums_bytes(), 1, std::max<std::int64_t>(1, ceil_div(most_units(), p.teams))));
    return p;
  }

  /// Splits K over those warps. A unit costs as much as kUnit bricks beside its own, a block as
  /// kBlock.
  void cut_columns(int first_warp, int warps) {
    constexpr double kUnit = 4, kBlock = 1;
    const std::int64_t blocks = ceil_div(product_.k, kernels::kBrickK);
    const std::int64_t all = units(expected_groups(experts_));
    cost_ = std::numeric_limits<double>::infinity();
    product_.first_warp = first_warp;
    for (int k_warps = kernels::kMoeDirectWarps; k_warps >= 1; k_warps /= 2) {
      if (k_warps > warps || k_warps > blocks) continue;
      const auto of_team = static_cast<double>(ceil_div(all, warps / k_warps));
      const auto of_warp = static_cast<double>(ceil_div(blocks, k_warps));
      const double cost = of_team * (of_warp * (product_.unit_bricks + kBlock) + kUnit);
      if (cost > cost_) continue;
      cost_ = cost;
      product_.k_warps = k_warps;
      product_.teams = warps / k_warps;
    }
  }

 private:
  std::int64_t bricks() const { return product_.n / kernels::kBrickRows; }
  // Of a CTA.
  std::int64_t units(std::int64_t groups) const {
    return is_down_ ? groups * ceil_div(product_.row_units, ctas_)
                    : ceil_div(groups * product_.row_units, ctas_);
  }
  std::int64_t most_units() const {
    const MoeWeightsInfo& w = experts_.weights;
    const std::int64_t slots = experts_.problem.tokens * experts_.problem.topk;
    return units(std::min(slots, w.experts) + (w.has_shared ? 1 : 0));
  }

  // The bricks of a CTA in as few units as registers allow.
  void cut_rows() {
    const std::int64_t most = kernels::moe_direct_bricks(to_kernel(experts_.weights.format));
    const std::int64_t of_cta = is_down_ ? ceil_div(bricks(), ctas_)
                                         : ceil_div(expected_groups(experts_) * bricks(), ctas_);
    product_.unit_bricks = static_cast<std::int32_t>(ceil_div(of_cta, ceil_div(of_cta, most)));
    product_.row_units = static_cast<std::int32_t>(ceil_div(bricks(), product_.unit_bricks));
  }
  DirectExperts experts_;
  bool is_down_;
  int ctas_;
  MoeDirectProduct product_ = {};
  double cost_ = 0;
};

// Both products of down: one behind the other by all warps, or side by side.
void share_warps(ProductCut& routed, ProductCut& single) {
  constexpr int kWarps = kernels::kMoeDirectWarps;
  double least = routed.cost() + single.cost();
  int best = 0;
  for (const int of_single : {kWarps / 4, kWarps / 2}) {
    routed.cut_columns(0, kWarps - of_single);
    single.cut_columns(kWarps - of_single, of_single);
    const double cost = std::max(routed.cost(), single.cost());
    if (cost >= least) continue;
    least = cost;
    best = of_single;
  }
  routed.cut_columns(0, kWarps - best);
  single.cut_columns(best == 0 ? 0 : kWarps - best, best == 0 ? kWarps : best);
}

}  // namespace

DirectCut cut_direct(const device::DeviceInfo& device, const DirectExperts& routed,
                     const DirectExperts* single) {
  DirectCut cut = {};
  kernels::MoeDirectParams& p = cut.params;
  // No more than there are bricks of down: the simulator pays for every CTA.
  const std::int64_t bricks = routed.weights.hidden / kernels::kBrickRows;
  cut.ctas = static_cast<int>(std::min<std::int64_t>(device.num_sms, bricks));
  std::vector<ProductCut> cuts;
  for (const DirectExperts* const experts : {&routed, single}) {
    if (experts == nullptr) continue;
    for (const bool is_down : {false, true}) cuts.emplace_back(*experts, is_down, cut.ctas);
  }
  if (single != nullptr) share_warps(cuts[1], cuts[3]);
  std::int64_t stage = 0, sums = kernels::kMoeDirectMinSumsBytes;
  for (const ProductCut& c : cuts) {
    stage = std::max(stage, c.stage_bytes());
    sums = std::max(sums, c.sums_bytes());
  }
  p.routed.gate_up = cuts[0].with_slots(sums);
  p.routed.down = cuts[1].with_slots(sums);
  p.single.gate_up = p.single.down = no_product();
  if (single != nullptr) {
    p.single.gate_up = cuts[2].with_slots(sums);
    p.single.down = cuts[3].with_slots(sums);
  }
  const std::int64_t y = moe_rows(routed.weights, routed.problem) * cuts[1].columns() * 4;
  const std::int64_t barriers = kernels::kMoeDirectWarps * kStages * 8;
  p.stage_bytes = static_cast<std::uint32_t>(stage);
  p.stages = static_cast<std::uint32_t>(kStages);
  p.sums_at = static_cast<std::uint32_t>(kStages * kernels::kMoeDirectWarps * stage);
  p.sums_bytes = static_cast<std::uint32_t>(sums);
  p.y_at = p.sums_at + 2 * p.sums_bytes;
  p.barriers_at = p.y_at + static_cast<std::uint32_t>(y);
  cut.shared_bytes = p.barriers_at + barriers;
  return cut;
}

std::string direct_obstacle(const device::DeviceInfo& device, const MoeWeightsInfo& w,
                            const MoeProblem& p) {
  if (is_grouped_input(p)) return "routes tokens itself, and takes none that come grouped";
  if (p.tokens > kernels::kMoeDirectMaxTokens)
    return fmt::format("is for up to {} tokens", kernels::kMoeDirectMaxTokens);
  if (p.tokens == 0) return {};
  const std::int64_t bytes = cut_direct(device, {w, p}).shared_bytes;
  if (bytes > kMostDirectSharedBytes)
    return fmt::format(
        "keeps a CTA's columns of all rows of y in shared memory, {} bytes of the {} "
        "that there are",
        bytes, kMostDirectSharedBytes);
  return {};
}

bool fits_one_launch(const device::DeviceInfo& device, const DirectExperts& routed,
                     const DirectExperts& single) {
  return routed.weights.hidden == single.weights.hidden &&
         cut_direct(device, routed, &single).shared_bytes <= kMostDirectSharedBytes;
}

}  // namespace tilewright::ops
