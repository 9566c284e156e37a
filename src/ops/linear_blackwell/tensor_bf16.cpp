// bf16 weights on Blackwell: kernels/linear/block_scaled/sm100_bf16_gemm.h.
#include "base/error.h"
#include "kernels/linear/block_scaled/sm100_bf16_gemm.h"
#include "ops/block_scaled_linear/kernels.h"
#include "ops/block_scaled_linear/maps.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/linear_blackwell/few_tokens.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"

#include <limits>

namespace tilewright::ops {

namespace {

using kernels::BlockScaledConfig;
using kernels::BlockScaledGemmParams;
using kernels::BlockScaledKind;

constexpr double kLaunchUs = 3;

/// What both have in common: weights as rows, x in bf16, on Blackwell.
class TensorBf16 : public LinearKernel {
 public:
  TensorBf16(std::string name, std::string idea)
      : LinearKernel(std::move(name), std::move(idea), 100) {}

  bool reads_rows() const override { return true; }
  std::string obstacle(const LinearWeightInfo& weight, const LinearProblem&) const override {
    return weight.format == NumberFormat::kBf16 ? "" : "is for bf16 weights";
  }

 protected:
  static BlockScaledGemmParams make_params(const LinearCall& call) {
    const LinearProblem& p = call.plan.problem;
    BlockScaledGemmParams params = {};
    params.d = static_cast<std::uint8_t*>(call.arguments.out);
    params.d_row_bytes = p.out_stride * linear_elem_bytes(p.out_dtype);
    params.k = static_cast<std::int32_t>(call.plan.weight.k);
    params.alpha = 1;
    params.swiglu_limit = std::numeric_limits<float>::infinity();
    params.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.is_d_f32 = p.out_dtype == DType::kF32;
    return params;
  }
  static void bind_x(const LinearCall& call, int box_rows, std::uint8_t (&to)[128]) {
    const LinearProblem& p = call.plan.problem;
    store_map(
        call.device,
        byte_rows("x", call.arguments.x, p.m, 2 * call.plan.weight.k, 2 * p.x_stride, box_rows),
        to);
  }
  static void bind_weight(const LinearCall& call, int box_rows, std::uint8_t (&to)[128]) {
    const LinearWeightInfo& w = call.plan.weight;
    store_map(call.device,
              byte_rows("weight", call.bricks<void>(), w.n, 2 * w.k, 2 * w.k, box_rows), to);
  }
  static void bind_out(const LinearCall& call, BlockScaledGemmParams& params) {
    store_map(
        call.device,
        result_rows("out", params.d, params.is_d_f32 != 0, params.m, params.n, params.d_row_bytes),
        params.d_map);
    params.has_d_map = 1;
  }
};

/// x by weight in tiles of 128 rows a CTA.
class ManyTokens : public TensorBf16 {
 public:
  explicit ManyTokens(const kernels::BlockScaledTile& tile)
      : TensorBf16("tensor_bf16_" + BlockScaledVariant{{BlockScaledKind::kBf16, tile}}.name(),
                   "bf16 from shared memory into sums in Tensor Memory, two tiles in flight"),
        variant_{{BlockScaledKind::kBf16, tile}} {}

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const BlockScaledConfig& c = variant_.config;
    const auto cluster = static_cast<std::uint32_t>(c.tile.cluster());
    plan.launches = {{.step = "multiply",
                      .entry = "sm100_bf16_gemm_" + variant_.name(),
                      .grid = {cost(device, plan.weight, plan.problem).clusters * cluster, 1, 1},
                      .block = {kernels::kBlockScaledThreads, 1, 1},
                      .cluster = cluster,
                      .shared_bytes = static_cast<std::uint32_t>(c.shared_bytes())}};
  }

  void run(const LinearCall& call) const override {
    const BlockScaledConfig& c = variant_.config;
    BlockScaledGemmParams params = make_params(call);
    params.m = static_cast<std::int32_t>(call.plan.problem.m);
    params.n = static_cast<std::int32_t>(call.plan.weight.n);
    params.tiles_m = static_cast<std::int32_t>(ceil_div(params.m, c.tile_m()));
    params.tiles_n = static_cast<std::int32_t>(ceil_div(params.n, c.tile.n));
    bind_x(call, 128, params.a_map);
    bind_weight(call, c.b_box_rows(), params.b_map);
    bind_out(call, params);
    Launch launch = call.plan.launches.front();
    launch.cluster = 1;  // it is compiled in
    call.entries.front().launch_bytes(dependent_launch(launch), &params, sizeof params,
                                      call.stream);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    const BlockScaledCost counted = cost(device, weight, p);
    // Of equals, the one that reads less out of L2, which serves all SMs at once.
    return kLaunchUs + counted.us + 1e-10 * counted.l2_bytes;
  }

 private:
  BlockScaledCost cost(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                       const LinearProblem& p) const {
    return block_scaled_cost(device, variant_, {p.m, weight.n, weight.k});
  }

  BlockScaledVariant variant_;
};

/// Weight by x, k divided among the CTAs of a cluster.
class FewTokens : public TensorBf16 {
 public:
  FewTokens()
      : TensorBf16("tensor_bf16_few",
                   "weights are the tensor core's rows, k divided in a cluster") {}

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const FewTokensShape shape(kConfig, plan.weight, plan.problem);
    const auto splits = static_cast<std::uint32_t>(shape.choose_split(device).ctas);
    const auto tiles = static_cast<std::uint32_t>(shape.tiles_m * shape.tiles_n);
    plan.launches = {{.step = "multiply",
                      .entry = "sm100_bf16_gemm_few",
                      .grid = {tiles * splits, 1, 1},
                      .block = {kernels::kBlockScaledThreads, 1, 1},
                      .cluster = splits,
                      .shared_bytes = static_cast<std::uint32_t>(kConfig.shared_bytes())}};
  }

  void run(const LinearCall& call) const override {
    const FewTokensShape shape(kConfig, call.plan.weight, call.plan.problem);
    BlockScaledGemmParams params = make_params(call);
    params.m = static_cast<std::int32_t>(call.plan.weight.n);
    params.n = static_cast<std::int32_t>(call.plan.problem.m);
    params.tiles_m = static_cast<std::int32_t>(shape.tiles_m);
    params.tiles_n = static_cast<std::int32_t>(shape.tiles_n);
    params.tile_columns = shape.tile_columns;
    bind_weight(call, 128, params.a_map);
    bind_x(call, params.tile_columns, params.b_map);
    call.launch(0, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    return FewTokensShape(kConfig, weight, p).choose_split(device).us;
  }

 private:
  static constexpr BlockScaledConfig kConfig = kernels::kFewTokensConfig;
};

}  // namespace

void add_tensor_bf16_kernels(LinearKernelList& list) {
  list.push_back(std::make_unique<FewTokens>());
  for (const kernels::BlockScaledTile& tile : kernels::kBf16Tiles)
    list.push_back(std::make_unique<ManyTokens>(tile));
}

}  // namespace tilewright::ops
