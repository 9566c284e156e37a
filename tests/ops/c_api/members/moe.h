// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, moe, under their names in C.
#pragma once

#include "ops/c_api/convert/moe.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_moe_weights_info(const MoeWeightsInfo& x, const MoeWeightsInfo& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.activations != y.activations) found.push_back("activations");
  if (x.experts != y.experts) found.push_back("experts");
  if (x.hidden != y.hidden) found.push_back("hidden");
  if (x.inter != y.inter) found.push_back("inter");
  if (x.has_shared != y.has_shared) found.push_back("has_shared");
  return found;
}

inline Changes changed_tw_moe_problem(const MoeProblem& x, const MoeProblem& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.topk != y.topk) found.push_back("topk");
  if (x.routing != y.routing) found.push_back("routing");
  if (x.score != y.score) found.push_back("score");
  if (x.normalize != y.normalize) found.push_back("normalize");
  if (x.has_bias != y.has_bias) found.push_back("has_bias");
  if (x.route_scale != y.route_scale) found.push_back("route_scale");
  if (x.vocab != y.vocab) found.push_back("vocab");
  if (x.logits_stride != y.logits_stride) found.push_back("logits_stride");
  if (x.swiglu_limit != y.swiglu_limit) found.push_back("swiglu_limit");
  if (x.weight_after_down != y.weight_after_down) found.push_back("weight_after_down");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.kernel != y.kernel) found.push_back("kernel");
  if (x.expected_tokens != y.expected_tokens) found.push_back("expected_tokens");
  if (x.all_experts != y.all_experts) found.push_back("all_experts");
  if (x.first_expert != y.first_expert) found.push_back("first_expert");
  return found;
}

inline Changes changed_tw_moe_arguments(const MoeArguments& x, const MoeArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.ids != y.ids) found.push_back("ids");
  if (x.weights != y.weights) found.push_back("weights");
  if (x.logits != y.logits) found.push_back("logits");
  if (x.bias != y.bias) found.push_back("bias");
  if (x.token_ids != y.token_ids) found.push_back("token_ids");
  if (x.table != y.table) found.push_back("table");
  if (x.out != y.out) found.push_back("out");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  if (x.counts != y.counts) found.push_back("counts");
  return found;
}

}  // namespace tilewright::c_api
