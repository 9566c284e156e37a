// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, moe: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/moe.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_moe_weights_source> {
  static constexpr const char* kName = "tw_moe_weights_source";
  static constexpr Shape kShape = {kName, sizeof(tw_moe_weights_source), {}};
  static tw_moe_weights_source defaults() {
    tw_moe_weights_source c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_moe_weights_info> {
  using Cpp = MoeWeightsInfo;
  static constexpr const char* kName = "tw_moe_weights_info";
  static constexpr Shape kShape = {kName, sizeof(tw_moe_weights_info), {}};
  static tw_moe_weights_info defaults() {
    tw_moe_weights_info c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_NVFP4;
    return c;
  }
};

inline void assign(const tw_moe_weights_info& c, MoeWeightsInfo& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_BF16, NumberFormat::kBf16, "TW_NUMBER_FORMAT_BF16"}, {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}, {TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"}, {TW_NUMBER_FORMAT_NVFP4, NumberFormat::kNvfp4, "TW_NUMBER_FORMAT_NVFP4"}}, at, "format");
  p.activations = choose<LinearActivations>(c.activations, {{TW_LINEAR_ACTIVATIONS_BF16, LinearActivations::kBf16, "TW_LINEAR_ACTIVATIONS_BF16"}, {TW_LINEAR_ACTIVATIONS_FP8, LinearActivations::kFp8, "TW_LINEAR_ACTIVATIONS_FP8"}, {TW_LINEAR_ACTIVATIONS_BLOCK_SCALED, LinearActivations::kBlockScaled, "TW_LINEAR_ACTIVATIONS_BLOCK_SCALED"}}, at, "activations");
  p.experts = c.experts;
  p.hidden = c.hidden;
  p.inter = c.inter;
  p.has_shared = c.has_shared != 0;
}

template <>
struct Version<tw_moe_problem> {
  using Cpp = MoeProblem;
  static constexpr const char* kName = "tw_moe_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_moe_problem), {}};
  static tw_moe_problem defaults() {
    tw_moe_problem c = {};
    c.struct_bytes = sizeof c;
    c.normalize = 1;
    c.route_scale = 1;
    return c;
  }
};

inline void assign(const tw_moe_problem& c, MoeProblem& p, const Where& at) {
  p.tokens = c.tokens;
  p.topk = c.topk;
  p.routing = choose<MoeRouting>(c.routing, {{TW_MOE_ROUTING_GIVEN, MoeRouting::kGiven, "TW_MOE_ROUTING_GIVEN"}, {TW_MOE_ROUTING_LOGITS, MoeRouting::kLogits, "TW_MOE_ROUTING_LOGITS"}, {TW_MOE_ROUTING_HASH, MoeRouting::kHash, "TW_MOE_ROUTING_HASH"}, {TW_MOE_ROUTING_GROUPED, MoeRouting::kGrouped, "TW_MOE_ROUTING_GROUPED"}, {TW_MOE_ROUTING_CONTIGUOUS, MoeRouting::kContiguous, "TW_MOE_ROUTING_CONTIGUOUS"}, {TW_MOE_ROUTING_SINGLE, MoeRouting::kSingle, "TW_MOE_ROUTING_SINGLE"}}, at, "routing");
  p.score = choose<MoeScore>(c.score, {{TW_MOE_SCORE_SOFTMAX, MoeScore::kSoftmax, "TW_MOE_SCORE_SOFTMAX"}, {TW_MOE_SCORE_SQRT_SOFTPLUS, MoeScore::kSqrtSoftplus, "TW_MOE_SCORE_SQRT_SOFTPLUS"}}, at, "score");
  p.normalize = c.normalize != 0;
  p.has_bias = c.has_bias != 0;
  p.route_scale = c.route_scale;
  p.vocab = c.vocab;
  p.logits_stride = c.logits_stride;
  if (c.swiglu_limit != 0) p.swiglu_limit = c.swiglu_limit;
  p.weight_after_down = c.weight_after_down != 0;
  p.out_dtype = choose<DType>(c.out_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "out_dtype");
  if (c.kernel != nullptr) p.kernel = c.kernel;
  p.expected_tokens = c.expected_tokens;
  p.all_experts = c.all_experts;
  p.first_expert = c.first_expert;
}

template <>
struct Version<tw_moe_arguments> {
  using Cpp = MoeArguments;
  static constexpr const char* kName = "tw_moe_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_moe_arguments), {}};
  static tw_moe_arguments defaults() {
    tw_moe_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_moe_arguments& c, MoeArguments& p, const Where&) {
  p.x = c.x;
  p.ids = c.ids;
  p.weights = c.weights;
  p.logits = c.logits;
  p.bias = c.bias;
  p.token_ids = c.token_ids;
  p.table = c.table;
  p.out = c.out;
  p.workspace = c.workspace;
  p.stream = c.stream;
  p.counts = c.counts;
}

}  // namespace tilewright::c_api
