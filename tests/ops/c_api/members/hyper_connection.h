// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, hyper connection, under their names in C.
#pragma once

#include "ops/c_api/convert/hyper_connection.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_hyper_connection_problem(const HyperConnectionProblem& x, const HyperConnectionProblem& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.hidden != y.hidden) found.push_back("hidden");
  if (x.stream_dtype != y.stream_dtype) found.push_back("stream_dtype");
  if (x.has_merge != y.has_merge) found.push_back("has_merge");
  if (x.has_second != y.has_second) found.push_back("has_second");
  if (x.has_mix != y.has_mix) found.push_back("has_mix");
  if (x.is_head != y.is_head) found.push_back("is_head");
  if (x.result_dtype != y.result_dtype) found.push_back("result_dtype");
  if (x.second_dtype != y.second_dtype) found.push_back("second_dtype");
  if (x.iterations != y.iterations) found.push_back("iterations");
  if (x.eps != y.eps) found.push_back("eps");
  if (x.norm_eps != y.norm_eps) found.push_back("norm_eps");
  return found;
}

inline Changes changed_tw_hyper_connection_arguments(const HyperConnectionArguments& x, const HyperConnectionArguments& y) {
  Changes found;
  if (x.streams != y.streams) found.push_back("streams");
  if (x.merged != y.merged) found.push_back("merged");
  if (x.mix_before != y.mix_before) found.push_back("mix_before");
  if (x.result != y.result) found.push_back("result");
  if (x.second_result != y.second_result) found.push_back("second_result");
  if (x.mix_weight != y.mix_weight) found.push_back("mix_weight");
  if (x.mix_bias != y.mix_bias) found.push_back("mix_bias");
  if (x.mix_scale != y.mix_scale) found.push_back("mix_scale");
  if (x.norm_weight != y.norm_weight) found.push_back("norm_weight");
  if (x.mix != y.mix) found.push_back("mix");
  if (x.out != y.out) found.push_back("out");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_hyper_embedding_problem(const HyperEmbeddingProblem& x, const HyperEmbeddingProblem& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.hidden != y.hidden) found.push_back("hidden");
  if (x.vocab != y.vocab) found.push_back("vocab");
  if (x.stream_dtype != y.stream_dtype) found.push_back("stream_dtype");
  return found;
}

inline Changes changed_tw_hyper_embedding_arguments(const HyperEmbeddingArguments& x, const HyperEmbeddingArguments& y) {
  Changes found;
  if (x.table != y.table) found.push_back("table");
  if (x.ids != y.ids) found.push_back("ids");
  if (x.streams != y.streams) found.push_back("streams");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_rms_norm_problem(const RmsNormProblem& x, const RmsNormProblem& y) {
  Changes found;
  if (x.rows != y.rows) found.push_back("rows");
  if (x.cols != y.cols) found.push_back("cols");
  if (x.x_dtype != y.x_dtype) found.push_back("x_dtype");
  if (x.x_stride != y.x_stride) found.push_back("x_stride");
  if (x.out_stride != y.out_stride) found.push_back("out_stride");
  if (x.has_weight != y.has_weight) found.push_back("has_weight");
  if (x.eps != y.eps) found.push_back("eps");
  return found;
}

inline Changes changed_tw_rms_norm_arguments(const RmsNormArguments& x, const RmsNormArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.weight != y.weight) found.push_back("weight");
  if (x.out != y.out) found.push_back("out");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
