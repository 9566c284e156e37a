// Few tokens: kernels/linear/band/band.h.
#include "kernels/linear/band/band.h"

#include "base/error.h"
#include "ops/linear/fp8_x.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <limits>

namespace tilewright::ops {

namespace {

using kernels::BandParams;
using kernels::BandTile;

constexpr int kMinStages = 2, kFewestWarps = 4;
constexpr std::int64_t kMostBandRows =
    512;  // beyond them the weight is read too often to be worth it

constexpr double kBlackwellBytesPerS = 7.2e12;  // 90 % of what a B200's memory gives by its data

bool is_braided(const LinearWeightInfo& weight) {
  return weight.activations == LinearActivations::kFp8 && weight.format != NumberFormat::kFp8;
}

// Those that checkpoints have weights of groups in: others are launched for each group.
bool has_groups_entry(NumberFormat format) {
  return format == NumberFormat::kFp8 || format == NumberFormat::kBf16;
}

class Band : public LinearKernel {
 public:
  /// Tiles of at most that many tokens, and CTAs on an SM.
  Band(const char* name, int most_tokens, int ctas)
      : LinearKernel(name, "every weight read once, decoded while the next ones arrive"),
        most_tokens_(most_tokens),
        ctas_(ctas) {}

  bool takes_groups(NumberFormat format) const override { return has_groups_entry(format); }
  std::string obstacle(const LinearWeightInfo&, const LinearProblem&) const override { return {}; }
  // On Blackwell it takes what no other kernel does.
  std::string device_obstacle(const device::DeviceInfo& device,
                              const LinearProblem& p) const override {
    std::string obstacle = LinearKernel::device_obstacle(device, p);
    if (obstacle.empty() && p.x_dtype != DType::kBF16 && !is_blackwell(device))
      return "reads bf16 activations";
    if (!obstacle.empty() || p.m <= kMostBandRows || is_blackwell(device)) return obstacle;
    return fmt::format("is for at most {} rows of x", kMostBandRows);
  }

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const BandTile tile = choose_tile(device, plan.weight, plan.problem);
    const auto cluster = static_cast<std::uint32_t>(tile.cluster);
    const std::int64_t units = num_units(tile, plan.weight, plan.problem);
    const auto clusters = static_cast<std::uint32_t>(
        std::min<std::int64_t>(units, resident_clusters(device, cluster)));
    plan.launches = {{.step = "multiply",
                      .entry = fmt::format("linear_band_{}{}_n{}", to_string(plan.weight.format),
                                           plan.weight.groups > 1    ? "_groups"
                                           : is_braided(plan.weight) ? "_braided"
                                                                     : "",
                                           tile.entry_tokens()),
                      .grid = {clusters * cluster, 1, 1},
                      .block = {static_cast<std::uint32_t>(tile.threads()), 1, 1},
                      .cluster = cluster,
                      .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes())}};
    lay_out_widened_x(plan);
  }

  void run(const LinearCall& call) const override {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    const BandTile tile = choose_tile(call.device.info(), w, p);
    BandParams params = {};
    params.weights = call.bricks<std::uint8_t>();
    params.block_scales = call.block_scales();
    const Bf16Rows x = run_widened_x(call);
    params.x = x.rows;
    params.y = call.arguments.out;
    params.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.x_stride = x.stride;
    params.y_stride = p.out_stride;
    params.matrix_bytes = call.weight.shape.bytes();
    params.m = static_cast<std::int32_t>(p.m);
    params.n = call.weight.shape.rows;
    params.k = static_cast<std::int32_t>(w.k);
    params.experts = static_cast<std::int32_t>(w.groups);
    params.scale_halves = 1;
    params.scale_rows = call.weight.shape.scale_blocks_rows();
    params.is_y_f32 = p.out_dtype == DType::kF32;
    params.alpha = call.weight.alpha_bf16;
    params.limit = std::numeric_limits<float>::infinity();
    params.gate_slope = 1;
    params.cut = tile.cut(params.n, params.k);
    call.launch(call.plan.launches.size() - 1, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    const BandTile tile = choose_tile(device, weight, p);
    // An H200's steps of 16 rows by 64 of K in a warp: decoding, then the tokens' products.
    const double tokens = static_cast<double>(std::min<std::int64_t>(p.m, tile.tokens));
    const double format = weight.format == NumberFormat::kFp8 ? 1.3 : 1;
    const double steps = static_cast<double>(weight.k) / kernels::kBrickK / tile.cluster;
    return widened_x_us(weight, p) +
           step_cost_us({.bytes = linear_bytes(weight, p),
                         .bytes_per_s = is_blackwell(device) ? kBlackwellBytesPerS : 4.3e12,
                         .units = static_cast<double>(num_units(tile, weight, p)),
                         .slots = static_cast<double>(num_slots(device, tile)),
                         .steps = steps,
                         .step_us = format * std::max(0.46, 0.27 + 0.0138 * tokens) *
                                    (ctas_ == 2 ? 1 : 0.65),
                         .fixed_us = 3});
  }

 private:
  static std::int64_t num_units(const BandTile& tile, const LinearWeightInfo& weight,
                                const LinearProblem& p) {
    return weight.groups * tile.units(p.m, weight.n / weight.groups);
  }
  std::uint32_t num_slots(const device::DeviceInfo& device, const BandTile& tile) const {
    return resident_clusters(device, static_cast<std::uint32_t>(tile.cluster),
                             static_cast<std::uint32_t>(ctas_));
  }

  int most_stages(const device::DeviceInfo& device, BandTile tile) const {
    tile.stages = 0;
    const int room =
        std::min(device.shared_per_block_optin_bytes,
                 device.shared_per_sm_bytes / ctas_ - device.shared_per_block_reserved_bytes);
    return std::min((room - tile.shared_bytes()) / tile.stage_bytes(), BandTile::kMaxStages);
  }

  int tile_tokens(std::int64_t m) const {
    int tokens = 8;
    while (tokens < most_tokens_ && tokens < m) tokens *= 2;
    return tokens == 64 || most_tokens_ < 64 ? tokens : 64;
  }

  // The tile whose busiest cluster reads least of the weight. Of equals: tall tiles and few CTAs in
  // a cluster, which exchange less.
  BandTile choose_tile(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                       const LinearProblem& p) const {
    BandTile best = {};
    double least = std::numeric_limits<double>::infinity();
    for (int warps = BandTile::kMaxWarps; warps >= kFewestWarps; --warps) {
      for (const int cluster : {1, 2, 4, 8}) {
        // Alone on an SM, a CTA needs twice the warps to hide as much.
        const int k_groups = ctas_ == 1 && most_tokens_ <= 32 ? 2 : 1;
        BandTile tile = {
            packed_shape(weight).format, tile_tokens(p.m), warps, k_groups, cluster, 0, false};
        tile.stages = most_stages(device, tile) / k_groups * k_groups;
        if (!tile.is_possible() || tile.stages < kMinStages) continue;
        const std::int64_t waves = ceil_div(num_units(tile, weight, p), num_slots(device, tile));
        const std::int64_t blocks = ceil_div(
            ceil_div(weight.k, kernels::kBrickK * BandTile::stage_blocks(tile.format)), cluster);
        const double cost = static_cast<double>(waves * tile.rows()) *
                            (static_cast<double>(blocks) + 0.25 * cluster);
        if (cost >= least * 0.999) continue;
        least = cost;
        best = tile;
      }
    }
    return best;
  }

  int most_tokens_, ctas_;
};

}  // namespace

void add_band_kernels(LinearKernelList& list) {
  list.push_back(std::make_unique<Band>("band", 32, 2));
  list.push_back(std::make_unique<Band>("band_large", 32, 1));
  list.push_back(std::make_unique<Band>("band_n64", 64, 1));
}

}  // namespace tilewright::ops
