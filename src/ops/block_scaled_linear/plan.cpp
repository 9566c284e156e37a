#include "ops/block_scaled_linear/plan.h"

#include "base/error.h"
#include "formats/scale_layout.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxDim = std::int64_t{1} << 24;
constexpr std::int64_t kRowAlignment = 16;  // of tensor copies

template <class... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (condition) return;
  fail(ErrorKind::kInvalidArgument, "block-scaled linear: {}",
       fmt::format(format, std::forward<Args>(args)...));
}

void check_device(const device::DeviceInfo& device) {
  constexpr int kBlackwell = 100;
  require(device.compute_capability == kBlackwell, ErrorKind::kUnsupported,
          "block-scaled linear: {} has compute capability {}.{}; these kernels are for 10.0 (B200, "
          "sim:b200). Linear runs such weights on Hopper.",
          device.name, device.compute_capability / 10, device.compute_capability % 10);
}

void check_sizes(const BlockScaledWeightInfo& weight, const BlockScaledProblem& p) {
  check(weight.n >= 1 && weight.n <= kMaxDim, "n = {}; expected 1 to 2^24", weight.n);
  check(weight.k >= 32 && weight.k % 32 == 0 && weight.k <= kMaxDim,
        "k = {}; expected a multiple of 32 from 32 to 2^24. Pad weight and x with zeros along k.",
        weight.k);
  check(p.m >= 0 && p.m <= kMaxDim, "m = {}; expected 0 to 2^24", p.m);
  check(p.out_dtype == DType::kBF16 || p.out_dtype == DType::kF4,
        "out_dtype = {}; expected BF16, or F4 for NVFP4 with scales. Convert afterwards.",
        to_string(p.out_dtype));
}

// Fills in row sizes that were left out.
void complete_rows(const BlockScaledVariant& variant, const BlockScaledWeightInfo& weight,
                   BlockScaledProblem& p) {
  const std::int64_t x = variant.x_row_bytes(weight.k), out = variant.out_row_bytes(weight.n);
  if (p.x_row_bytes == 0) p.x_row_bytes = x;
  if (p.out_row_bytes == 0) p.out_row_bytes = out;
  check(p.x_row_bytes >= x && p.x_row_bytes % kRowAlignment == 0,
        "x_row_bytes = {}; expected a multiple of 16, at least {} for k = {} {} elements",
        p.x_row_bytes, x, weight.k, variant.config.is_nvfp4() ? "4-bit" : "8-bit");
  check(p.out_row_bytes >= out && (variant.is_requantising || p.out_row_bytes % 2 == 0),
        "out_row_bytes = {}; expected {}at least {} for n = {} in {}", p.out_row_bytes,
        variant.is_requantising ? "" : "a multiple of 2, ", out, weight.n, to_string(p.out_dtype));
}

struct Choice {
  std::vector<BlockScaledVariant> variants;
  std::vector<BlockScaledCost> costs;
  std::size_t index = 0;
};

// Among tiles of equal cost, what L2 has to read out: it serves all multiprocessors at once, which
// the cost of one does not show.
std::size_t find_cheapest(const std::vector<BlockScaledCost>& costs) {
  constexpr double kEqual = 1.001;
  std::size_t best = 0;
  for (std::size_t i = 1; i < costs.size(); ++i) {
    const bool is_equal =
        costs[i].us <= costs[best].us * kEqual && costs[best].us <= costs[i].us * kEqual;
    if (is_equal ? costs[i].l2_bytes < costs[best].l2_bytes : costs[i].us < costs[best].us)
      best = i;
  }
  return best;
}

std::size_t find_named(const std::vector<BlockScaledVariant>& variants, const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].name() == name || variants[i].entry() == name) return i;
    names += (i == 0 ? "" : ", ") + variants[i].name();
  }
  fail(ErrorKind::kInvalidArgument,
       "block-scaled linear: kernel = \"{}\"; expected auto or one of {}", name, names);
}

Choice choose(const device::DeviceInfo& device, const BlockScaledWeightInfo& weight,
              const BlockScaledProblem& p) {
  Choice choice;
  choice.variants =
      block_scaled_variants(block_scaled_kind(weight.format), p.out_dtype == DType::kF4);
  for (const BlockScaledVariant& variant : choice.variants)
    choice.costs.push_back(block_scaled_cost(device, variant, {p.m, weight.n, weight.k}));
  choice.index =
      p.kernel == "auto" ? find_cheapest(choice.costs) : find_named(choice.variants, p.kernel);
  return choice;
}

std::vector<LinearCandidate> list_candidates(const Choice& choice, bool is_named) {
  std::vector<LinearCandidate> candidates;
  const BlockScaledCost& best = choice.costs[choice.index];
  for (std::size_t i = 0; i < choice.variants.size(); ++i) {
    const BlockScaledCost& cost = choice.costs[i];
    LinearCandidate candidate = {
        .name = choice.variants[i].name(), .reason = "", .is_possible = true, .cost_us = cost.us};
    if (i != choice.index && is_named) candidate.reason = "was not asked for";
    if (i != choice.index && !is_named) {
      candidate.reason = cost.us > best.us * 1.001
                             ? fmt::format("takes {:.2f} times as long by count", cost.us / best.us)
                             : fmt::format("takes as long, and L2 reads out {:.2f} times as much",
                                           cost.l2_bytes / std::max(best.l2_bytes, 1.0));
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// Bytes from the first row to the last.
std::size_t span_bytes(std::int64_t rows, std::int64_t row_bytes, std::int64_t last) {
  return rows == 0 ? 0 : static_cast<std::size_t>((rows - 1) * row_bytes + last);
}

}  // namespace

kernels::BlockScaledKind block_scaled_kind(WeightFormat format) {
  check(format == WeightFormat::kNvfp4 || format == WeightFormat::kMxfp4,
        "a weight in {}; expected nvfp4 (by NVFP4 activations) or mxfp4 (by MXFP8 ones). Quantise "
        "it, or take Linear.",
        to_string(format));
  return format == WeightFormat::kNvfp4 ? kernels::BlockScaledKind::kNvfp4
                                        : kernels::BlockScaledKind::kMxfp8Mxfp4;
}

BlockScaledVariant planned_variant(const BlockScaledPlan& plan) {
  const auto variants = block_scaled_variants(block_scaled_kind(plan.weight.format),
                                              plan.problem.out_dtype == DType::kF4);
  return variants[find_named(variants, plan.kernel)];
}

BlockScaledPlan make_block_scaled_plan(const device::DeviceInfo& device,
                                       const BlockScaledWeightInfo& weight,
                                       const BlockScaledProblem& problem) {
  check_device(device);
  check_sizes(weight, problem);
  const Choice choice = choose(device, weight, problem);
  const BlockScaledVariant& variant = choice.variants[choice.index];
  const BlockScaledCost& cost = choice.costs[choice.index];
  require(cost.tiles <= std::numeric_limits<std::int32_t>::max(), ErrorKind::kUnsupported,
          "block-scaled linear: m = {} by n = {} are {} tiles; expected fewer than 2^31. Cut m.",
          problem.m, weight.n, cost.tiles);
  BlockScaledPlan plan;
  plan.weight = weight;
  plan.problem = problem;
  complete_rows(variant, weight, plan.problem);
  plan.kernel = variant.name();
  plan.candidates = list_candidates(choice, problem.kernel != "auto");
  const auto cluster = static_cast<std::uint32_t>(variant.config.tile.cluster());
  if (cost.tiles > 0) {
    plan.launches.push_back(
        {.entry = variant.entry(),
         .grid = {cost.clusters * cluster, 1, 1},
         .block = {kernels::kBlockScaledThreads, 1, 1},
         .cluster = cluster,
         .shared_bytes = static_cast<std::uint32_t>(variant.config.shared_bytes())});
  }
  const std::int64_t m = problem.m, n = weight.n, k = weight.k;
  plan.x_bytes = span_bytes(m, plan.problem.x_row_bytes, variant.x_row_bytes(k));
  plan.x_scales_bytes =
      static_cast<std::size_t>(swizzled_scale_bytes(m, k / variant.scale_block()));
  plan.out_bytes = span_bytes(m, plan.problem.out_row_bytes, variant.out_row_bytes(n));
  if (variant.is_requantising)
    plan.out_scales_bytes = static_cast<std::size_t>(swizzled_scale_bytes(m, (n + 15) / 16));
  plan.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  plan.bytes = cost.memory_bytes + static_cast<double>(plan.out_scales_bytes);
  return plan;
}

}  // namespace tilewright::ops
