// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, hyper connection: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_hyper_connection_problem> {
  using Cpp = HyperConnectionProblem;
  static constexpr const char* kName = "tw_hyper_connection_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_hyper_connection_problem), {}};
  static tw_hyper_connection_problem defaults() {
    tw_hyper_connection_problem c = {};
    c.struct_bytes = sizeof c;
    c.has_mix = 1;
    c.iterations = 20;
    c.eps = 1e-6;
    c.norm_eps = 1e-6;
    return c;
  }
};

inline void assign(const tw_hyper_connection_problem& c, HyperConnectionProblem& p, const Where& at) {
  p.tokens = c.tokens;
  p.hidden = c.hidden;
  p.stream_dtype = choose<DType>(c.stream_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "stream_dtype");
  p.has_merge = c.has_merge != 0;
  p.has_second = c.has_second != 0;
  p.has_mix = c.has_mix != 0;
  p.is_head = c.is_head != 0;
  p.result_dtype = choose<DType>(c.result_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "result_dtype");
  p.second_dtype = choose<DType>(c.second_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "second_dtype");
  p.iterations = c.iterations;
  p.eps = c.eps;
  p.norm_eps = c.norm_eps;
}

template <>
struct Version<tw_hyper_connection_arguments> {
  using Cpp = HyperConnectionArguments;
  static constexpr const char* kName = "tw_hyper_connection_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_hyper_connection_arguments), {}};
  static tw_hyper_connection_arguments defaults() {
    tw_hyper_connection_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_hyper_connection_arguments& c, HyperConnectionArguments& p, const Where&) {
  p.streams = c.streams;
  p.merged = c.merged;
  p.mix_before = c.mix_before;
  p.result = c.result;
  p.second_result = c.second_result;
  p.mix_weight = c.mix_weight;
  p.mix_bias = c.mix_bias;
  p.mix_scale = c.mix_scale;
  p.norm_weight = c.norm_weight;
  p.mix = c.mix;
  p.out = c.out;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

template <>
struct Version<tw_hyper_embedding_problem> {
  using Cpp = HyperEmbeddingProblem;
  static constexpr const char* kName = "tw_hyper_embedding_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_hyper_embedding_problem), {}};
  static tw_hyper_embedding_problem defaults() {
    tw_hyper_embedding_problem c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_hyper_embedding_problem& c, HyperEmbeddingProblem& p, const Where& at) {
  p.tokens = c.tokens;
  p.hidden = c.hidden;
  p.vocab = c.vocab;
  p.stream_dtype = choose<DType>(c.stream_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "stream_dtype");
}

template <>
struct Version<tw_hyper_embedding_arguments> {
  using Cpp = HyperEmbeddingArguments;
  static constexpr const char* kName = "tw_hyper_embedding_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_hyper_embedding_arguments), {}};
  static tw_hyper_embedding_arguments defaults() {
    tw_hyper_embedding_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_hyper_embedding_arguments& c, HyperEmbeddingArguments& p, const Where&) {
  p.table = c.table;
  p.ids = c.ids;
  p.streams = c.streams;
  p.stream = c.stream;
}

template <>
struct Version<tw_rms_norm_problem> {
  using Cpp = RmsNormProblem;
  static constexpr const char* kName = "tw_rms_norm_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_rms_norm_problem), {}};
  static tw_rms_norm_problem defaults() {
    tw_rms_norm_problem c = {};
    c.struct_bytes = sizeof c;
    c.has_weight = 1;
    c.eps = 1e-6;
    return c;
  }
};

inline void assign(const tw_rms_norm_problem& c, RmsNormProblem& p, const Where& at) {
  p.rows = c.rows;
  p.cols = c.cols;
  p.x_dtype = choose<DType>(c.x_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "x_dtype");
  p.x_stride = c.x_stride;
  p.out_stride = c.out_stride;
  p.has_weight = c.has_weight != 0;
  p.eps = c.eps;
}

template <>
struct Version<tw_rms_norm_arguments> {
  using Cpp = RmsNormArguments;
  static constexpr const char* kName = "tw_rms_norm_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_rms_norm_arguments), {}};
  static tw_rms_norm_arguments defaults() {
    tw_rms_norm_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_rms_norm_arguments& c, RmsNormArguments& p, const Where&) {
  p.x = c.x;
  p.weight = c.weight;
  p.out = c.out;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
