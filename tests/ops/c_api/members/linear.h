// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, linear, under their names in C.
#pragma once

#include "ops/c_api/convert/linear.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_linear_weight_info(const LinearWeightInfo& x, const LinearWeightInfo& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.activations != y.activations) found.push_back("activations");
  if (x.n != y.n) found.push_back("n");
  if (x.k != y.k) found.push_back("k");
  if (x.groups != y.groups) found.push_back("groups");
  return found;
}

inline Changes changed_tw_linear_problem(const LinearProblem& x, const LinearProblem& y) {
  Changes found;
  if (x.m != y.m) found.push_back("m");
  if (x.x_dtype != y.x_dtype) found.push_back("x_dtype");
  if (x.activation_scales != y.activation_scales) found.push_back("activation_scales");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.has_bias != y.has_bias) found.push_back("has_bias");
  if (x.x_stride != y.x_stride) found.push_back("x_stride");
  if (x.out_stride != y.out_stride) found.push_back("out_stride");
  if (x.kernel != y.kernel) found.push_back("kernel");
  return found;
}

inline Changes changed_tw_linear_arguments(const LinearArguments& x, const LinearArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.x_scales != y.x_scales) found.push_back("x_scales");
  if (x.bias != y.bias) found.push_back("bias");
  if (x.out != y.out) found.push_back("out");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_block_scaled_weight_info(const BlockScaledWeightInfo& x, const BlockScaledWeightInfo& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.n != y.n) found.push_back("n");
  if (x.k != y.k) found.push_back("k");
  if (x.is_gate_up != y.is_gate_up) found.push_back("is_gate_up");
  return found;
}

inline Changes changed_tw_block_scaled_problem(const BlockScaledProblem& x, const BlockScaledProblem& y) {
  Changes found;
  if (x.m != y.m) found.push_back("m");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.x_row_bytes != y.x_row_bytes) found.push_back("x_row_bytes");
  if (x.out_row_bytes != y.out_row_bytes) found.push_back("out_row_bytes");
  if (x.kernel != y.kernel) found.push_back("kernel");
  if (x.swiglu_limit != y.swiglu_limit) found.push_back("swiglu_limit");
  return found;
}

inline Changes changed_tw_block_scaled_arguments(const BlockScaledArguments& x, const BlockScaledArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.x_scales != y.x_scales) found.push_back("x_scales");
  if (x.out != y.out) found.push_back("out");
  if (x.out_scales != y.out_scales) found.push_back("out_scales");
  if (x.x_tensor_scale != y.x_tensor_scale) found.push_back("x_tensor_scale");
  if (x.out_encode_scale != y.out_encode_scale) found.push_back("out_encode_scale");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
