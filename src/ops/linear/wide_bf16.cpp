// Many tokens in bf16: kernels/linear/wide/sm90_wide_bf16.h.
#include "base/error.h"
#include "kernels/linear/wide/sm90_wide_bf16.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/linear/wide_bind.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>

namespace tilewright::ops {

namespace {

using kernels::WideBf16Layout;
using kernels::WideBf16Params;

struct WideBf16Tile {
  std::int32_t tokens, cluster_rows, splits;
  bool is_tall = false;

  std::string name() const {
    std::string text = fmt::format("wide_bf16_t{}", tokens);
    if (is_tall) text += "_tall";
    if (cluster_rows > 1) text += fmt::format("_r{}", cluster_rows);
    if (splits > 1) text += fmt::format("_s{}", splits);
    return text;
  }
  std::int32_t rows() const {
    return is_tall ? kernels::kWideBf16TallRows : kernels::kWideBf16Rows;
  }
  std::uint32_t threads() const {
    return is_tall ? kernels::kWideBf16TallThreads : kernels::kWideBf16Threads;
  }
};

// Tokens of a tile; row tiles that share them; parts of k, where tiles are too few to fill the
// SMs.
constexpr WideBf16Tile kTiles[] = {
    {32, 1, 4, true}, {64, 1, 4, true}, {64, 1, 2, true}, {64, 1, 2},  {128, 1, 2}, {128, 2, 1},
    {128, 2, 2},      {192, 2, 1},      {256, 1, 2},      {256, 2, 1}, {256, 2, 2}, {256, 4, 1},
};

class WideBf16 : public LinearKernel {
 public:
  explicit WideBf16(const WideBf16Tile& tile)
      : LinearKernel(tile.name(), "tensor cores fed from registers, weights decoded to bf16", 90),
        tile_(tile) {}

  std::string obstacle(const LinearWeightInfo& weight, const LinearProblem& p) const override {
    if (p.x_dtype != DType::kBF16) return "reads bf16 activations";
    if (weight.activations == LinearActivations::kFp8 && weight.format != NumberFormat::kFp8)
      return "reads 4-bit weights that were prepared for bf16 activations";
    return {};
  }

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const auto cluster = static_cast<std::uint32_t>(tile_.cluster_rows * tile_.splits);
    const std::int64_t units = num_units(plan.weight, plan.problem);
    const auto clusters = static_cast<std::uint32_t>(
        std::min<std::int64_t>(units, resident_clusters(device, cluster)));
    plan.launches = {
        {.step = "multiply",
         .entry = fmt::format("linear_wide_bf16_{}{}", tile_.is_tall ? "tall_" : "",
                              to_string(plan.weight.format)),
         .grid = {clusters * cluster, 1, 1},
         .block = {tile_.threads(), 1, 1},
         .cluster = cluster,
         .shared_bytes = static_cast<std::uint32_t>(layout(plan.weight).shared_bytes())}};
  }

  void run(const LinearCall& call) const override {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    WideBf16Params params = {};
    bind_wide(call.device,
              {.x = {"x", call.arguments.x, w.k, p.m, 2 * p.x_stride, 2, box_tokens()},
               .bricks = call.bricks<std::uint8_t>(),
               .block_scales = call.block_scales(),
               .shape = call.weight.shape,
               .y = call.arguments.out,
               .y_pitch = p.out_stride},
              params);
    params.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.tile_tokens = tile_.tokens;
    params.token_group = token_group(w, p);
    params.splits = tile_.splits;
    params.alpha = call.weight.alpha_bf16;
    params.is_f32 = p.out_dtype == DType::kF32;
    params.box_tokens = box_tokens();
    params.cluster_rows = tile_.cluster_rows;
    params.stages = layout(w).stages();
    call.launch(0, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    // An H200's steps of 64 of K: decoding, which taller tiles hide better, and products.
    const double tokens = tile_.tokens;
    const double step_us = tile_.is_tall ? 0.5 + 0.0025 * tokens : 0.24 + 0.0017 * tokens;
    const double format = weight.format == NumberFormat::kFp8 ? 1.4 : 1;
    const auto cluster = static_cast<std::uint32_t>(tile_.cluster_rows * tile_.splits);
    return step_cost_us({.bytes = linear_bytes(weight, p),
                         .units = static_cast<double>(num_units(weight, p)),
                         .slots = static_cast<double>(resident_clusters(device, cluster)),
                         .steps = static_cast<double>(weight.k) / 64 / tile_.splits,
                         .step_us = format * step_us,
                         .fixed_us = 5 + 0.5 * tile_.splits});
  }

 private:
  WideBf16Layout layout(const LinearWeightInfo& weight) const {
    const kernels::PackedShape shape = packed_shape(weight);
    return {kernels::brick_bytes(shape.format), tile_.tokens, 1, tile_.rows()};
  }
  // Each row tile of a cluster loads a share of the boxes.
  std::int32_t box_tokens() const {
    return std::min(tile_.tokens / tile_.cluster_rows, kernels::kWideGranule);
  }
  std::int64_t num_units(const LinearWeightInfo& weight, const LinearProblem& p) const {
    return ceil_div(p.m, tile_.tokens) *
           ceil_div(weight.n, std::int64_t{tile_.rows()} * tile_.cluster_rows);
  }
  // Token tiles whose rows stay in L2 while all of the weight passes: about 28 MB of them.
  std::int32_t token_group(const LinearWeightInfo& weight, const LinearProblem& p) const {
    const std::int64_t tile_bytes = 2 * weight.k * tile_.tokens;
    const std::int64_t fitting = std::max<std::int64_t>((28 << 20) / tile_bytes, 1);
    return static_cast<std::int32_t>(std::min(fitting, ceil_div(p.m, tile_.tokens)));
  }

  WideBf16Tile tile_;
};

}  // namespace

void add_wide_bf16_kernels(LinearKernelList& list) {
  for (const WideBf16Tile& tile : kTiles) list.push_back(std::make_unique<WideBf16>(tile));
}

}  // namespace tilewright::ops
