#include "ops/moe/plan.h"

#include "base/error.h"
#include "kernels/linear/band/band.h"
#include "kernels/linear/wide/sm90_wide_bf16.h"
#include "kernels/linear/wide/sm90_wide_e4m3.h"
#include "kernels/moe/combine.h"
#include "kernels/moe/permute.h"
#include "kernels/moe/route.h"
#include "kernels/moe/scatter.h"
#include "kernels/moe/share.h"
#include "kernels/quantize/activation_fp8.h"
#include "ops/linear/pack.h"
#include "ops/moe/direct.h"
#include "ops/moe/problem.h"
#include "ops/moe/rates.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/choose.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr MoeKernel kKernels[] = {MoeKernel::kDirect, MoeKernel::kBand,  MoeKernel::kSpread,
                                  MoeKernel::kWide,   MoeKernel::kWide8, MoeKernel::kFew,
                                  MoeKernel::kPair};
constexpr std::int64_t kLargestSharedBytes = 232448;

// Why a kernel cannot do it; empty if it can.
std::string obstacle(MoeKernel kernel, const device::DeviceInfo& device, const MoeWeightsInfo& w,
                     const MoeProblem& p) {
  const bool is_for_both = kernel == MoeKernel::kBand || kernel == MoeKernel::kDirect;
  std::string of_device = is_for_both ? chip_obstacle(device)
                                      : capability_obstacle(is_grouped(kernel) ? 100 : 90, device);
  if (!of_device.empty()) return of_device;
  if (is_grouped(kernel)) {
    std::string of_weights = grouped_obstacle(w);
    if (of_weights.empty() && is_single(p))
      return "takes the tokens of one expert as grouped ones, with their count";
    return of_weights;
  }
  if (is_in_rooms(p))
    return "takes the rows of experts behind each other (contiguous), without room between them";
  if (w.activations == LinearActivations::kBlockScaled)
    return "reads weights prepared for bf16 or fp8 activations; these are for block_scaled";
  if (kernel == MoeKernel::kDirect) return direct_obstacle(device, w, p);
  if (kernel == MoeKernel::kSpread && !is_single(p)) return "is for a single expert";
  if (kernel == MoeKernel::kSpread && !Spread::has_entry(to_kernel(w.format)))
    return "is for fp8 and bf16 weights";
  if (kernel == MoeKernel::kSpread && p.tokens > Spread::kMostRows)
    return fmt::format("is for at most {} tokens", Spread::kMostRows);
  const bool is_fp8 = w.activations == LinearActivations::kFp8;
  if (kernel == MoeKernel::kWide8 && !is_fp8) return "needs weights prepared for fp8 activations";
  if (kernel == MoeKernel::kWide8 && w.format == NumberFormat::kBf16)
    return "multiplies weights of 4 or 8 bits; these are bf16";
  if (kernel == MoeKernel::kWide8 && w.hidden > kernels::kMoeScatterMaxColumns)
    return fmt::format("is for hidden up to {}", kernels::kMoeScatterMaxColumns);
  if (kernel == MoeKernel::kBand && is_grouped_input(p) && p.weight_after_down)
    return "weighs tokens that come grouped before down alone";
  return {};
}

// Expected time of the two products. Tokens of an expert cost their share of the tensor cores at
// the measured rate, in whole tiles; below, memory decides.
double cost_us(const device::DeviceInfo& device, MoeKernel kernel, const MoeWeightsInfo& w,
               const MoeProblem& p) {
  if (is_grouped(kernel)) {
    const bool is_few = kernel == MoeKernel::kFew;
    return grouped_cost_us(device, moe_grouped_variant(w.format, is_few), w, p);
  }
  if (kernel == MoeKernel::kDirect && is_blackwell(device))  // for who asks for it
    return std::numeric_limits<double>::infinity();
  if (kernel == MoeKernel::kSpread)
    return moe_spread(device, w, p, true).model_us(device) +
           moe_spread(device, w, p, false).model_us(device);
  const MoeRates rates = moe_rates(kernel, w.format);
  const double active = std::max(expected_active_experts(w, p), 1.0);
  const double rows = static_cast<double>(moe_expected_rows(w, p));
  const double per_expert = rows / active;
  const double tiles = std::ceil(per_expert / rates.tile_tokens);
  const double reads = rates.rereads ? std::max(1.0, tiles) : 1.0;
  const double memory = moe_bytes(w, p) * reads / rates.bytes_per_s;
  const double padded = per_expert + rates.granule / 2.0;
  const double flops = 6.0 * static_cast<double>(w.hidden * w.inter) * active * padded;
  const double moved = rates.moved_bytes * rows * static_cast<double>(w.hidden) / 3.5e12;
  return 1e6 * (std::max(memory, flops / rates.flops_per_s) + moved) + rates.fixed_us;
}

MoeKernel choose_kernel(const device::DeviceInfo& device, MoePlan& plan) {
  const MoeWeightsInfo& w = plan.weights;
  const MoeProblem& p = plan.problem;
  const Request request = {
      "moe", p.kernel, device.name,
      fmt::format("{} experts for {} activations", to_string(w.format), to_string(w.activations)),
      "Ask for auto, or take another device."};
  return kKernels[choose(plan, request, kKernels, [&](MoeKernel kernel) {
    return make_option(to_string(kernel), obstacle(kernel, device, w, p),
                       [&] { return cost_us(device, kernel, w, p); });
  })];
}

// Rows of h and of y, and the columns that make them.
struct Product {
  std::int64_t n, k;
};

double rows_per_expert(const MoeWeightsInfo& w, const MoeProblem& p) {
  const double active = expected_active_experts(w, p) + (w.has_shared ? 1 : 0);
  return static_cast<double>(moe_expected_rows(w, p)) / std::max(1.0, active);
}

// CTAs of a band launch that an SM holds: two hide each other's ends, three more of the waits.
int band_ctas_per_sm(const kernels::BandTile& tile) {
  return std::max(2, kernels::BandTile::min_ctas(tile.entry_tokens()));
}

// As deep a ring as fits beside the other CTAs.
int most_stages(const device::DeviceInfo& device, kernels::BandTile tile) {
  const int room =
      device.shared_per_sm_bytes / band_ctas_per_sm(tile) - device.shared_per_block_reserved_bytes;
  tile.stages = 0;
  return std::min((room - tile.shared_bytes()) / tile.stage_bytes(), kernels::BandTile::kMaxStages);
}

// Tokens of a unit: as many as nearly all experts have. More than 32 cost registers that others
// need, so that experts with more are read again, out of the L2 cache. So do more than 8 where 8
// have an entry of their own.
int band_tokens(double per_expert, bool has_narrow) {
  const auto wanted = [&](double deviations) {
    return per_expert + deviations * std::sqrt(per_expert);
  };
  if (wanted(has_narrow ? 2 : 3) <= 8) return 8;
  return wanted(3) <= 16 ? 16 : 32;
}

// The tile whose busiest cluster is done first. Few warps need more instructions for a weight: on
// an H200, 7 warps did 224 rows in the time of 165 with 4 and 155 with 3. To exchange sums costs
// three CTAs of an SM more than two (an H100, 8 warps: clusters of two 3 % slower than none).
kernels::BandTile band_tile(const device::DeviceInfo& device, const MoeWeightsInfo& w,
                            const MoeProblem& p, const Product& product) {
  const double active = std::max(1.0, expected_active_experts(w, p) + (w.has_shared ? 1 : 0));
  const double per_expert = rows_per_expert(w, p);
  const bool has_narrow = kernels::is_fp4(to_kernel(w.format));
  const int tokens = band_tokens(per_expert, has_narrow);
  const double blocks = active * std::max(1.0, per_expert / tokens);
  const auto steps = static_cast<double>(ceil_div(product.k, 2 * kernels::kBrickK));
  kernels::BandTile best = {};
  double least = std::numeric_limits<double>::infinity();
  for (int warps = kernels::BandTile::kMaxWarps; warps >= 3; --warps) {
    for (const int cluster : {1, 2}) {
      kernels::BandTile tile = {.format = to_kernel(w.format),
                                .tokens = tokens,
                                .warps = warps,
                                .k_groups = 1,
                                .cluster = cluster,
                                .stages = 2,
                                .is_grouped = true,
                                .is_narrow = has_narrow && tokens == 8};
      tile.stages = most_stages(device, tile);
      if (!tile.is_possible() || tile.stages < 2) continue;
      const double units = blocks * ceil_div(product.n, tile.rows());
      const double waves = units * cluster / (band_ctas_per_sm(tile) * device.num_sms);
      const double cost = std::max(std::ceil(waves), waves + 0.5) * tile.rows() *
                          (1 + 3.0 / warps) *
                          (steps / cluster + (tile.is_narrow ? 1 : 0.5) * cluster);
      if (cost >= 0.999 * least) continue;
      least = cost;
      best = tile;
    }
  }
  require(best.stages >= 2, ErrorKind::kInternal, "moe: no tile of the band kernel fits");
  return best;
}

kernels::WideBf16Layout wide_layout(const MoeWeightsInfo& w, const MoeWideTile& tile) {
  return {kernels::brick_bytes(to_kernel(w.format)), tile.tile_tokens,
          static_cast<int>(w.experts + w.has_shared), tile.rows};
}

// Few tokens: tall tiles. More: the mean and a little, so that most experts fit whole tiles, and
// pairs of CTAs below each other that share their tokens (measured 5 to 12 % faster).
MoeWideTile wide_tile(const MoeWeightsInfo& w, const MoeProblem& p) {
  const double per_expert = rows_per_expert(w, p);
  MoeWideTile tile = {kernels::kWideBf16TallRows, kernels::kWideBf16TallMaxTokens, 1, 4, 0};
  if (per_expert > kernels::kWideBf16TallMaxTokens) {
    const double wanted = per_expert + 1.5 * std::sqrt(per_expert);
    const auto tiles = std::ceil(wanted / kernels::kWideBf16MaxTokens);
    const auto granules = static_cast<int>(std::ceil(wanted / tiles / kernels::kWideGranule));
    tile.rows = kernels::kWideBf16Rows;
    tile.tile_tokens = std::clamp(granules * kernels::kWideGranule, kernels::kWideGranule,
                                  kernels::kWideBf16MaxTokens);
    tile.cluster_rows = 2;
  }
  tile.stages = wide_layout(w, tile).stages();
  return tile;
}

// Scales per token for weights of 4 bits, whose sums then stay in the tensor cores for longer; per
// 128 columns for FP8 weights, which have scales of blocks themselves.
int wide8_variant(const MoeWeightsInfo& w, const MoeProblem& p) {
  constexpr std::int64_t kDeepest = 8192;  // of one level of sums: kernels/linear/README.md
  constexpr double kOneLevel = 1.25;       // as fast as two levels, where products bind
  constexpr double kProductsBind = 96;     // from so many tokens of an expert on
  const bool is_fp4 = kernels::is_fp4(to_kernel(w.format));
  const double mean = rows_per_expert(w, p), wanted = mean + 1.5 * std::sqrt(mean);
  int best = -1, index = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const kernels::WideE4m3Variant& v : kernels::kWideE4m3Variants) {
    const bool is_deep = v.promote == 0 && std::max(w.hidden, w.inter) > kDeepest;
    // Tokens that are paid for: whole tiles, and a narrow one if the rest fits it.
    const double whole = std::floor(wanted / v.tokens) * v.tokens;
    const double rest = wanted - whole <= v.narrow ? v.narrow : v.tokens;
    const double speed = v.promote == 0 && mean >= kProductsBind ? kOneLevel : 1;
    const double cost = (whole + rest) / speed;
    if (v.is_fp4 == is_fp4 && v.has_k_scales != is_fp4 && !is_deep && cost < least) {
      least = cost;
      best = index;
    }
    ++index;
  }
  require(best >= 0, ErrorKind::kInternal, "moe: no kernel of FP8 activations for {} weights",
          to_string(w.format));
  return best;
}

// CTAs that quantise rows, for each SM: enough bytes in flight with one row in each.
constexpr std::int64_t kRowCtasPerSm = 8;

class Launches {
 public:
  Launches(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
           const MoeProblem& problem, const MoePlanDetails& details)
      : device_(device), w_(weights), p_(problem), details_(details) {}

  std::vector<Launch> make() {
    if (details_.kernel == MoeKernel::kDirect) return make_direct();
    if (keeps_rows(p_)) return make_grouped();
    if (p_.routing != MoeRouting::kGiven) {
      add("route", "moe_route", {ctas_for(p_.tokens, kernels::kMoeRouteTokens), 1, 1},
          kernels::kMoeRouteThreads);
    }
    // Where ids are not given, the routing makes them this rank's.
    if (p_.all_experts > 0 && p_.routing == MoeRouting::kGiven)
      add("share", "moe_share", {ctas_for(p_.tokens * p_.topk, kernels::kMoeShareThreads), 1, 1},
          kernels::kMoeShareThreads);
    const std::uint32_t ctas = permute_ctas();
    add("permute", "moe_permute", {ctas, 1, 1}, kernels::kMoePermuteThreads, ctas,
        kernels::kMoePermuteSharedBytes);
    if (details_.kernel != MoeKernel::kBand) add_scatter();
    add_product("gate_up", 2 * w_.inter, details_.band_gate_up);
    if (details_.kernel == MoeKernel::kWide8) add_quantize("quantize", w_.inter);
    add_product("down", w_.hidden, details_.band_down);
    add("combine", p_.out_dtype == DType::kF32 ? "moe_combine_f32" : "moe_combine_bf16",
        {ctas_for(w_.hidden, kernels::kMoeCombineColumns), static_cast<std::uint32_t>(p_.tokens),
         1},
        kernels::kMoeCombineThreads);
    return std::move(launches_);
  }

 private:
  // Rows stay where they are, and those of y are the result.
  std::vector<Launch> make_grouped() {
    if (p_.routing == MoeRouting::kContiguous) add("offsets", "moe_offsets", {1, 1, 1}, 32);
    if (is_grouped(details_.kernel)) {
      const auto experts = static_cast<std::uint32_t>(w_.experts);
      const std::int64_t of_expert = ceil_div(kRowCtasPerSm * device_.num_sms, w_.experts);
      add("quantize_x",
          w_.format == NumberFormat::kNvfp4 ? "moe_grouped_nvfp4" : "moe_grouped_mxfp8",
          {static_cast<std::uint32_t>(std::min(of_expert, p_.tokens)), experts, 1},
          kernels::moe_scatter_threads(padded_columns(w_.hidden)));
    }
    if (details_.kernel == MoeKernel::kWide8) add_quantize("quantize_x", w_.hidden);
    add_product("gate_up", 2 * w_.inter, details_.band_gate_up);
    if (details_.kernel == MoeKernel::kWide8) add_quantize("quantize", w_.inter);
    add_product("down", w_.hidden, details_.band_down);
    return std::move(launches_);
  }

  std::vector<Launch> make_direct() {
    const DirectCut cut = cut_direct(device_, {w_, p_});
    add("experts", fmt::format("moe_direct_{}", packed_format_name(w_)),
        {static_cast<std::uint32_t>(cut.ctas), 1, 1}, kernels::kMoeDirectThreads, 1,
        cut.shared_bytes);
    return std::move(launches_);
  }

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
    if (is_grouped(details_.kernel)) {
      add("scatter", w_.format == NumberFormat::kNvfp4 ? "moe_scatter_nvfp4" : "moe_scatter_mxfp8",
          {tokens, 1, 1}, kernels::moe_scatter_threads(padded_columns(w_.hidden)));
    } else if (details_.kernel == MoeKernel::kWide8) {
      add("scatter", "moe_scatter_e4m3", {tokens, 1, 1},
          kernels::moe_scatter_threads(padded_columns(w_.hidden)));
    } else {
      add("scatter", "moe_scatter_bf16",
          {ctas_for(w_.hidden, kernels::kMoeScatterColumns), tokens, 1},
          kernels::kMoeScatterThreads);
    }
  }

  void add_quantize(const char* step, std::int64_t of_row) {
    const std::int64_t rows = moe_rows(w_, p_), columns = padded_columns(of_row);
    if (kernels::kWideE4m3Variants[details_.wide8_variant].has_k_scales) {
      add(step, "quantize_fp8_block_bf16", {kernels::fp8_block_ctas(rows, columns), 1, 1},
          kernels::kQuantizeThreads);
    } else {
      add(step, "quantize_fp8_token_bf16", {static_cast<std::uint32_t>(rows), 1, 1},
          static_cast<int>(kernels::fp8_token_threads(columns)));
    }
  }

  // CTAs for the tiles of a product: as many as the device holds, or as tiles that there can be,
  // whatever the routing.
  std::uint32_t persistent_ctas(std::int64_t tiles_of_rows, std::int64_t tile_tokens, int cluster,
                                int ctas_per_sm = 1) const {
    const std::int64_t rows = moe_rows(w_, p_);
    const std::int64_t blocks =
        std::min(rows, std::int64_t{w_.experts + w_.has_shared}) + rows / tile_tokens;
    const std::int64_t clusters = std::max(1, device_.num_sms * ctas_per_sm / cluster);
    return static_cast<std::uint32_t>(std::min(clusters, blocks * tiles_of_rows) * cluster);
  }

  void add_grouped(const char* step, std::int64_t n) {
    const MoeGroupedVariant variant = details_.grouped(w_.format);
    const kernels::BlockScaledConfig& c = variant.config;
    add(step, variant.entry(step == std::string_view("gate_up")),
        {persistent_ctas(ceil_div(n, c.columns()), c.tile_m(), c.tile.cluster()), 1, 1},
        kernels::kBlockScaledThreads, static_cast<std::uint32_t>(c.tile.cluster()),
        kernels::grouped_shared_bytes(c));
  }

  void add_product(const char* step, std::int64_t n, const kernels::BandTile& band) {
    if (is_grouped(details_.kernel)) return add_grouped(step, n);
    if (details_.kernel == MoeKernel::kSpread) {
      launches_.push_back(
          moe_spread(device_, w_, p_, step == std::string_view("gate_up")).launch(device_, step));
      return;
    }
    if (details_.kernel == MoeKernel::kBand) {
      add(step, fmt::format("linear_band_{}_n{}", packed_format_name(w_), band.entry_tokens()),
          {persistent_ctas(ceil_div(n, band.rows()), band.tokens, band.cluster,
                           band_ctas_per_sm(band)),
           1, 1},
          band.threads(), static_cast<std::uint32_t>(band.cluster), band.shared_bytes());
    } else if (details_.kernel == MoeKernel::kWide) {
      const MoeWideTile& tile = details_.wide;
      const std::int64_t row_tiles = ceil_div(n, tile.rows * tile.cluster_rows);
      add(step,
          fmt::format("linear_wide_bf16_{}{}", tile.is_tall() ? "tall_" : "",
                      packed_format_name(w_)),
          {persistent_ctas(row_tiles, tile.tile_tokens, tile.cluster_rows), 1, 1},
          tile.is_tall() ? kernels::kWideBf16TallThreads : kernels::kWideBf16Threads,
          static_cast<std::uint32_t>(tile.cluster_rows), wide_layout(w_, tile).shared_bytes());
    } else {
      const kernels::WideE4m3Variant& v = kernels::kWideE4m3Variants[details_.wide8_variant];
      const std::int64_t row_tiles = ceil_div(n, kernels::WideE4m3Variant::kRows);
      add(step, fmt::format("linear_wide_e4m3_{}", v.name),
          {persistent_ctas(row_tiles, v.tokens, 1), 1, 1}, kernels::WideE4m3Variant::kThreads, 1,
          v.shared_bytes());
    }
  }

  const device::DeviceInfo& device_;
  const MoeWeightsInfo& w_;
  const MoeProblem& p_;
  const MoePlanDetails& details_;
  std::vector<Launch> launches_;
};

}  // namespace

Spread moe_spread(const device::DeviceInfo& device, const MoeWeightsInfo& w, const MoeProblem& p,
                  bool is_gate_up) {
  return {device,
          {.format = to_kernel(w.format),
           .m = moe_rows(w, p),
           .n = is_gate_up ? 2 * w.inter : w.hidden,
           .k = is_gate_up ? w.hidden : w.inter,
           .is_swiglu = is_gate_up}};
}

const char* to_string(MoeKernel kernel) noexcept {
  switch (kernel) {
    case MoeKernel::kSpread:
      return "spread";
    case MoeKernel::kDirect:
      return "direct";
    case MoeKernel::kBand:
      return "band";
    case MoeKernel::kWide:
      return "wide";
    case MoeKernel::kWide8:
      return "wide8";
    case MoeKernel::kFew:
      return "few";
    default:
      return "2cta_n256";
  }
}

std::string packed_format_name(const MoeWeightsInfo& w) {
  return fmt::format("{}{}", to_string(w.format),
                     kernels::is_fp4(to_kernel(w.format)) ? "_braided" : "");
}

MoePlanned make_moe_plan(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                         const MoeProblem& problem) {
  check_moe_problem(weights, problem);
  MoePlanned out;
  MoePlan& plan = out.plan;
  plan.weights = weights;
  plan.problem = problem;
  const MoeKernel kernel = choose_kernel(device, plan);
  out.details.kernel = kernel;
  if (kernel == MoeKernel::kBand) {
    out.details.band_gate_up =
        band_tile(device, weights, problem, {2 * weights.inter, weights.hidden});
    out.details.band_down = band_tile(device, weights, problem, {weights.hidden, weights.inter});
  }
  if (kernel == MoeKernel::kWide) out.details.wide = wide_tile(weights, problem);
  if (is_grouped(kernel))
    out.details.box_rows = grouped_box_rows(weights, problem, kernel == MoeKernel::kFew);
  if (kernel == MoeKernel::kWide8) out.details.wide8_variant = wide8_variant(weights, problem);
  plan.flops = moe_flops(weights, problem);
  plan.bytes = moe_bytes(weights, problem);
  plan.expected_experts =
      expected_active_experts(weights, problem) + (weights.has_shared && problem.tokens > 0);
  plan.assumption = fmt::format("{:.1f} experts", plan.expected_experts);
  if (problem.tokens > 0) {
    out.workspace = make_moe_workspace(device, weights, problem, kernel);
    plan.workspace_bytes = out.workspace.total;
    plan.launches = Launches(device, weights, problem, out.details).make();
  }
  plan.notes = moe_notes(plan);
  if (is_blackwell(device)) plan.notes.push_back(blackwell_costs_note());
  return out;
}

}  // namespace tilewright::ops
