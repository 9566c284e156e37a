// Weights of 4 and 8 bits as they are on Blackwell: x is quantised, then multiplied by the product
// of experts (kernels/linear/grouped/sm100_grouped.h) with one expert, which has all rows. It is
// the one that has a factor for each row, and so NVFP4's second scale of each row of x.
#include "formats/grouped_scales.h"
#include "formats/scale_layout.h"
#include "kernels/linear/grouped/sm100_grouped.h"
#include "kernels/moe/scatter_blocks.h"
#include "ops/block_scaled_linear/kernels.h"
#include "ops/block_scaled_linear/maps.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/rows.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/workspace.h"

#include <algorithm>

namespace tilewright::ops {

namespace {

using kernels::BlockScaledConfig;

constexpr std::int64_t kMostRows = std::int64_t{1} << 21;
constexpr std::int64_t kQuantiserCtasPerSm = 8;
constexpr double kTwoLaunchesUs = 6;

BlockScaledVariant variant_of(const LinearWeightInfo& weight, bool is_few) {
  return {kernels::grouped_config(block_scaled_kind(weight.format), is_few)};
}

/// Where codes and scales of x stand in the workspace, in bytes.
struct QuantisedX {
  std::size_t codes = 0, scales = 0, row_scales = 0, total = 0;
  std::int64_t row_bytes = 0, tiles_k = 0, tiles = 0;

  QuantisedX(const BlockScaledVariant& variant, const LinearWeightInfo& weight,
             const LinearProblem& p)
      : row_bytes(variant.x_row_bytes(weight.k)),
        tiles_k(scale_tiles_along_k(weight.k / variant.scale_block())),
        tiles(grouped_scale_tiles(p.m, 1)) {
    Carver carver;
    codes = carver.carve(p.m * row_bytes);
    scales = carver.carve(tiles * tiles_k * kScaleTileBytes);
    if (variant.config.is_nvfp4()) row_scales = carver.carve(p.m * 4);
    total = carver.total();
  }
};

class TensorBlocks : public LinearKernel {
 public:
  explicit TensorBlocks(bool is_few)
      : LinearKernel(
            "tensor_blocks_" + BlockScaledVariant{kernels::grouped_config({}, is_few)}.name(),
            "x quantised, then 4- and 8-bit operands as they are into Tensor Memory", 100),
        is_few_(is_few) {}

  bool is_block_scaled() const override { return true; }

  std::string obstacle(const LinearWeightInfo&, const LinearProblem& p) const override {
    if (p.x_dtype != DType::kBF16)
      return "quantises bf16 x; BlockScaledLinear takes one that is quantised";
    if (p.out_dtype != DType::kBF16) return "writes bf16";
    if (p.has_bias) return "adds no bias";
    if (p.m > kMostRows) return fmt::format("is for at most {} rows of x", kMostRows);
    return {};
  }

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const LinearWeightInfo& w = plan.weight;
    const BlockScaledVariant variant = variant_of(w, is_few_);
    const BlockScaledConfig& c = variant.config;
    const auto cluster = static_cast<std::uint32_t>(c.tile.cluster());
    const std::int64_t ctas = std::min(kQuantiserCtasPerSm * device.num_sms, plan.problem.m);
    const char* const kind = c.is_nvfp4() ? "nvfp4" : c.unpacks_weight() ? "mxfp8_mxfp4" : "mxfp8";
    plan.launches = {
        {.step = "quantize",
         .entry = c.is_nvfp4() ? "moe_grouped_nvfp4" : "moe_grouped_mxfp8",
         .grid = {static_cast<std::uint32_t>(ctas), 1, 1},
         .block = {static_cast<std::uint32_t>(
                       kernels::moe_scatter_threads(ceil_div(w.k, 128) * 128)),
                   1, 1}},
        {.step = "multiply",
         .entry = fmt::format("sm100_moe_{}_down_{}", kind, variant.name()),
         .grid = {cost(device, w, plan.problem).clusters * cluster, 1, 1},
         .block = {kernels::kBlockScaledThreads, 1, 1},
         .cluster = cluster,
         .shared_bytes = static_cast<std::uint32_t>(kernels::grouped_shared_bytes(c))}};
    plan.workspace_bytes = QuantisedX(variant, w, plan.problem).total;
  }

  void run(const LinearCall& call) const override {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    const BlockScaledVariant variant = variant_of(w, is_few_);
    const QuantisedX x(variant, w, p);
    const auto at = [&](std::size_t offset) {
      return static_cast<std::uint8_t*>(call.arguments.workspace) + offset;
    };
    float* const row_scales =
        variant.config.is_nvfp4() ? reinterpret_cast<float*>(at(x.row_scales)) : nullptr;
    const kernels::MoeGroupedRowsParams quantise = {
        .x = static_cast<const std::uint16_t*>(call.arguments.x),
        .offsets = nullptr,
        .counts = nullptr,
        .codes = at(x.codes),
        .scales = at(x.scales),
        .row_scales = row_scales,
        .status = nullptr,
        .x_stride = p.x_stride,
        .hidden = static_cast<std::int32_t>(w.k),
        .room = static_cast<std::int32_t>(p.m),
        .experts = 1};
    call.launch(0, quantise);
    kernels::MoeGroupedParams params = {};
    bind_maps(call, variant, x, params);
    params.row_scales = row_scales;
    params.room = static_cast<std::int32_t>(p.m);
    params.experts = 1;
    call.launch(1, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    // x is read in bf16, written and read in 4 or 8 bits.
    const double moved = 4.0 * static_cast<double>(p.m) * static_cast<double>(weight.k);
    return kTwoLaunchesUs + cost(device, weight, p).us + moved / memory_bytes_per_us(device);
  }

 private:
  BlockScaledCost cost(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                       const LinearProblem& p) const {
    return block_scaled_cost(device, variant_of(weight, is_few_), {p.m, weight.n, weight.k});
  }

  int box_rows(const LinearProblem& p) const {
    if (is_few_) return p.m <= 32 ? 8 : 16;
    return p.m <= 8 ? 8 : p.m <= 16 ? 16 : p.m <= 32 ? 32 : 128;
  }

  void bind_maps(const LinearCall& call, const BlockScaledVariant& variant, const QuantisedX& x,
                 kernels::MoeGroupedParams& params) const {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    const BlockScaledConfig& c = variant.config;
    const auto* const workspace = static_cast<const std::uint8_t*>(call.arguments.workspace);
    const void* const weight = call.bricks<void>();
    const std::int64_t pitch = variant.weight_row_bytes(w.k), atoms = ceil_div(w.n, kScaleTileRows);
    kernels::BlockScaledGemmParams& gemm = params.gemm;
    gemm.m = static_cast<std::int32_t>(p.m);
    gemm.n = static_cast<std::int32_t>(w.n);
    gemm.k = static_cast<std::int32_t>(w.k);
    gemm.tiles_n = static_cast<std::int32_t>(ceil_div(w.n, c.columns()));
    gemm.d = static_cast<std::uint8_t*>(call.arguments.out);
    gemm.d_row_bytes = 2 * p.out_stride;
    gemm.alpha = call.weight.alpha_bf16;
    params.a_box_rows = box_rows(p);
    params.b_atoms = static_cast<std::int32_t>(atoms);
    store_map(call.device,
              byte_rows("codes of x", workspace + x.codes, p.m, x.row_bytes, x.row_bytes,
                        params.a_box_rows),
              gemm.a_map);
    store_map(call.device,
              c.unpacks_weight()
                  ? unpacked_rows("weight", weight, w.n, w.k, pitch, c.weight_box_rows())
                  : byte_rows("weight", weight, w.n, x.row_bytes, pitch, c.weight_box_rows()),
              gemm.b_map);
    store_map(
        call.device,
        scale_tiles("scales of x", workspace + x.scales, x.tiles_k, x.tiles, c.scale_atoms_k(), 1),
        gemm.a_scale_map);
    store_map(call.device,
              scale_tiles("scales of the weight", call.block_scales<void>(), x.tiles_k, atoms,
                          c.scale_atoms_k(), c.scale_atoms_n()),
              gemm.b_scale_map);
    if (is_few_) return;
    gemm.has_d_map = 1;
    store_map(call.device, result_rows("out", gemm.d, false, p.m, w.n, gemm.d_row_bytes),
              gemm.d_map);
  }

  bool is_few_;
};

}  // namespace

void add_tensor_block_kernels(LinearKernelList& list) {
  for (const bool is_few : {true, false}) list.push_back(std::make_unique<TensorBlocks>(is_few));
}

StateOf<LinearWeight> prepare_scaled_rows(const Device& device, const HostWeight& weight) {
  const HostWeight* const parts[] = {&weight};
  const BlockScaledRows rows = block_scaled_rows(parts);
  const std::int64_t scale_columns = weight.k / block_scale_columns(weight.format);
  const LinearWeightInfo info = {weight.format, LinearActivations::kBlockScaled, weight.n,
                                 weight.k};
  const device::Device& inner = opened(device);
  return {device,
          info,
          packed_shape(info),
          kernels::WordOrder::kBf16,
          weight.global_scale,
          1,
          device::Buffer::from(inner, rows.values),
          device::Buffer::from(inner, swizzle_scales(rows.scales, weight.n, scale_columns))};
}

}  // namespace tilewright::ops
