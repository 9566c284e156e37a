// One to 32 tokens with FP4 weights: kernels/linear/direct/direct.h.
#include "kernels/linear/direct/direct.h"

#include "base/error.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"

#include <algorithm>
#include <limits>

namespace tilewright::ops {

namespace {

using kernels::DirectParams;
using kernels::DirectTile;

constexpr int kMostDirectRows = 32;
constexpr int kRegisters = 136;   // of a thread, at most: what DirectTile::kMaxWarps leaves
constexpr int kEnoughWarps = 14;  // of an SM: they hide each other's waits

class Direct : public LinearKernel {
 public:
  Direct()
      : LinearKernel("direct", "every warp loads its weights straight into registers, far ahead") {}

  std::string obstacle(const LinearWeightInfo& w, const LinearProblem& p) const override {
    if (w.format != NumberFormat::kNvfp4 && w.format != NumberFormat::kMxfp4)
      return "is for NVFP4 and MXFP4 weights";
    if (w.activations == LinearActivations::kFp8)
      return "reads weights that were prepared for bf16 activations";
    if (p.x_dtype != DType::kBF16) return "reads bf16 activations";
    if (p.m > kMostDirectRows) return fmt::format("is for at most {} rows of x", kMostDirectRows);
    return {};
  }

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const LinearWeightInfo& w = plan.weight;
    const DirectTile tile = choose_tile(device, w, plan.problem);
    const auto cluster = static_cast<std::uint32_t>(tile.cluster);
    const auto n = static_cast<std::int32_t>(w.n), k = static_cast<std::int32_t>(w.k);
    plan.launches = {{.step = "multiply",
                      .entry = fmt::format("linear_direct_{}_n{}{}", to_string(w.format),
                                           tile.tokens, tile.is_deep ? "_deep" : ""),
                      .grid = {static_cast<std::uint32_t>(tile.clusters(n)) * cluster, 1, 1},
                      .block = {static_cast<std::uint32_t>(tile.threads()), 1, 1},
                      .cluster = cluster,
                      .shared_bytes = tile.shared_bytes(k)}};
  }

  void run(const LinearCall& call) const override {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    const DirectTile tile = choose_tile(call.device.info(), w, p);
    DirectParams params = {};
    params.weights = call.bricks<std::uint8_t>();
    params.x = static_cast<const std::uint16_t*>(call.arguments.x);
    params.y = call.arguments.out;
    params.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.x_stride = p.x_stride;
    params.y_stride = p.out_stride;
    params.m = static_cast<std::int32_t>(p.m);
    params.n = static_cast<std::int32_t>(w.n);
    params.k = static_cast<std::int32_t>(w.k);
    params.warps = tile.warps;
    params.k_groups = tile.k_groups;
    params.cluster = tile.cluster;
    params.token_bytes = tile.token_bytes(params.k);
    params.sums_at = tile.sums_at(params.k);
    params.is_y_f32 = p.out_dtype == DType::kF32;
    params.alpha = call.weight.alpha_bf16;
    call.launch(0, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    return cost_us(device, choose_tile(device, weight, p), weight, p);
  }

 private:
  static int ctas_per_sm(const device::DeviceInfo& device, const DirectTile& tile, std::int32_t k) {
    const int shared =
        static_cast<int>(tile.shared_bytes(k)) + device.shared_per_block_reserved_bytes;
    return std::min({2, device.shared_per_sm_bytes / shared,
                     device.registers_per_sm / (tile.threads() * kRegisters)});
  }

  // An H200's. Every warp of a busiest SM does its bricks, one after the other; the
  // SM issues for some at once. Tokens come before, sums go after.
  static double cost_us(const device::DeviceInfo& device, const DirectTile& tile,
                        const LinearWeightInfo& weight, const LinearProblem& p) {
    constexpr double kBrickUs = 0.0115;  // of an SM with warps enough, up to 8 tokens
    const auto n = static_cast<std::int32_t>(weight.n), k = static_cast<std::int32_t>(weight.k);
    const int resident = ctas_per_sm(device, tile, k);
    if (resident < 1) return std::numeric_limits<double>::infinity();
    const std::uint32_t at_once =
        resident_clusters(device, static_cast<std::uint32_t>(tile.cluster),
                          static_cast<std::uint32_t>(resident)) *
        static_cast<std::uint32_t>(tile.cluster);
    const double ctas = static_cast<double>(tile.clusters(n)) * tile.cluster;
    const double waves = std::ceil(ctas / at_once);
    const double on_sm = std::ceil(std::min<double>(ctas, at_once) / device.num_sms);
    const double bricks = on_sm * tile.bricks() * tile.cta_blocks(k);
    const double warps = on_sm * tile.warps * tile.k_groups;
    const double lack = std::max(kEnoughWarps / warps, 1.0);
    const double tokens = static_cast<double>(p.m);
    const double token_us =
        on_sm * tokens * tile.cta_blocks(k) * 128 / 60e3;  // 60 GB/s of L2 to an SM
    const double brick_us = kBrickUs * lack * (1 + std::max(tokens - 8, 0.0) * 0.025);
    return 2.2 + waves * (1 + 0.1 * tile.cluster + token_us + bricks * brick_us);
  }

  // The cheapest of those that are on the device at once; of equals, small clusters.
  static DirectTile choose_tile(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                                const LinearProblem& p) {
    const int tokens = p.m <= 8 ? 8 : p.m <= 16 ? 16 : 32;
    DirectTile best = {tokens, false, 2, 1, 8};
    double least = std::numeric_limits<double>::infinity();
    for (const bool is_deep : {false, true}) {
      if (is_deep && tokens != 8) continue;
      for (const int cluster : {1, 2, 4, 8}) {
        for (int warps = 1; warps <= DirectTile::kMaxWarps; ++warps) {
          for (int groups = 1; warps * groups <= DirectTile::kMaxWarps; ++groups) {
            const DirectTile tile = {tokens, is_deep, warps, groups, cluster};
            const double cost = cost_us(device, tile, weight, p);
            if (cost >= least * 0.999) continue;
            least = cost;
            best = tile;
          }
        }
      }
    }
    return best;
  }
};

}  // namespace

void add_direct_kernels(LinearKernelList& list) {
  list.push_back(std::make_unique<Direct>());
}

}  // namespace tilewright::ops
