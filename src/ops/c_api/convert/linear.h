// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, linear: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/block_scaled_linear.h"
#include "tilewright/linear.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_linear_weight_source> {
  static constexpr const char* kName = "tw_linear_weight_source";
  static constexpr Shape kShape = {kName, sizeof(tw_linear_weight_source), {}};
  static tw_linear_weight_source defaults() {
    tw_linear_weight_source c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_NVFP4;
    c.scale_dtype = TW_F32;
    c.groups = 1;
    return c;
  }
};

template <>
struct Version<tw_linear_weight_info> {
  using Cpp = LinearWeightInfo;
  static constexpr const char* kName = "tw_linear_weight_info";
  static constexpr Shape kShape = {kName, sizeof(tw_linear_weight_info), {}};
  static tw_linear_weight_info defaults() {
    tw_linear_weight_info c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_NVFP4;
    c.groups = 1;
    return c;
  }
};

inline void assign(const tw_linear_weight_info& c, LinearWeightInfo& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_BF16, NumberFormat::kBf16, "TW_NUMBER_FORMAT_BF16"}, {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}, {TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"}, {TW_NUMBER_FORMAT_NVFP4, NumberFormat::kNvfp4, "TW_NUMBER_FORMAT_NVFP4"}}, at, "format");
  p.activations = choose<LinearActivations>(c.activations, {{TW_LINEAR_ACTIVATIONS_BF16, LinearActivations::kBf16, "TW_LINEAR_ACTIVATIONS_BF16"}, {TW_LINEAR_ACTIVATIONS_FP8, LinearActivations::kFp8, "TW_LINEAR_ACTIVATIONS_FP8"}, {TW_LINEAR_ACTIVATIONS_BLOCK_SCALED, LinearActivations::kBlockScaled, "TW_LINEAR_ACTIVATIONS_BLOCK_SCALED"}}, at, "activations");
  p.n = c.n;
  p.k = c.k;
  p.groups = c.groups;
}

template <>
struct Version<tw_linear_problem> {
  using Cpp = LinearProblem;
  static constexpr const char* kName = "tw_linear_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_linear_problem), {}};
  static tw_linear_problem defaults() {
    tw_linear_problem c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_linear_problem& c, LinearProblem& p, const Where& at) {
  p.m = c.m;
  p.x_dtype = choose<DType>(c.x_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "x_dtype");
  p.activation_scales = choose<ScaleSharing>(c.activation_scales, {{TW_SCALE_SHARING_AUTO, ScaleSharing::kAuto, "TW_SCALE_SHARING_AUTO"}, {TW_SCALE_SHARING_ROW, ScaleSharing::kRow, "TW_SCALE_SHARING_ROW"}, {TW_SCALE_SHARING_BLOCK, ScaleSharing::kBlock, "TW_SCALE_SHARING_BLOCK"}}, at, "activation_scales");
  p.out_dtype = choose<DType>(c.out_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "out_dtype");
  p.has_bias = c.has_bias != 0;
  p.x_stride = c.x_stride;
  p.out_stride = c.out_stride;
  if (c.kernel != nullptr) p.kernel = c.kernel;
}

template <>
struct Version<tw_linear_arguments> {
  using Cpp = LinearArguments;
  static constexpr const char* kName = "tw_linear_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_linear_arguments), {}};
  static tw_linear_arguments defaults() {
    tw_linear_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_linear_arguments& c, LinearArguments& p, const Where&) {
  p.x = c.x;
  p.x_scales = c.x_scales;
  p.bias = c.bias;
  p.out = c.out;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

template <>
struct Version<tw_block_scaled_weight_info> {
  using Cpp = BlockScaledWeightInfo;
  static constexpr const char* kName = "tw_block_scaled_weight_info";
  static constexpr Shape kShape = {kName, sizeof(tw_block_scaled_weight_info), {}};
  static tw_block_scaled_weight_info defaults() {
    tw_block_scaled_weight_info c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_NVFP4;
    return c;
  }
};

inline void assign(const tw_block_scaled_weight_info& c, BlockScaledWeightInfo& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_BF16, NumberFormat::kBf16, "TW_NUMBER_FORMAT_BF16"}, {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}, {TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"}, {TW_NUMBER_FORMAT_NVFP4, NumberFormat::kNvfp4, "TW_NUMBER_FORMAT_NVFP4"}}, at, "format");
  p.n = c.n;
  p.k = c.k;
  p.is_gate_up = c.is_gate_up != 0;
}

template <>
struct Version<tw_block_scaled_problem> {
  using Cpp = BlockScaledProblem;
  static constexpr const char* kName = "tw_block_scaled_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_block_scaled_problem), {}};
  static tw_block_scaled_problem defaults() {
    tw_block_scaled_problem c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_block_scaled_problem& c, BlockScaledProblem& p, const Where& at) {
  p.m = c.m;
  p.out_dtype = choose<DType>(c.out_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F4, DType::kF4, "TW_F4"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "out_dtype");
  p.x_row_bytes = c.x_row_bytes;
  p.out_row_bytes = c.out_row_bytes;
  if (c.kernel != nullptr) p.kernel = c.kernel;
  if (c.swiglu_limit != 0) p.swiglu_limit = c.swiglu_limit;
}

template <>
struct Version<tw_block_scaled_arguments> {
  using Cpp = BlockScaledArguments;
  static constexpr const char* kName = "tw_block_scaled_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_block_scaled_arguments), {}};
  static tw_block_scaled_arguments defaults() {
    tw_block_scaled_arguments c = {};
    c.struct_bytes = sizeof c;
    c.x_tensor_scale = 1;
    c.out_encode_scale = 1;
    return c;
  }
};

inline void assign(const tw_block_scaled_arguments& c, BlockScaledArguments& p, const Where&) {
  p.x = c.x;
  p.x_scales = c.x_scales;
  p.out = c.out;
  p.out_scales = c.out_scales;
  p.x_tensor_scale = c.x_tensor_scale;
  p.out_encode_scale = c.out_encode_scale;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
