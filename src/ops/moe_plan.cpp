#include "ops/moe_plan.h"

#include "base/error.h"
#include "kernels/linear/sm90_band.h"
#include "kernels/linear/sm90_wide_bf16.h"
#include "kernels/linear/sm90_wide_e4m3.h"
#include "kernels/moe/combine.h"
#include "kernels/moe/permute.h"
#include "kernels/moe/route.h"
#include "kernels/moe/scatter.h"
#include "kernels/quantize/activation_fp8.h"
#include "ops/linear_pack.h"
#include "ops/moe_problem.h"
#include "ops/moe_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr MoeKernel kKernels[] = {MoeKernel::kBand, MoeKernel::kWide, MoeKernel::kWide8};
constexpr std::int64_t kLargestSharedBytes = 232448;

std::uint32_t ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

// Why a kernel cannot do it; empty if it can.
std::string obstacle(MoeKernel kernel, const device::DeviceInfo& device, const MoeWeightsInfo& w) {
  if (device.compute_capability != 90)
    return fmt::format("exists for compute capability 9.0; the device has {}",
                       device.compute_capability / 10.0);
  const bool is_fp8 = w.activations == LinearActivations::kFp8;
  if (kernel == MoeKernel::kWide && is_fp8 && kernels::is_fp4(to_kernel(w.format)))
    return "reads 4-bit weights prepared for bf16 activations; these are for fp8";
  if (kernel == MoeKernel::kWide8 && !is_fp8) return "needs weights prepared for fp8 activations";
  if (kernel == MoeKernel::kWide8 && w.format == WeightFormat::kBf16)
    return "multiplies weights of 4 or 8 bits; these are bf16";
  if (kernel == MoeKernel::kWide8 && w.hidden > kernels::kMoeScatterMaxColumns)
    return fmt::format("is for hidden up to {}", kernels::kMoeScatterMaxColumns);
  return {};
}

// Expected time of the two products. Tokens of an expert cost their share of the tensor cores at
// the measured rate, in whole tiles; below, memory decides.
double cost_us(MoeKernel kernel, const MoeWeightsInfo& w, const MoeProblem& p) {
  const MoeRates& rates = moe_rates(kernel);
  const double active = std::max(expected_active_experts(w, p), 1.0);
  const double rows = static_cast<double>(moe_rows(w, p));
  const double per_expert = rows / active;
  const double tiles = std::ceil(per_expert / rates.tile_tokens);
  const double reads = rates.rereads ? std::max(1.0, tiles) : 1.0;
  const double memory = moe_bytes(w, p) * reads / rates.bytes_per_s;
  const double padded = per_expert + rates.granule / 2.0;
  const double flops = 6.0 * static_cast<double>(w.hidden * w.inter) * active * padded;
  const double moved = rates.moved_bytes * rows * static_cast<double>(w.hidden) / 3.5e12;
  return 1e6 * (std::max(memory, flops / rates.flops_per_s) + moved) + rates.fixed_us;
}

struct Choice {
  MoeKernel kernel = MoeKernel::kBand;
  std::vector<MoeCandidate> candidates;
};

Choice choose(const device::DeviceInfo& device, const MoeWeightsInfo& w, const MoeProblem& p) {
  Choice choice;
  double best = std::numeric_limits<double>::infinity();
  std::string reasons;
  bool is_known = p.kernel == "auto";
  for (const MoeKernel kernel : kKernels) {
    MoeCandidate c = {.name = to_string(kernel), .reason = obstacle(kernel, device, w)};
    c.is_possible = c.reason.empty();
    is_known = is_known || p.kernel == c.name;
    if (c.is_possible) {
      c.cost_us = cost_us(kernel, w, p);
      const bool is_wanted = p.kernel == "auto" || p.kernel == c.name;
      if (is_wanted && c.cost_us < best) {
        best = c.cost_us;
        choice.kernel = kernel;
      }
    } else {
      reasons += fmt::format("\n  {} {}", c.name, c.reason);
    }
    choice.candidates.push_back(std::move(c));
  }
  require(is_known, ErrorKind::kInvalidArgument,
          "moe: kernel = {}; expected auto, band, wide or wide8", p.kernel);
  require(best < std::numeric_limits<double>::infinity(), ErrorKind::kUnsupported,
          "moe: {} cannot do it on {}:{}", p.kernel == "auto" ? "no kernel" : "kernel " + p.kernel,
          device.name, reasons);
  for (MoeCandidate& c : choice.candidates) {
    if (!c.is_possible || c.name == to_string(choice.kernel)) continue;
    c.reason = p.kernel != "auto"
                   ? "was not asked for"
                   : fmt::format("is expected to take {:.2f} times as long", c.cost_us / best);
  }
  return choice;
}

// Rows of h and of y, and the columns that make them.
struct Product {
  std::int64_t n, k;
};

// The number of warps whose tiles fill whole waves best, and a ring as deep as fits.
MoeBandTile band_tile(const device::DeviceInfo& device, const MoeWeightsInfo& w,
                      const MoeProblem& p, const Product& product) {
  const double active = std::max(1.0, expected_active_experts(w, p) + (w.has_shared ? 1 : 0));
  const double per_expert = static_cast<double>(moe_rows(w, p)) / active;
  kernels::BandTile tile = {.format = to_kernel(w.format),
                            .tokens = per_expert > 24 ? 64 : 32,
                            .warps = 8,
                            .cluster = 1,
                            .stages = 2,
                            .is_grouped = true};
  const double blocks = active * std::max(1.0, std::ceil(per_expert / tile.tokens));
  double best = std::numeric_limits<double>::infinity();
  int best_warps = 8;
  for (int warps = kernels::BandTile::kMaxWarps; warps >= 4; --warps) {
    const std::int64_t rows = warps * kernels::BandTile::kWarpRows;
    const double units = blocks * ceil_div(product.n, rows);
    const double cost = std::ceil(units / device.num_sms) * static_cast<double>(rows);
    if (cost >= 0.98 * best) continue;
    best = cost;
    best_warps = warps;
  }
  tile.warps = best_warps;
  while (tile.stages < kernels::BandTile::kMaxStages) {
    ++tile.stages;
    if (tile.shared_bytes() <= kLargestSharedBytes) continue;
    --tile.stages;
    break;
  }
  return {tile.tokens, tile.warps, tile.stages};
}

MoeWideTile wide_tile(const MoeWeightsInfo& w, const MoeProblem& p) {
  const double active = std::max(1.0, expected_active_experts(w, p) + (w.has_shared ? 1 : 0));
  const double per_expert = static_cast<double>(moe_rows(w, p)) / active;
  // The mean and a little, so that most experts fit whole tiles.
  const double wanted = per_expert + 1.5 * std::sqrt(per_expert);
  const double tiles = std::max(1.0, std::ceil(wanted / kernels::kWideBf16MaxTokens));
  const auto granules = static_cast<int>(std::ceil(wanted / tiles / kernels::kWideBf16Granule));
  MoeWideTile tile = {};
  tile.tile_tokens = std::clamp(granules * kernels::kWideBf16Granule, kernels::kWideBf16Granule,
                                kernels::kWideBf16MaxTokens);
  tile.token_group = 16;
  tile.stages = kernels::WideBf16Layout{kernels::brick_bytes(to_kernel(w.format)), tile.tile_tokens,
                                        static_cast<int>(w.experts + w.has_shared)}
                    .stages();
  return tile;
}

// Scales per token for weights of 4 bits, whose sums then stay in the tensor cores for longer; per
// 128 columns for FP8 weights, which have scales of blocks themselves.
int wide8_variant(const MoeWeightsInfo& w) {
  const bool is_fp4 = kernels::is_fp4(to_kernel(w.format));
  int index = 0;
  for (const kernels::WideE4m3Variant& v : kernels::kWideE4m3Variants) {
    if (v.is_fp4 == is_fp4 && v.has_k_scales != is_fp4) return index;
    ++index;
  }
  fail(ErrorKind::kInternal, "moe: no kernel of FP8 activations for {} weights",
       to_string(w.format));
}

class Launches {
 public:
  Launches(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
           const MoeProblem& problem, const MoePlanDetails& details)
      : device_(device), w_(weights), p_(problem), details_(details) {}

  std::vector<MoeLaunch> make() {
    if (p_.routing != MoeRouting::kGiven) {
      add("route", "moe_route", {ceil_div(p_.tokens, kernels::kMoeRouteTokens), 1, 1},
          kernels::kMoeRouteThreads);
    }
    const std::uint32_t ctas = permute_ctas();
    add("permute", "moe_permute", {ctas, 1, 1}, kernels::kMoePermuteThreads, ctas,
        kernels::kMoePermuteSharedBytes);
    if (details_.kernel != MoeKernel::kBand) add_scatter();
    add_product("gate_up", 2 * w_.inter, details_.band_gate_up);
    if (details_.kernel == MoeKernel::kWide8) add_quantize();
    add_product("down", w_.hidden, details_.band_down);
    add("combine", p_.out_dtype == DType::kF32 ? "moe_combine_f32" : "moe_combine_bf16",
        {ceil_div(w_.hidden, kernels::kMoeCombineColumns), static_cast<std::uint32_t>(p_.tokens),
         1},
        kernels::kMoeCombineThreads);
    return std::move(launches_);
  }

 private:
  void add(std::string step, std::string entry, std::array<std::uint32_t, 3> grid, int threads,
           std::uint32_t cluster = 1, std::int64_t shared_bytes = 0) {
    launches_.push_back({std::move(step),
                         std::move(entry),
                         grid,
                         {static_cast<std::uint32_t>(threads), 1, 1},
                         cluster,
                         static_cast<std::uint32_t>(shared_bytes)});
  }

  std::uint32_t permute_ctas() const {
    std::uint32_t ctas = 1;
    while (ctas < kernels::kMoePermuteMaxCtas &&
           ctas * kernels::kMoePermuteSlotsPerCta < p_.tokens * p_.topk)
      ctas *= 2;
    return ctas;
  }

  void add_scatter() {
    const auto tokens = static_cast<std::uint32_t>(p_.tokens);
    if (details_.kernel == MoeKernel::kWide8) {
      add("scatter", "moe_scatter_e4m3", {tokens, 1, 1},
          kernels::moe_scatter_threads(padded_columns(w_.hidden)));
    } else {
      add("scatter", "moe_scatter_bf16",
          {ceil_div(w_.hidden, kernels::kMoeScatterColumns), tokens, 1},
          kernels::kMoeScatterThreads);
    }
  }

  void add_quantize() {
    const std::int64_t rows = moe_rows(w_, p_), columns = padded_columns(w_.inter);
    if (kernels::kWideE4m3Variants[details_.wide8_variant].has_k_scales) {
      add("quantize", "quantize_fp8_block_bf16", {kernels::fp8_block_ctas(rows, columns), 1, 1},
          kernels::kQuantizeThreads);
    } else {
      add("quantize", "quantize_fp8_token_bf16", {static_cast<std::uint32_t>(rows), 1, 1},
          static_cast<int>(kernels::fp8_token_threads(columns)));
    }
  }

  // CTAs for the tiles of a product: as many as there are multiprocessors, or as tiles that there
  // can be, whatever the routing.
  std::uint32_t persistent_ctas(std::int64_t n, std::int64_t tile_rows,
                                std::int64_t tile_tokens) const {
    const std::int64_t rows = moe_rows(w_, p_);
    const std::int64_t blocks =
        std::min(rows, std::int64_t{w_.experts + w_.has_shared}) + rows / tile_tokens;
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(device_.num_sms, blocks * ceil_div(n, tile_rows)));
  }

  void add_product(const char* step, std::int64_t n, const MoeBandTile& band) {
    if (details_.kernel == MoeKernel::kBand) {
      const kernels::BandTile tile = {.format = to_kernel(w_.format),
                                      .tokens = band.tokens,
                                      .warps = band.warps,
                                      .cluster = 1,
                                      .stages = band.stages,
                                      .is_grouped = true};
      add(step, fmt::format("linear_band_{}_n{}", band_format_name(w_), band.tokens),
          {persistent_ctas(n, tile.rows(), tile.tokens), 1, 1}, tile.threads(), 1,
          tile.shared_bytes());
    } else if (details_.kernel == MoeKernel::kWide) {
      const kernels::WideBf16Layout layout = {kernels::brick_bytes(to_kernel(w_.format)),
                                              details_.wide.tile_tokens,
                                              static_cast<int>(w_.experts + w_.has_shared)};
      add(step, fmt::format("linear_wide_bf16_{}", to_string(w_.format)),
          {persistent_ctas(n, kernels::kWideBf16Rows, details_.wide.tile_tokens), 1, 1},
          kernels::kWideBf16Threads, 1, layout.shared_bytes());
    } else {
      const kernels::WideE4m3Variant& v = kernels::kWideE4m3Variants[details_.wide8_variant];
      const auto cluster = static_cast<std::uint32_t>(v.cluster);
      const std::uint32_t ctas = persistent_ctas(n, kernels::WideE4m3Variant::kRows, v.tokens);
      add(step, fmt::format("linear_wide_e4m3_{}", v.name),
          {std::max(ctas / cluster, 1u) * cluster, 1, 1}, kernels::WideE4m3Variant::kThreads,
          cluster, v.shared_bytes());
    }
  }

  const device::DeviceInfo& device_;
  const MoeWeightsInfo& w_;
  const MoeProblem& p_;
  const MoePlanDetails& details_;
  std::vector<MoeLaunch> launches_;
};

MoeWorkspace make_workspace(const MoeWeightsInfo& w, const MoeProblem& p, MoeKernel kernel) {
  MoeWorkspace at;
  const auto take = [&](std::int64_t bytes) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t here = at.total;
    at.total += (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    return here;
  };
  const std::int64_t slots = p.tokens * p.topk, rows = moe_rows(w, p);
  at.status = take(sizeof(kernels::MoeStatus));
  at.offsets = take((w.experts + 2) * 4);
  at.slot_row = take(slots * 4);
  at.row_token = take(rows * 4);
  at.row_weight = take(rows * 4);
  if (p.routing != MoeRouting::kGiven) {
    at.ids = take(slots * 4);
    at.weights = take(slots * 4);
  }
  at.h = take(rows * w.inter * 2);
  at.x_rows = at.y = take(rows * w.hidden * 2);  // e4m3 rows are padded, but half as wide or 128
  if (kernel == MoeKernel::kWide8) {
    at.x_rows = take(rows * padded_columns(w.hidden));
    at.x_scales = take(padded_columns(w.hidden) / 128 * scale_pitch(rows) * 4);
    at.h_codes = take(rows * padded_columns(w.inter));
    at.h_scales = take(padded_columns(w.inter) / 128 * scale_pitch(rows) * 4);
  }
  return at;
}

}  // namespace

const char* to_string(MoeKernel kernel) noexcept {
  switch (kernel) {
    case MoeKernel::kBand:
      return "band";
    case MoeKernel::kWide:
      return "wide";
    default:
      return "wide8";
  }
}

std::string band_format_name(const MoeWeightsInfo& w) {
  const bool is_braided =
      w.activations == LinearActivations::kFp8 && kernels::is_fp4(to_kernel(w.format));
  return fmt::format("{}{}", to_string(w.format), is_braided ? "_braided" : "");
}

MoePlanned make_moe_plan(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                         const MoeProblem& problem) {
  check_moe_problem(weights, problem);
  MoePlanned out;
  out.plan.weights = weights;
  out.plan.problem = problem;
  Choice choice = choose(device, weights, problem);
  out.details.kernel = choice.kernel;
  out.plan.kernel = to_string(choice.kernel);
  out.plan.candidates = std::move(choice.candidates);
  if (choice.kernel == MoeKernel::kBand) {
    out.details.band_gate_up =
        band_tile(device, weights, problem, {2 * weights.inter, weights.hidden});
    out.details.band_down = band_tile(device, weights, problem, {weights.hidden, weights.inter});
  }
  if (choice.kernel == MoeKernel::kWide) out.details.wide = wide_tile(weights, problem);
  if (choice.kernel == MoeKernel::kWide8) out.details.wide8_variant = wide8_variant(weights);
  out.plan.flops = moe_flops(weights, problem);
  out.plan.bytes = moe_bytes(weights, problem);
  out.plan.expected_experts =
      expected_active_experts(weights, problem) + (weights.has_shared && problem.tokens > 0);
  if (problem.tokens == 0) return out;
  out.workspace = make_workspace(weights, problem, choice.kernel);
  out.plan.workspace_bytes = out.workspace.total;
  out.plan.launches = Launches(device, weights, problem, out.details).make();
  return out;
}

}  // namespace tilewright::ops
