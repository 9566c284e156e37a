// fp8 weights by e4m3 activations on Blackwell, with the fp32 scales of both:
// kernels/linear/block_scaled/sm100_e4m3_gemm.h.
#include "kernels/linear/block_scaled/sm100_e4m3_gemm.h"
#include "ops/block_scaled_linear/kernels.h"
#include "ops/block_scaled_linear/maps.h"
#include "ops/linear/fp8_x.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/linear_blackwell/few_tokens.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"

#include <limits>

namespace tilewright::ops {

namespace {

using kernels::BlockScaledConfig;
using kernels::BlockScaledKind;
using kernels::E4m3GemmParams;

constexpr double kE4m3LaunchUs = 3;

/// What all have in common: x is quantised first if it is bf16.
class TensorE4m3 : public LinearKernel {
 public:
  TensorE4m3(const BlockScaledConfig& config, const std::string& tile, std::string idea)
      : LinearKernel("tensor_e4m3_" + tile, std::move(idea), 100),
        config_(config),
        entry_("sm100_e4m3_gemm_" + tile) {}

  bool reads_rows() const override { return true; }
  std::string obstacle(const LinearWeightInfo& weight, const LinearProblem&) const override {
    if (weight.format != NumberFormat::kFp8) return "is for fp8 weights";
    return weight.activations == LinearActivations::kFp8
               ? ""
               : "reads weights that were prepared for fp8 activations";
  }

 protected:
  Launch make_launch(std::uint32_t clusters, std::uint32_t cluster) const {
    return {.step = "multiply",
            .entry = entry_,
            .grid = {clusters * cluster, 1, 1},
            .block = {static_cast<std::uint32_t>(config_.threads()), 1, 1},
            .cluster = cluster,
            .shared_bytes = static_cast<std::uint32_t>(config_.shared_bytes())};
  }

  /// All that does not depend on which operand is A.
  static E4m3GemmParams make_params(const LinearCall& call, const Fp8Rows& x) {
    const LinearProblem& p = call.plan.problem;
    const bool has_blocks = p.activation_scales == ScaleSharing::kBlock;
    E4m3GemmParams params = {};
    params.gemm.d = static_cast<std::uint8_t*>(call.arguments.out);
    params.gemm.d_row_bytes = p.out_stride * linear_elem_bytes(p.out_dtype);
    params.gemm.k = static_cast<std::int32_t>(fp8_columns(call.plan.weight.k));
    params.gemm.alpha = 1;
    params.gemm.swiglu_limit = std::numeric_limits<float>::infinity();
    params.gemm.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.gemm.is_d_f32 = p.out_dtype == DType::kF32;
    params.x_scales = x.scales;
    params.x_scale_pitch = has_blocks ? static_cast<std::int32_t>(fp8_scale_rows(p.m)) : 0;
    params.weight_scales = call.block_scales();
    params.weight_blocks =
        static_cast<std::int32_t>(ceil_div(call.plan.weight.n, kernels::kE4m3ScaleBlock));
    return params;
  }
  static void bind_x(const LinearCall& call, const Fp8Rows& x, int box_rows,
                     std::uint8_t (&to)[128]) {
    store_map(call.device,
              byte_rows("e4m3 x", x.codes, call.plan.problem.m, fp8_columns(call.plan.weight.k),
                        x.stride_bytes, box_rows),
              to);
  }
  static void bind_weight(const LinearCall& call, int box_rows, std::uint8_t (&to)[128]) {
    const LinearWeightInfo& w = call.plan.weight;
    const std::int64_t bytes = fp8_columns(w.k);
    store_map(call.device, byte_rows("weight", call.bricks<void>(), w.n, bytes, bytes, box_rows),
              to);
  }

  BlockScaledConfig config_;

 private:
  std::string entry_;
};

/// x by weight in tiles of 128 rows a CTA.
class ManyE4m3Tokens : public TensorE4m3 {
 public:
  explicit ManyE4m3Tokens(const BlockScaledConfig& config)
      : TensorE4m3(config, BlockScaledVariant{config}.name(),
                   "e4m3 products of 128 of k in Tensor Memory, times their scales in registers") {}

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    plan.launches = {make_launch(cost(device, plan.weight, plan.problem).clusters,
                                 static_cast<std::uint32_t>(config_.tile.cluster()))};
    lay_out_fp8_x(plan);
  }

  void run(const LinearCall& call) const override {
    const Fp8Rows x = run_fp8_x(call);
    E4m3GemmParams params = make_params(call, x);
    kernels::BlockScaledGemmParams& gemm = params.gemm;
    gemm.m = static_cast<std::int32_t>(call.plan.problem.m);
    gemm.n = static_cast<std::int32_t>(call.plan.weight.n);
    gemm.tiles_m = static_cast<std::int32_t>(ceil_div(gemm.m, config_.tile_m()));
    gemm.tiles_n = static_cast<std::int32_t>(ceil_div(gemm.n, config_.tile.n));
    bind_x(call, x, 128, gemm.a_map);
    bind_weight(call, config_.b_box_rows(), gemm.b_map);
    store_map(call.device,
              result_rows("out", gemm.d, gemm.is_d_f32 != 0, gemm.m, gemm.n, gemm.d_row_bytes),
              gemm.d_map);
    gemm.has_d_map = 1;
    Launch launch = call.plan.launches.back();
    launch.cluster = 1;  // it is compiled in
    call.entries.back().launch_bytes(dependent_launch(launch), &params, sizeof params, call.stream);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    return kE4m3LaunchUs + fp8_x_us(weight, p) + cost(device, weight, p).us;
  }

 private:
  BlockScaledCost cost(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                       const LinearProblem& p) const {
    return block_scaled_cost(device, {config_}, {p.m, weight.n, weight.k});
  }
};

/// Weight by x, k divided among the CTAs of a cluster.
class FewE4m3Tokens : public TensorE4m3 {
 public:
  FewE4m3Tokens()
      : TensorE4m3(kernels::kE4m3FewConfig, "few",
                   "weights are the tensor core's rows, k divided in a cluster") {}

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const FewTokensShape shape(config_, plan.weight, plan.problem);
    plan.launches = {make_launch(static_cast<std::uint32_t>(shape.tiles_m * shape.tiles_n),
                                 static_cast<std::uint32_t>(shape.choose_split(device).ctas))};
    lay_out_fp8_x(plan);
  }

  void run(const LinearCall& call) const override {
    const FewTokensShape shape(config_, call.plan.weight, call.plan.problem);
    const Fp8Rows x = run_fp8_x(call);
    E4m3GemmParams params = make_params(call, x);
    kernels::BlockScaledGemmParams& gemm = params.gemm;
    gemm.m = static_cast<std::int32_t>(call.plan.weight.n);
    gemm.n = static_cast<std::int32_t>(call.plan.problem.m);
    gemm.tiles_m = static_cast<std::int32_t>(shape.tiles_m);
    gemm.tiles_n = static_cast<std::int32_t>(shape.tiles_n);
    gemm.tile_columns = shape.tile_columns;
    bind_weight(call, 128, gemm.a_map);
    bind_x(call, x, gemm.tile_columns, gemm.b_map);
    call.launch(call.plan.launches.size() - 1, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    return fp8_x_us(weight, p) + FewTokensShape(config_, weight, p).choose_split(device).us;
  }
};

}  // namespace

void add_tensor_e4m3_kernels(LinearKernelList& list) {
  list.push_back(std::make_unique<FewE4m3Tokens>());
  for (const kernels::BlockScaledTile& tile : kernels::kE4m3Tiles)
    list.push_back(
        std::make_unique<ManyE4m3Tokens>(BlockScaledConfig{BlockScaledKind::kE4m3, tile}));
}

}  // namespace tilewright::ops
