#include "ops/c_api/linear.h"

#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"
#include "ops/operator/ceil_div.h"

#include <cstdint>
#include <vector>

namespace c_api = tilewright::c_api;

struct tw_linear_weight {
  tilewright::LinearWeight weight;
};

struct tw_linear : c_api::Planned<tilewright::Linear> {
  using Planned::Planned;
};

namespace {

using tilewright::ConstTensorView;
using tilewright::contiguous_view;
using tilewright::DType;
using tilewright::ErrorKind;
using tilewright::LinearProblem;
using tilewright::LinearWeightSource;
using tilewright::require;
using tilewright::ScaleOrder;
using tilewright::WeightFormat;
using tilewright::ops::ceil_div;

// The shape of one-byte scales [n, k / group], padded if they are in 128x4 order.
std::vector<std::int64_t> scale_shape(const tw_linear_weight_source& c, std::int64_t group) {
  const std::int64_t cols = c.k / group;
  if (c.is_scale_128x4 == 0) return {c.n, cols};
  return {ceil_div(c.n, 128) * 128, ceil_div(cols, 4) * 4};
}

LinearWeightSource to_source(const tw_linear_weight_source& given) {
  const char* const function = "tw_linear_weight_prepare";
  const auto& c = c_api::checked(&given, function, "source", "tw_linear_weight_source_init");
  require(c.format >= TW_WEIGHT_BF16 && c.format <= TW_WEIGHT_NVFP4, ErrorKind::kInvalidArgument,
          "{}: source.format = {}; expected a tw_weight_format, 0 to 3", function, c.format);
  require(c.n >= 0 && c.k >= 0, ErrorKind::kInvalidArgument,
          "{}: n = {}, k = {}; expected multiples of 16", function, c.n, c.k);
  LinearWeightSource s;
  s.scale_order = c.is_scale_128x4 != 0 ? ScaleOrder::k128x4 : ScaleOrder::kPlain;
  if (c.global_scale != 0) s.global_scale = c.global_scale;
  s.is_global_scale_reciprocal = c.is_global_scale_reciprocal != 0;
  s.accepts_any_global_scale = c.accepts_any_global_scale != 0;
  switch (c.format) {
    case TW_WEIGHT_BF16:
      s.format = WeightFormat::kBf16;
      s.values = contiguous_view(c.values, DType::kBF16, {c.n, c.k});
      return s;
    case TW_WEIGHT_FP8:
      s.format = WeightFormat::kFp8;
      s.values = contiguous_view(c.values, DType::kF8_E4M3, {c.n, c.k});
      s.scales = contiguous_view(c.scales, c.scale_dtype == TW_E8M0 ? DType::kF8_E8M0 : DType::kF32,
                                 {ceil_div(c.n, 128), ceil_div(c.k, 128)});
      return s;
    case TW_WEIGHT_MXFP4:
      s.format = WeightFormat::kMxfp4;
      s.scales = contiguous_view(c.scales, DType::kF8_E8M0, scale_shape(c, 32));
      break;
    default:
      s.format = WeightFormat::kNvfp4;
      s.scales = contiguous_view(c.scales, DType::kF8_E4M3, scale_shape(c, 16));
  }
  s.values = contiguous_view(c.values, DType::kF4, {c.n, c.k});
  return s;
}

LinearProblem to_problem(const tw_linear_problem& c) {
  const char* const function = "tw_linear_create";
  require(c.x_dtype == TW_BF16 || c.x_dtype == TW_E4M3, ErrorKind::kInvalidArgument,
          "{}: problem.x_dtype = {}; expected TW_BF16 = 0 or TW_E4M3 = 3", function, c.x_dtype);
  require(c.out_dtype == TW_BF16 || c.out_dtype == TW_F32, ErrorKind::kInvalidArgument,
          "{}: problem.out_dtype = {}; expected TW_BF16 = 0 or TW_F32 = 2", function, c.out_dtype);
  require(c.activation_scales >= 0 && c.activation_scales <= 2, ErrorKind::kInvalidArgument,
          "{}: problem.activation_scales = {}; expected 0, 1 or 2", function, c.activation_scales);
  LinearProblem p;
  p.m = c.m;
  p.activation_scales = static_cast<tilewright::ActivationScales>(c.activation_scales);
  p.x_dtype = c.x_dtype == TW_E4M3 ? DType::kF8_E4M3 : DType::kBF16;
  p.out_dtype = c.out_dtype == TW_F32 ? DType::kF32 : DType::kBF16;
  p.has_bias = c.has_bias != 0;
  p.x_stride = c.x_stride;
  p.out_stride = c.out_stride;
  if (c.kernel != nullptr) p.kernel = c.kernel;
  return p;
}

}  // namespace

tilewright::LinearWeightSource tilewright::c_api::to_weight_source(
    const tw_linear_weight_source& source) {
  return to_source(source);
}

void tw_linear_weight_source_init(tw_linear_weight_source* source) {
  tw_linear_weight_source defaults = {};
  defaults.format = TW_WEIGHT_NVFP4;
  defaults.scale_dtype = TW_F32;
  c_api::initialise(source, defaults);
}

tw_status tw_linear_weight_prepare(const tw_device* device, const tw_linear_weight_source* source,
                                   tw_linear_weight** weight) {
  const char* const function = "tw_linear_weight_prepare";
  return c_api::create(function, "weight", weight, [&] {
    c_api::require_address(device, function, "device");
    c_api::require_address(source, function, "source");
    require(source->activations == TW_ACTIVATIONS_BF16 || source->activations == TW_ACTIVATIONS_FP8,
            ErrorKind::kInvalidArgument, "{}: source.activations = {}; expected 0 or 1", function,
            source->activations);
    const auto activations = source->activations == TW_ACTIVATIONS_FP8
                                 ? tilewright::LinearActivations::kFp8
                                 : tilewright::LinearActivations::kBf16;
    return tilewright::LinearWeight::prepare(device->device, to_source(*source), activations);
  });
}

void tw_linear_weight_destroy(tw_linear_weight* weight) {
  delete weight;
}

size_t tw_linear_weight_bytes(const tw_linear_weight* weight) {
  return weight == nullptr ? 0 : weight->weight.bytes();
}

void tw_linear_problem_init(tw_linear_problem* problem) {
  c_api::initialise(problem);
}

tw_status tw_linear_create(const tw_linear_weight* weight, const tw_linear_problem* problem,
                           tw_linear** linear) {
  const char* const function = "tw_linear_create";
  return c_api::create(function, "linear", linear, [&] {
    c_api::require_address(weight, function, "weight");
    return tilewright::Linear(
        weight->weight,
        to_problem(c_api::checked(problem, function, "problem", "tw_linear_problem_init")));
  });
}

void tw_linear_destroy(tw_linear* linear) {
  delete linear;
}

const char* tw_linear_plan_text(const tw_linear* linear) {
  return c_api::plan_text(linear);
}

const char* tw_linear_kernel(const tw_linear* linear) {
  return c_api::kernel_name(linear);
}

size_t tw_linear_workspace_bytes(const tw_linear* linear) {
  return c_api::of_plan(linear, &tilewright::LinearPlan::workspace_bytes);
}

double tw_linear_flops(const tw_linear* linear) {
  return c_api::of_plan(linear, &tilewright::LinearPlan::flops);
}

double tw_linear_bytes(const tw_linear* linear) {
  return c_api::of_plan(linear, &tilewright::LinearPlan::bytes);
}

tw_status tw_linear_run(const tw_linear* linear, const tw_linear_arguments* arguments) {
  return c_api::run("tw_linear_run", "linear", linear, arguments,
                    [](const tilewright::Linear& op, const tw_linear_arguments& a) {
                      op.run({a.x, a.x_scales, a.bias, a.out, a.workspace, a.stream});
                    });
}
