// Weights of linear layers and of experts: addresses and sizes become views.
#include "ops/c_api/operator.h"
#include "ops/operator/ceil_div.h"

#include <cstdint>
#include <string>
#include <vector>

namespace c_api = tilewright::c_api;

namespace {

using c_api::choose;
using c_api::Where;
using tilewright::contiguous_view;
using tilewright::DType;
using tilewright::ErrorKind;
using tilewright::LinearActivations;
using tilewright::LinearWeightSource;
using tilewright::NumberFormat;
using tilewright::require;
using tilewright::ScaleOrder;
using tilewright::ops::ceil_div;

LinearActivations to_activations(const tw_linear_weight_source& c, const Where& at) {
  return choose<LinearActivations>(
      c.activations,
      {{TW_LINEAR_ACTIVATIONS_BF16, LinearActivations::kBf16, "TW_LINEAR_ACTIVATIONS_BF16"},
       {TW_LINEAR_ACTIVATIONS_FP8, LinearActivations::kFp8, "TW_LINEAR_ACTIVATIONS_FP8"},
       {TW_LINEAR_ACTIVATIONS_BLOCK_SCALED, LinearActivations::kBlockScaled,
        "TW_LINEAR_ACTIVATIONS_BLOCK_SCALED"}},
      at, "activations");
}

NumberFormat to_format(const tw_linear_weight_source& c, const Where& at) {
  return choose<NumberFormat>(
      c.format,
      {{TW_NUMBER_FORMAT_BF16, NumberFormat::kBf16, "TW_NUMBER_FORMAT_BF16"},
       {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"},
       {TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"},
       {TW_NUMBER_FORMAT_NVFP4, NumberFormat::kNvfp4, "TW_NUMBER_FORMAT_NVFP4"}},
      at, "format");
}

// The shape of one-byte scales [n, k / group], padded if they are in 128x4 order.
std::vector<std::int64_t> scale_shape(const tw_linear_weight_source& c, ScaleOrder order,
                                      std::int64_t group) {
  const std::int64_t cols = c.k / group;
  if (order == ScaleOrder::kPlain) return {c.n, cols};
  return {ceil_div(c.n, 128) * 128, ceil_div(cols, 4) * 4};
}

void set_views(const tw_linear_weight_source& c, const Where& at, LinearWeightSource& s) {
  switch (s.format) {
    case NumberFormat::kBf16:
      s.values = contiguous_view(c.values, DType::kBF16, {c.n, c.k});
      return;
    case NumberFormat::kFp8: {
      const DType dtype = choose<DType>(
          c.scale_dtype, {{TW_F32, DType::kF32, "TW_F32"}, {TW_E8M0, DType::kF8_E8M0, "TW_E8M0"}},
          at, "scale_dtype");
      s.values = contiguous_view(c.values, DType::kF8_E4M3, {c.n, c.k});
      s.scales = contiguous_view(c.scales, dtype, {ceil_div(c.n, 128), ceil_div(c.k, 128)});
      return;
    }
    case NumberFormat::kMxfp4:
      s.scales = contiguous_view(c.scales, DType::kF8_E8M0, scale_shape(c, s.scale_order, 32));
      break;
    case NumberFormat::kNvfp4:
      s.scales = contiguous_view(c.scales, DType::kF8_E4M3, scale_shape(c, s.scale_order, 16));
      break;
  }
  s.values = contiguous_view(c.values, DType::kF4, {c.n, c.k});
}

LinearWeightSource to_source(const tw_linear_weight_source& c, const Where& at) {
  require(c.n >= 0 && c.k >= 0, ErrorKind::kInvalidArgument,
          "{}: n = {}, k = {}; expected multiples of 16", at.function, c.n, c.k);
  LinearWeightSource s;
  s.format = to_format(c, at);
  s.scale_order =
      choose<ScaleOrder>(c.scale_order,
                         {{TW_SCALE_ORDER_PLAIN, ScaleOrder::kPlain, "TW_SCALE_ORDER_PLAIN"},
                          {TW_SCALE_ORDER_128X4, ScaleOrder::k128x4, "TW_SCALE_ORDER_128X4"}},
                         at, "scale_order");
  if (c.global_scale != 0) s.global_scale = c.global_scale;
  s.is_global_scale_reciprocal = c.is_global_scale_reciprocal != 0;
  s.accepts_any_global_scale = c.accepts_any_global_scale != 0;
  s.groups = c.groups;
  if (c.up_values != nullptr) {
    tw_linear_weight_source up = c;
    up.values = c.up_values, up.scales = c.up_scales;
    set_views(up, at, s);
    s.up_values = s.values, s.up_scales = s.scales;
  }
  set_views(c, at, s);
  return s;
}

// Experts lie one behind the other as the caller's header has them, which may be smaller or larger
// than ours.
std::vector<LinearWeightSource> to_sources(const tw_linear_weight_source* first, const Where& at,
                                           std::int64_t count) {
  c_api::require_address(first, at.function, at.path().c_str());
  const auto* const begin = reinterpret_cast<const std::byte*>(first);
  std::vector<LinearWeightSource> sources;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* const expert = begin + static_cast<std::size_t>(i) * first->struct_bytes;
    const auto* const given = reinterpret_cast<const tw_linear_weight_source*>(expert);
    const tw_linear_weight_source ours = c_api::accept(given, at);
    require(given->struct_bytes == first->struct_bytes, ErrorKind::kInvalidArgument,
            "{}: {}[{}].struct_bytes = {}, but that of the first is {}", at.function, at.path(), i,
            given->struct_bytes, first->struct_bytes);
    sources.push_back(to_source(ours, at));
  }
  return sources;
}

tilewright::MoeWeightsSource to_experts(const tw_moe_weights_source& c, const Where& at) {
  require(c.experts >= 1 && c.experts <= 384, ErrorKind::kInvalidArgument,
          "{}: source.experts = {}; expected 1 to 384", at.function, c.experts);
  tilewright::MoeWeightsSource s;
  s.gate = to_sources(c.gate, at.in("gate"), c.experts);
  s.up = to_sources(c.up, at.in("up"), c.experts);
  s.down = to_sources(c.down, at.in("down"), c.experts);
  if (c.shared_gate == nullptr) return s;
  s.shared_gate = to_sources(c.shared_gate, at.in("shared_gate"), 1);
  s.shared_up = to_sources(c.shared_up, at.in("shared_up"), 1);
  s.shared_down = to_sources(c.shared_down, at.in("shared_down"), 1);
  return s;
}

}  // namespace

tw_status tw_linear_weight_prepare(const tw_device* device, const tw_linear_weight_source* source,
                                   tw_linear_weight** weight) {
  const Where at = {"tw_linear_weight_prepare", "source"};
  return c_api::create(at.function, "weight", weight, [&] {
    c_api::require_address(device, at.function, "device");
    const tw_linear_weight_source given = c_api::accept(source, at);
    return tilewright::LinearWeight::prepare(device->device, to_source(given, at),
                                             to_activations(given, at));
  });
}

void tw_linear_weight_destroy(tw_linear_weight* weight) {
  delete weight;
}

size_t tw_linear_weight_bytes(const tw_linear_weight* weight) {
  return weight == nullptr ? 0 : weight->weight.bytes();
}

tw_status tw_block_scaled_weight_prepare(const tw_device* device,
                                         const tw_linear_weight_source* source,
                                         tw_block_scaled_weight** weight) {
  const Where at = {"tw_block_scaled_weight_prepare", "source"};
  return c_api::create(at.function, "weight", weight, [&] {
    c_api::require_address(device, at.function, "device");
    return tilewright::BlockScaledWeight::prepare(device->device,
                                                  to_source(c_api::accept(source, at), at));
  });
}

void tw_block_scaled_weight_destroy(tw_block_scaled_weight* weight) {
  delete weight;
}

size_t tw_block_scaled_weight_bytes(const tw_block_scaled_weight* weight) {
  return weight == nullptr ? 0 : weight->weight.bytes();
}

tw_status tw_moe_weights_prepare(const tw_device* device, const tw_moe_weights_source* source,
                                 tw_moe_weights** weights) {
  const Where at = {"tw_moe_weights_prepare", "source"};
  return c_api::create(at.function, "weights", weights, [&] {
    c_api::require_address(device, at.function, "device");
    const tw_moe_weights_source given = c_api::accept(source, at);
    const tilewright::MoeWeightsSource experts = to_experts(given, at);
    const Where gate = at.in("gate");
    return tilewright::MoeWeights::prepare(device->device, experts,
                                           to_activations(c_api::accept(given.gate, gate), gate));
  });
}

void tw_moe_weights_destroy(tw_moe_weights* weights) {
  delete weights;
}

size_t tw_moe_weights_bytes(const tw_moe_weights* weights) {
  return weights == nullptr ? 0 : weights->weights.bytes();
}
