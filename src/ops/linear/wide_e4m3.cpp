// Many tokens in FP8: kernels/linear/wide/sm90_wide_e4m3.h.
#include "base/error.h"
#include "kernels/linear/wide/sm90_wide_e4m3.h"
#include "ops/linear/fp8_x.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/linear/wide_bind.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>

namespace tilewright::ops {

namespace {

using kernels::WideE4m3Params;
using kernels::WideE4m3Variant;

constexpr std::int64_t kMostSummedInside = 8192;

class WideE4m3 : public LinearKernel {
 public:
  /// `splits` parts of k, where tiles are too few to fill the SMs.
  WideE4m3(const WideE4m3Variant& variant, std::int32_t splits)
      : LinearKernel(fmt::format("wide_e4m3_{}{}", variant.name, splits > 1 ? "_s2" : ""),
                     "FP8 tensor cores fed from registers, weights decoded to e4m3", 90),
        variant_(variant),
        splits_(splits) {}

  std::string obstacle(const LinearWeightInfo& weight, const LinearProblem& p) const override {
    if (weight.activations != LinearActivations::kFp8)
      return "reads weights that were prepared for fp8 activations";
    const bool is_fp4 = kernels::is_fp4(packed_shape(weight).format);
    if (weight.format == NumberFormat::kBf16 || is_fp4 != variant_.is_fp4)
      return variant_.is_fp4 ? "is for 4-bit weights" : "is for fp8 weights";
    if (variant_.has_k_scales != (p.activation_scales == ScaleSharing::kBlock))
      return variant_.has_k_scales ? "takes a scale for 128 of a row" : "takes a scale for a row";
    // The tensor core's sums have 13 fraction bits: at k = 7168 results are off by 0.0018.
    if (variant_.promote == 0 && weight.k > kMostSummedInside)
      return fmt::format("adds all of k inside the tensor core: for k up to {}", kMostSummedInside);
    if (splits_ > 1 && weight.k <= WideE4m3Variant::kStepK)
      return fmt::format("cuts k in two; it is {}", weight.k);
    return {};
  }

  void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const override {
    const auto cluster = static_cast<std::uint32_t>(splits_);
    // With k in two parts every tile has a cluster of its own.
    std::int64_t clusters = num_units(plan.weight, plan.problem);
    if (splits_ == 1)
      clusters = std::min<std::int64_t>(clusters, resident_clusters(device, cluster));
    plan.launches = {{.step = "multiply",
                      .entry = std::string("linear_wide_e4m3_") + variant_.name,
                      .grid = {static_cast<std::uint32_t>(clusters) * cluster, 1, 1},
                      .block = {WideE4m3Variant::kThreads, 1, 1},
                      .cluster = cluster,
                      .shared_bytes = variant_.shared_bytes()}};
    lay_out_fp8_x(plan);
  }

  void run(const LinearCall& call) const override {
    const LinearWeightInfo& w = call.plan.weight;
    const LinearProblem& p = call.plan.problem;
    const Fp8Rows x = run_fp8_x(call);
    WideE4m3Params params = {};
    bind_wide(call.device,
              {.x = {"e4m3 x", x.codes, fp8_columns(w.k), p.m, x.stride_bytes, 1,
                     WideE4m3Variant::box_tokens()},
               .bricks = call.bricks<std::uint8_t>(),
               .block_scales = call.block_scales(),
               .shape = call.weight.shape,
               .y = call.arguments.out,
               .y_pitch = p.out_stride},
              params);
    params.bias = p.has_bias ? call.arguments.bias : nullptr;
    params.tile_tokens = tile_tokens(p);
    params.token_group = token_group(w, p);
    params.splits = splits_;
    params.alpha = call.weight.alpha_e4m3;
    params.is_f32 = p.out_dtype == DType::kF32;
    params.x_scales = x.scales;
    params.x_scale_pitch = static_cast<std::int32_t>(fp8_scale_rows(p.m));
    params.format = call.weight.shape.format;
    call.launch(call.plan.launches.size() - 1, params);
  }

  double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                  const LinearProblem& p) const override {
    // An H200's steps of 128 of K; sums that go over to f32 on the way cost more.
    const double level = variant_.has_k_scales ? 0.65 : variant_.promote == 0 ? 0.42 : 0.53;
    return fp8_x_us(weight, p) +
           step_cost_us(
               {.bytes = linear_bytes(weight, p),
                .units = static_cast<double>(num_units(weight, p)),
                .slots = static_cast<double>(
                    resident_clusters(device, static_cast<std::uint32_t>(splits_))),
                .steps = static_cast<double>(weight.k) / 128 / splits_,
                .step_us = level * std::max(tile_tokens(p), 96) / 128 * (splits_ > 1 ? 1.05 : 1),
                .fixed_us = 3.5 + 0.5 * splits_});
  }

 private:
  // Few tokens do not need a whole tile.
  std::int32_t tile_tokens(const LinearProblem& p) const {
    constexpr std::int64_t kGranule = 32;
    const std::int64_t wanted = ceil_div(std::max<std::int64_t>(p.m, 1), kGranule) * kGranule;
    return static_cast<std::int32_t>(std::min<std::int64_t>(variant_.tokens, wanted));
  }
  std::int64_t num_units(const LinearWeightInfo& weight, const LinearProblem& p) const {
    return ceil_div(p.m, tile_tokens(p)) * ceil_div(weight.n, WideE4m3Variant::kRows);
  }
  // Token tiles whose rows stay in L2 while all of the weight passes: about 16 MB of them.
  std::int32_t token_group(const LinearWeightInfo& weight, const LinearProblem& p) const {
    const std::int64_t fitting =
        std::max<std::int64_t>((16 << 20) / (weight.k * variant_.tokens), 1);
    return static_cast<std::int32_t>(std::min(fitting, ceil_div(p.m, variant_.tokens)));
  }

  WideE4m3Variant variant_;
  std::int32_t splits_;
};

}  // namespace

void add_wide_e4m3_kernels(LinearKernelList& list) {
  for (const WideE4m3Variant& variant : kernels::kWideE4m3Variants) {
    list.push_back(std::make_unique<WideE4m3>(variant, 1));
    list.push_back(std::make_unique<WideE4m3>(variant, 2));
  }
}

}  // namespace tilewright::ops
