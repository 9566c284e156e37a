// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every struct of the C interface: its shape, its defaults, and what it means in C++.
#pragma once

#include "tilewright/attention.h"
#include "tilewright/attention_decode.h"
#include "tilewright/attention_prepare.h"
#include "tilewright/block_scaled_linear.h"
#include "tilewright/cache_writer.h"
#include "tilewright/compressor.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/indexer.h"
#include "tilewright/linear.h"
#include "tilewright/moe.h"
#include "tilewright/quantize.h"
#include "tilewright/sparse_attention.h"
#include "tilewright/tilewright.h"
#include "ops/c_api/versions.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_reason> {
  static constexpr const char* kName = "tw_reason";
  static constexpr Shape kShape = {kName, sizeof(tw_reason), {}};
  static tw_reason defaults() {
    tw_reason c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_candidate> {
  static constexpr const char* kName = "tw_candidate";
  static constexpr Shape kShape = {kName, sizeof(tw_candidate), {}};
  static tw_candidate defaults() {
    tw_candidate c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_launch> {
  static constexpr const char* kName = "tw_launch";
  static constexpr Shape kShape = {kName, sizeof(tw_launch), {}};
  static tw_launch defaults() {
    tw_launch c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_strides> {
  using Cpp = Strides;
  static constexpr const char* kName = "tw_strides";
  static constexpr Shape kShape = {kName, sizeof(tw_strides), {}};
  static tw_strides defaults() {
    tw_strides c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_strides& c, Strides& p, const Where&) {
  p.batch = c.batch;
  p.row = c.row;
  p.head = c.head;
}

template <>
struct Version<tw_fp8_options> {
  using Cpp = Fp8Options;
  static constexpr const char* kName = "tw_fp8_options";
  static constexpr Shape kShape = {kName, sizeof(tw_fp8_options), {}};
  static tw_fp8_options defaults() {
    tw_fp8_options c = {};
    c.struct_bytes = sizeof c;
    c.scales = TW_SCALE_SHARING_TENSOR;
    return c;
  }
};

inline void assign(const tw_fp8_options& c, Fp8Options& p, const Where& at) {
  p.scales = choose<ScaleSharing>(c.scales, {{TW_SCALE_SHARING_TENSOR, ScaleSharing::kTensor, "TW_SCALE_SHARING_TENSOR"}, {TW_SCALE_SHARING_HEAD, ScaleSharing::kHead, "TW_SCALE_SHARING_HEAD"}, {TW_SCALE_SHARING_BLOCK, ScaleSharing::kBlock, "TW_SCALE_SHARING_BLOCK"}}, at, "scales");
  p.v_layout = choose<Fp8ValueLayout>(c.v_layout, {{TW_FP8_VALUE_LAYOUT_ROWS, Fp8ValueLayout::kRows, "TW_FP8_VALUE_LAYOUT_ROWS"}, {TW_FP8_VALUE_LAYOUT_COLUMNS, Fp8ValueLayout::kColumns, "TW_FP8_VALUE_LAYOUT_COLUMNS"}}, at, "v_layout");
  p.accumulation = choose<Fp8Accumulation>(c.accumulation, {{TW_FP8_ACCUMULATION_AUTO, Fp8Accumulation::kAuto, "TW_FP8_ACCUMULATION_AUTO"}, {TW_FP8_ACCUMULATION_ONE_LEVEL, Fp8Accumulation::kOneLevel, "TW_FP8_ACCUMULATION_ONE_LEVEL"}, {TW_FP8_ACCUMULATION_TWO_LEVEL, Fp8Accumulation::kTwoLevel, "TW_FP8_ACCUMULATION_TWO_LEVEL"}}, at, "accumulation");
}

template <>
struct Version<tw_attention_problem> {
  using Cpp = AttentionProblem;
  static constexpr const char* kName = "tw_attention_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_attention_problem, q_strides), &Version<tw_strides>::kShape, "q_strides"}, {offsetof(tw_attention_problem, k_strides), &Version<tw_strides>::kShape, "k_strides"}, {offsetof(tw_attention_problem, v_strides), &Version<tw_strides>::kShape, "v_strides"}, {offsetof(tw_attention_problem, out_strides), &Version<tw_strides>::kShape, "out_strides"}, {offsetof(tw_attention_problem, fp8), &Version<tw_fp8_options>::kShape, "fp8"}};
  static constexpr Shape kShape = {kName, sizeof(tw_attention_problem), kInner};
  static tw_attention_problem defaults() {
    tw_attention_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.heads = 1;
    c.kv_heads = 1;
    c.window_left = -1;
    c.window_right = -1;
    c.q_strides = Version<tw_strides>::defaults();
    c.k_strides = Version<tw_strides>::defaults();
    c.v_strides = Version<tw_strides>::defaults();
    c.out_strides = Version<tw_strides>::defaults();
    c.out_dtype = TW_ABSENT;
    c.fp8 = Version<tw_fp8_options>::defaults();
    return c;
  }
};

inline void assign(const tw_attention_problem& c, AttentionProblem& p, const Where& at) {
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "dtype");
  p.batch = c.batch;
  p.heads = c.heads;
  p.kv_heads = c.kv_heads;
  p.q_len = c.q_len;
  p.kv_len = c.kv_len;
  p.head_dim = c.head_dim;
  if (c.scale != 0) p.scale = c.scale;
  p.causal = c.causal != 0;
  p.window_left = c.window_left;
  p.window_right = c.window_right;
  p.softcap = c.softcap;
  p.has_sink = c.has_sink != 0;
  p.has_lse = c.has_lse != 0;
  p.is_packed = c.is_packed != 0;
  p.total_q = c.total_q;
  p.total_kv = c.total_kv;
  assign(c.q_strides, p.q_strides, at.in("q_strides"));
  assign(c.k_strides, p.k_strides, at.in("k_strides"));
  assign(c.v_strides, p.v_strides, at.in("v_strides"));
  assign(c.out_strides, p.out_strides, at.in("out_strides"));
  if (c.kernel != nullptr) p.kernel = c.kernel;
  if (c.out_dtype != TW_ABSENT) p.out_dtype = choose<DType>(c.out_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}}, at, "out_dtype");
  assign(c.fp8, p.fp8, at.in("fp8"));
}

template <>
struct Version<tw_attention_arguments> {
  using Cpp = AttentionArguments;
  static constexpr const char* kName = "tw_attention_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_attention_arguments), {}};
  static tw_attention_arguments defaults() {
    tw_attention_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_attention_arguments& c, AttentionArguments& p, const Where&) {
  p.q = c.q;
  p.k = c.k;
  p.v = c.v;
  p.out = c.out;
  p.lse = c.lse;
  p.sink = c.sink;
  p.cu_q = c.cu_q;
  p.cu_kv = c.cu_kv;
  p.workspace = c.workspace;
  p.stream = c.stream;
  p.q_descale = c.q_descale;
  p.k_descale = c.k_descale;
  p.v_descale = c.v_descale;
  p.v_descale_max = c.v_descale_max;
}

template <>
struct Version<tw_attention_prepare_problem> {
  using Cpp = AttentionPrepareProblem;
  static constexpr const char* kName = "tw_attention_prepare_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_attention_prepare_problem, q_strides), &Version<tw_strides>::kShape, "q_strides"}, {offsetof(tw_attention_prepare_problem, k_strides), &Version<tw_strides>::kShape, "k_strides"}, {offsetof(tw_attention_prepare_problem, v_strides), &Version<tw_strides>::kShape, "v_strides"}, {offsetof(tw_attention_prepare_problem, q8_strides), &Version<tw_strides>::kShape, "q8_strides"}, {offsetof(tw_attention_prepare_problem, k8_strides), &Version<tw_strides>::kShape, "k8_strides"}, {offsetof(tw_attention_prepare_problem, v8_strides), &Version<tw_strides>::kShape, "v8_strides"}};
  static constexpr Shape kShape = {kName, sizeof(tw_attention_prepare_problem), kInner};
  static tw_attention_prepare_problem defaults() {
    tw_attention_prepare_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.heads = 1;
    c.kv_heads = 1;
    c.q_strides = Version<tw_strides>::defaults();
    c.k_strides = Version<tw_strides>::defaults();
    c.v_strides = Version<tw_strides>::defaults();
    c.q8_strides = Version<tw_strides>::defaults();
    c.k8_strides = Version<tw_strides>::defaults();
    c.v8_strides = Version<tw_strides>::defaults();
    c.scales = TW_SCALE_SHARING_BLOCK;
    c.v_layout = TW_FP8_VALUE_LAYOUT_COLUMNS;
    c.is_rotated = 1;
    return c;
  }
};

inline void assign(const tw_attention_prepare_problem& c, AttentionPrepareProblem& p, const Where& at) {
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}}, at, "dtype");
  p.batch = c.batch;
  p.heads = c.heads;
  p.kv_heads = c.kv_heads;
  p.q_len = c.q_len;
  p.kv_len = c.kv_len;
  p.head_dim = c.head_dim;
  p.is_packed = c.is_packed != 0;
  p.total_q = c.total_q;
  p.total_kv = c.total_kv;
  assign(c.q_strides, p.q_strides, at.in("q_strides"));
  assign(c.k_strides, p.k_strides, at.in("k_strides"));
  assign(c.v_strides, p.v_strides, at.in("v_strides"));
  assign(c.q8_strides, p.q8_strides, at.in("q8_strides"));
  assign(c.k8_strides, p.k8_strides, at.in("k8_strides"));
  assign(c.v8_strides, p.v8_strides, at.in("v8_strides"));
  p.scales = choose<ScaleSharing>(c.scales, {{TW_SCALE_SHARING_TENSOR, ScaleSharing::kTensor, "TW_SCALE_SHARING_TENSOR"}, {TW_SCALE_SHARING_HEAD, ScaleSharing::kHead, "TW_SCALE_SHARING_HEAD"}, {TW_SCALE_SHARING_BLOCK, ScaleSharing::kBlock, "TW_SCALE_SHARING_BLOCK"}}, at, "scales");
  p.v_layout = choose<Fp8ValueLayout>(c.v_layout, {{TW_FP8_VALUE_LAYOUT_ROWS, Fp8ValueLayout::kRows, "TW_FP8_VALUE_LAYOUT_ROWS"}, {TW_FP8_VALUE_LAYOUT_COLUMNS, Fp8ValueLayout::kColumns, "TW_FP8_VALUE_LAYOUT_COLUMNS"}}, at, "v_layout");
  p.is_rotated = c.is_rotated != 0;
  p.sign_seed = c.sign_seed;
  p.rope = choose<RotaryPairs>(c.rope, {{TW_ROTARY_PAIRS_NONE, RotaryPairs::kNone, "TW_ROTARY_PAIRS_NONE"}, {TW_ROTARY_PAIRS_INTERLEAVED, RotaryPairs::kInterleaved, "TW_ROTARY_PAIRS_INTERLEAVED"}, {TW_ROTARY_PAIRS_HALVES, RotaryPairs::kHalves, "TW_ROTARY_PAIRS_HALVES"}}, at, "rope");
  p.rotary_dim = c.rotary_dim;
  p.rope_positions = c.rope_positions;
  p.has_positions = c.has_positions != 0;
}

template <>
struct Version<tw_attention_prepare_arguments> {
  using Cpp = AttentionPrepareArguments;
  static constexpr const char* kName = "tw_attention_prepare_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_attention_prepare_arguments), {}};
  static tw_attention_prepare_arguments defaults() {
    tw_attention_prepare_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_attention_prepare_arguments& c, AttentionPrepareArguments& p, const Where&) {
  p.q = c.q;
  p.k = c.k;
  p.v = c.v;
  p.q8 = c.q8;
  p.k8 = c.k8;
  p.v8 = c.v8;
  p.q_descale = c.q_descale;
  p.k_descale = c.k_descale;
  p.v_descale = c.v_descale;
  p.v_descale_max = c.v_descale_max;
  p.cu_q = c.cu_q;
  p.cu_kv = c.cu_kv;
  p.rope = c.rope;
  p.q_positions = c.q_positions;
  p.k_positions = c.k_positions;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

template <>
struct Version<tw_attention_operand_sizes> {
  static constexpr const char* kName = "tw_attention_operand_sizes";
  static constexpr Shape kShape = {kName, sizeof(tw_attention_operand_sizes), {}};
  static tw_attention_operand_sizes defaults() {
    tw_attention_operand_sizes c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_decode_append> {
  using Cpp = DecodeAppend;
  static constexpr const char* kName = "tw_decode_append";
  static constexpr Shape kShape = {kName, sizeof(tw_decode_append), {}};
  static tw_decode_append defaults() {
    tw_decode_append c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_decode_append& c, DecodeAppend& p, const Where& at) {
  p.is_wanted = c.is_wanted != 0;
  p.rotary = choose<RotaryPairs>(c.rotary, {{TW_ROTARY_PAIRS_NONE, RotaryPairs::kNone, "TW_ROTARY_PAIRS_NONE"}, {TW_ROTARY_PAIRS_INTERLEAVED, RotaryPairs::kInterleaved, "TW_ROTARY_PAIRS_INTERLEAVED"}, {TW_ROTARY_PAIRS_HALVES, RotaryPairs::kHalves, "TW_ROTARY_PAIRS_HALVES"}}, at, "rotary");
  p.rotary_dim = c.rotary_dim;
  p.max_position = c.max_position;
}

template <>
struct Version<tw_attention_decode_problem> {
  using Cpp = AttentionDecodeProblem;
  static constexpr const char* kName = "tw_attention_decode_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_attention_decode_problem, append), &Version<tw_decode_append>::kShape, "append"}, {offsetof(tw_attention_decode_problem, q_strides), &Version<tw_strides>::kShape, "q_strides"}, {offsetof(tw_attention_decode_problem, out_strides), &Version<tw_strides>::kShape, "out_strides"}, {offsetof(tw_attention_decode_problem, new_k_strides), &Version<tw_strides>::kShape, "new_k_strides"}, {offsetof(tw_attention_decode_problem, new_v_strides), &Version<tw_strides>::kShape, "new_v_strides"}, {offsetof(tw_attention_decode_problem, cache_strides), &Version<tw_strides>::kShape, "cache_strides"}};
  static constexpr Shape kShape = {kName, sizeof(tw_attention_decode_problem), kInner};
  static tw_attention_decode_problem defaults() {
    tw_attention_decode_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.q_len = 1;
    c.heads = 1;
    c.kv_heads = 1;
    c.causal = 1;
    c.window_left = -1;
    c.descale = TW_SCALE_SHARING_NONE;
    c.append = Version<tw_decode_append>::defaults();
    c.q_strides = Version<tw_strides>::defaults();
    c.out_strides = Version<tw_strides>::defaults();
    c.new_k_strides = Version<tw_strides>::defaults();
    c.new_v_strides = Version<tw_strides>::defaults();
    c.cache_strides = Version<tw_strides>::defaults();
    return c;
  }
};

inline void assign(const tw_attention_decode_problem& c, AttentionDecodeProblem& p, const Where& at) {
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}}, at, "dtype");
  p.kv_dtype = choose<DType>(c.kv_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "kv_dtype");
  p.batch = c.batch;
  p.q_len = c.q_len;
  p.heads = c.heads;
  p.kv_heads = c.kv_heads;
  p.head_dim = c.head_dim;
  p.max_len = c.max_len;
  p.page_size = c.page_size;
  p.num_pages = c.num_pages;
  p.max_pages = c.max_pages;
  p.table_stride = c.table_stride;
  if (c.scale != 0) p.scale = c.scale;
  p.causal = c.causal != 0;
  p.window_left = c.window_left;
  p.softcap = c.softcap;
  p.descale = choose<ScaleSharing>(c.descale, {{TW_SCALE_SHARING_NONE, ScaleSharing::kNone, "TW_SCALE_SHARING_NONE"}, {TW_SCALE_SHARING_TENSOR, ScaleSharing::kTensor, "TW_SCALE_SHARING_TENSOR"}, {TW_SCALE_SHARING_HEAD, ScaleSharing::kHead, "TW_SCALE_SHARING_HEAD"}}, at, "descale");
  p.has_sink = c.has_sink != 0;
  p.has_lse = c.has_lse != 0;
  assign(c.append, p.append, at.in("append"));
  assign(c.q_strides, p.q_strides, at.in("q_strides"));
  assign(c.out_strides, p.out_strides, at.in("out_strides"));
  assign(c.new_k_strides, p.new_k_strides, at.in("new_k_strides"));
  assign(c.new_v_strides, p.new_v_strides, at.in("new_v_strides"));
  assign(c.cache_strides, p.cache_strides, at.in("cache_strides"));
  p.splits = c.splits;
  if (c.kernel != nullptr) p.kernel = c.kernel;
}

template <>
struct Version<tw_attention_decode_arguments> {
  using Cpp = AttentionDecodeArguments;
  static constexpr const char* kName = "tw_attention_decode_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_attention_decode_arguments), {}};
  static tw_attention_decode_arguments defaults() {
    tw_attention_decode_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_attention_decode_arguments& c, AttentionDecodeArguments& p, const Where&) {
  p.q = c.q;
  p.k_cache = c.k_cache;
  p.v_cache = c.v_cache;
  p.lengths = c.lengths;
  p.block_table = c.block_table;
  p.k_descale = c.k_descale;
  p.v_descale = c.v_descale;
  p.new_k = c.new_k;
  p.new_v = c.new_v;
  p.cos = c.cos;
  p.sin = c.sin;
  p.out = c.out;
  p.lse = c.lse;
  p.sink = c.sink;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

template <>
struct Version<tw_linear_weight_source> {
  static constexpr const char* kName = "tw_linear_weight_source";
  static constexpr Shape kShape = {kName, sizeof(tw_linear_weight_source), {}};
  static tw_linear_weight_source defaults() {
    tw_linear_weight_source c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_NVFP4;
    c.scale_dtype = TW_F32;
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
    return c;
  }
};

inline void assign(const tw_linear_weight_info& c, LinearWeightInfo& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_BF16, NumberFormat::kBf16, "TW_NUMBER_FORMAT_BF16"}, {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}, {TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"}, {TW_NUMBER_FORMAT_NVFP4, NumberFormat::kNvfp4, "TW_NUMBER_FORMAT_NVFP4"}}, at, "format");
  p.activations = choose<LinearActivations>(c.activations, {{TW_LINEAR_ACTIVATIONS_BF16, LinearActivations::kBf16, "TW_LINEAR_ACTIVATIONS_BF16"}, {TW_LINEAR_ACTIVATIONS_FP8, LinearActivations::kFp8, "TW_LINEAR_ACTIVATIONS_FP8"}, {TW_LINEAR_ACTIVATIONS_BLOCK_SCALED, LinearActivations::kBlockScaled, "TW_LINEAR_ACTIVATIONS_BLOCK_SCALED"}}, at, "activations");
  p.n = c.n;
  p.k = c.k;
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

template <>
struct Version<tw_quantize_problem> {
  using Cpp = QuantizeProblem;
  static constexpr const char* kName = "tw_quantize_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_quantize_problem), {}};
  static tw_quantize_problem defaults() {
    tw_quantize_problem c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_quantize_problem& c, QuantizeProblem& p, const Where& at) {
  if (c.format != nullptr) p.format = c.format;
  if (c.scales != nullptr) p.scales = c.scales;
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "dtype");
  p.rows = c.rows;
  p.cols = c.cols;
  p.row_stride = c.row_stride;
  p.has_row_index = c.has_row_index != 0;
  p.out_rows = c.out_rows;
  p.out_cols = c.out_cols;
  p.has_operand_order = c.has_operand_order != 0;
  p.has_128x4_scales = c.has_128x4_scales != 0;
  p.has_block_major_scales = c.has_block_major_scales != 0;
  if (c.encode_scale != 0) p.encode_scale = c.encode_scale;
  p.has_encode_scale_address = c.has_encode_scale_address != 0;
}

template <>
struct Version<tw_quantize_arguments> {
  using Cpp = QuantizeArguments;
  static constexpr const char* kName = "tw_quantize_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_quantize_arguments), {}};
  static tw_quantize_arguments defaults() {
    tw_quantize_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_quantize_arguments& c, QuantizeArguments& p, const Where&) {
  p.in = c.in;
  p.row_index = c.row_index;
  p.codes = c.codes;
  p.scales = c.scales;
  p.encode_scale = c.encode_scale;
  p.tensor_scale = c.tensor_scale;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

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
  p.routing = choose<MoeRouting>(c.routing, {{TW_MOE_ROUTING_GIVEN, MoeRouting::kGiven, "TW_MOE_ROUTING_GIVEN"}, {TW_MOE_ROUTING_LOGITS, MoeRouting::kLogits, "TW_MOE_ROUTING_LOGITS"}, {TW_MOE_ROUTING_HASH, MoeRouting::kHash, "TW_MOE_ROUTING_HASH"}}, at, "routing");
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
}

template <>
struct Version<tw_kv_layout> {
  using Cpp = KvCacheLayout;
  static constexpr const char* kName = "tw_kv_layout";
  static constexpr Shape kShape = {kName, sizeof(tw_kv_layout), {}};
  static tw_kv_layout defaults() {
    tw_kv_layout c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_FP8;
    c.page_size = 64;
    return c;
  }
};

inline void assign(const tw_kv_layout& c, KvCacheLayout& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_BF16, NumberFormat::kBf16, "TW_NUMBER_FORMAT_BF16"}, {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}, {TW_NUMBER_FORMAT_NVFP4, NumberFormat::kNvfp4, "TW_NUMBER_FORMAT_NVFP4"}}, at, "format");
  p.page_size = c.page_size;
  p.num_pages = c.num_pages;
  p.page_stride_bytes = c.page_stride_bytes;
}

template <>
struct Version<tw_sparse_list> {
  using Cpp = SparseList;
  static constexpr const char* kName = "tw_sparse_list";
  static constexpr Inner kInner[] = {{offsetof(tw_sparse_list, cache), &Version<tw_kv_layout>::kShape, "cache"}};
  static constexpr Shape kShape = {kName, sizeof(tw_sparse_list), kInner};
  static tw_sparse_list defaults() {
    tw_sparse_list c = {};
    c.struct_bytes = sizeof c;
    c.cache = Version<tw_kv_layout>::defaults();
    return c;
  }
};

inline void assign(const tw_sparse_list& c, SparseList& p, const Where& at) {
  assign(c.cache, p.cache, at.in("cache"));
  p.topk = c.topk;
  p.index_stride = c.index_stride;
  p.lengths = choose<SparseLengths>(c.lengths, {{TW_SPARSE_LENGTHS_FULL, SparseLengths::kFull, "TW_SPARSE_LENGTHS_FULL"}, {TW_SPARSE_LENGTHS_PER_BATCH, SparseLengths::kPerBatch, "TW_SPARSE_LENGTHS_PER_BATCH"}, {TW_SPARSE_LENGTHS_PER_QUERY, SparseLengths::kPerQuery, "TW_SPARSE_LENGTHS_PER_QUERY"}}, at, "lengths");
}

template <>
struct Version<tw_sparse_attention_problem> {
  using Cpp = SparseAttentionProblem;
  static constexpr const char* kName = "tw_sparse_attention_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_sparse_attention_problem, window), &Version<tw_sparse_list>::kShape, "window"}, {offsetof(tw_sparse_attention_problem, compressed), &Version<tw_sparse_list>::kShape, "compressed"}, {offsetof(tw_sparse_attention_problem, q_strides), &Version<tw_strides>::kShape, "q_strides"}, {offsetof(tw_sparse_attention_problem, out_strides), &Version<tw_strides>::kShape, "out_strides"}, {offsetof(tw_sparse_attention_problem, lse_strides), &Version<tw_strides>::kShape, "lse_strides"}};
  static constexpr Shape kShape = {kName, sizeof(tw_sparse_attention_problem), kInner};
  static tw_sparse_attention_problem defaults() {
    tw_sparse_attention_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.q_len = 1;
    c.window = Version<tw_sparse_list>::defaults();
    c.compressed = Version<tw_sparse_list>::defaults();
    c.q_strides = Version<tw_strides>::defaults();
    c.out_strides = Version<tw_strides>::defaults();
    c.lse_strides = Version<tw_strides>::defaults();
    return c;
  }
};

inline void assign(const tw_sparse_attention_problem& c, SparseAttentionProblem& p, const Where& at) {
  p.batch = c.batch;
  p.q_len = c.q_len;
  p.heads = c.heads;
  if (c.scale != 0) p.scale = c.scale;
  assign(c.window, p.window, at.in("window"));
  assign(c.compressed, p.compressed, at.in("compressed"));
  p.has_sink = c.has_sink != 0;
  p.has_lse = c.has_lse != 0;
  p.has_max_logits = c.has_max_logits != 0;
  assign(c.q_strides, p.q_strides, at.in("q_strides"));
  assign(c.out_strides, p.out_strides, at.in("out_strides"));
  assign(c.lse_strides, p.lse_strides, at.in("lse_strides"));
  if (c.kernel != nullptr) p.kernel = c.kernel;
  p.positive_empty_lse = c.positive_empty_lse != 0;
}

template <>
struct Version<tw_sparse_list_arguments> {
  using Cpp = SparseListArguments;
  static constexpr const char* kName = "tw_sparse_list_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_sparse_list_arguments), {}};
  static tw_sparse_list_arguments defaults() {
    tw_sparse_list_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_sparse_list_arguments& c, SparseListArguments& p, const Where&) {
  p.pages = c.pages;
  p.indices = c.indices;
  p.lengths = c.lengths;
}

template <>
struct Version<tw_sparse_attention_arguments> {
  using Cpp = SparseAttentionArguments;
  static constexpr const char* kName = "tw_sparse_attention_arguments";
  static constexpr Inner kInner[] = {{offsetof(tw_sparse_attention_arguments, window), &Version<tw_sparse_list_arguments>::kShape, "window"}, {offsetof(tw_sparse_attention_arguments, compressed), &Version<tw_sparse_list_arguments>::kShape, "compressed"}};
  static constexpr Shape kShape = {kName, sizeof(tw_sparse_attention_arguments), kInner};
  static tw_sparse_attention_arguments defaults() {
    tw_sparse_attention_arguments c = {};
    c.struct_bytes = sizeof c;
    c.window = Version<tw_sparse_list_arguments>::defaults();
    c.compressed = Version<tw_sparse_list_arguments>::defaults();
    return c;
  }
};

inline void assign(const tw_sparse_attention_arguments& c, SparseAttentionArguments& p, const Where& at) {
  p.q = c.q;
  assign(c.window, p.window, at.in("window"));
  assign(c.compressed, p.compressed, at.in("compressed"));
  p.out = c.out;
  p.lse = c.lse;
  p.max_logits = c.max_logits;
  p.sink = c.sink;
  p.workspace = c.workspace;
  p.reuses_schedule = c.reuses_schedule != 0;
  p.stream = c.stream;
}

template <>
struct Version<tw_rope_options> {
  using Cpp = RopeOptions;
  static constexpr const char* kName = "tw_rope_options";
  static constexpr Shape kShape = {kName, sizeof(tw_rope_options), {}};
  static tw_rope_options defaults() {
    tw_rope_options c = {};
    c.struct_bytes = sizeof c;
    c.theta = 10000;
    return c;
  }
};

inline void assign(const tw_rope_options& c, RopeOptions& p, const Where&) {
  p.theta = c.theta;
  p.has_yarn = c.has_yarn != 0;
  if (c.factor != 0) p.factor = c.factor;
  if (c.original_positions != 0) p.original_positions = c.original_positions;
  if (c.beta_fast != 0) p.beta_fast = c.beta_fast;
  if (c.beta_slow != 0) p.beta_slow = c.beta_slow;
}

template <>
struct Version<tw_sequence_batch> {
  using Cpp = SequenceBatch;
  static constexpr const char* kName = "tw_sequence_batch";
  static constexpr Shape kShape = {kName, sizeof(tw_sequence_batch), {}};
  static tw_sequence_batch defaults() {
    tw_sequence_batch c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_sequence_batch& c, SequenceBatch& p, const Where&) {
  p.batch = c.batch;
  p.q_len = c.q_len;
  p.offsets = c.offsets;
  p.starts = c.starts;
}

template <>
struct Version<tw_sequence_pages> {
  using Cpp = SequencePages;
  static constexpr const char* kName = "tw_sequence_pages";
  static constexpr Shape kShape = {kName, sizeof(tw_sequence_pages), {}};
  static tw_sequence_pages defaults() {
    tw_sequence_pages c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_sequence_pages& c, SequencePages& p, const Where&) {
  p.pages = c.pages;
  p.blocks = c.blocks;
  p.stride = c.stride;
}

template <>
struct Version<tw_kv_write_arguments> {
  using Cpp = KvWriteArguments;
  static constexpr const char* kName = "tw_kv_write_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_kv_write_arguments), {}};
  static tw_kv_write_arguments defaults() {
    tw_kv_write_arguments c = {};
    c.struct_bytes = sizeof c;
    c.eps = 1e-6;
    return c;
  }
};

inline void assign(const tw_kv_write_arguments& c, KvWriteArguments& p, const Where& at) {
  p.tokens = c.tokens;
  p.heads = c.heads;
  p.eps = c.eps;
  p.q = c.q;
  p.q_out = c.q_out;
  p.q_token_stride = c.q_token_stride;
  p.q_head_stride = c.q_head_stride;
  p.kv = c.kv;
  p.kv_dtype = choose<DType>(c.kv_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "kv_dtype");
  p.kv_stride = c.kv_stride;
  p.kv_weight = c.kv_weight;
  p.positions = c.positions;
  p.rope = c.rope;
  p.rope_positions = c.rope_positions;
  p.slots = c.slots;
  p.pages = c.pages;
  p.kv_out = c.kv_out;
  p.stream = c.stream;
}

template <>
struct Version<tw_kv_read_arguments> {
  using Cpp = KvReadArguments;
  static constexpr const char* kName = "tw_kv_read_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_kv_read_arguments), {}};
  static tw_kv_read_arguments defaults() {
    tw_kv_read_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_kv_read_arguments& c, KvReadArguments& p, const Where&) {
  p.count = c.count;
  p.rows = c.rows;
  p.pages = c.pages;
  p.out = c.out;
  p.out_stride = c.out_stride;
  p.stream = c.stream;
}

template <>
struct Version<tw_kv_list_arguments> {
  using Cpp = KvListArguments;
  static constexpr const char* kName = "tw_kv_list_arguments";
  static constexpr Inner kInner[] = {{offsetof(tw_kv_list_arguments, sequences), &Version<tw_sequence_batch>::kShape, "sequences"}, {offsetof(tw_kv_list_arguments, table), &Version<tw_sequence_pages>::kShape, "table"}};
  static constexpr Shape kShape = {kName, sizeof(tw_kv_list_arguments), kInner};
  static tw_kv_list_arguments defaults() {
    tw_kv_list_arguments c = {};
    c.struct_bytes = sizeof c;
    c.sequences = Version<tw_sequence_batch>::defaults();
    c.table = Version<tw_sequence_pages>::defaults();
    c.window = 128;
    c.ratio = 4;
    c.list_len = 1;
    return c;
  }
};

inline void assign(const tw_kv_list_arguments& c, KvListArguments& p, const Where& at) {
  p.kind = choose<KvListKind>(c.kind, {{TW_KV_LIST_KIND_WRITE, KvListKind::kWrite, "TW_KV_LIST_KIND_WRITE"}, {TW_KV_LIST_KIND_WINDOW, KvListKind::kWindow, "TW_KV_LIST_KIND_WINDOW"}, {TW_KV_LIST_KIND_ENTRIES, KvListKind::kEntries, "TW_KV_LIST_KIND_ENTRIES"}}, at, "kind");
  p.tokens = c.tokens;
  assign(c.sequences, p.sequences, at.in("sequences"));
  assign(c.table, p.table, at.in("table"));
  p.ring = c.ring;
  p.window = c.window;
  p.ratio = c.ratio;
  p.list_len = c.list_len;
  p.list_stride = c.list_stride;
  p.lists = c.lists;
  p.lengths = c.lengths;
  p.positions = c.positions;
  p.stream = c.stream;
}

template <>
struct Version<tw_kv_cache_work> {
  using Cpp = KvCacheWork;
  static constexpr const char* kName = "tw_kv_cache_work";
  static constexpr Shape kShape = {kName, sizeof(tw_kv_cache_work), {}};
  static tw_kv_cache_work defaults() {
    tw_kv_cache_work c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_kv_cache_work& c, KvCacheWork& p, const Where&) {
  p.tokens = c.tokens;
  p.heads = c.heads;
  p.list_len = c.list_len;
  p.read_rows = c.read_rows;
}

template <>
struct Version<tw_inverse_rope_arguments> {
  using Cpp = InverseRopeArguments;
  static constexpr const char* kName = "tw_inverse_rope_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_inverse_rope_arguments), {}};
  static tw_inverse_rope_arguments defaults() {
    tw_inverse_rope_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_inverse_rope_arguments& c, InverseRopeArguments& p, const Where&) {
  p.tokens = c.tokens;
  p.heads = c.heads;
  p.out = c.out;
  p.token_stride = c.token_stride;
  p.head_stride = c.head_stride;
  p.positions = c.positions;
  p.rope = c.rope;
  p.rope_positions = c.rope_positions;
  p.codes = c.codes;
  p.scales = c.scales;
  p.has_pow2_scales = c.has_pow2_scales != 0;
  p.has_block_major_scales = c.has_block_major_scales != 0;
  p.has_operand_order = c.has_operand_order != 0;
  p.stream = c.stream;
}

template <>
struct Version<tw_compressor_problem> {
  using Cpp = CompressorProblem;
  static constexpr const char* kName = "tw_compressor_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_compressor_problem, cache), &Version<tw_kv_layout>::kShape, "cache"}};
  static constexpr Shape kShape = {kName, sizeof(tw_compressor_problem), kInner};
  static tw_compressor_problem defaults() {
    tw_compressor_problem c = {};
    c.struct_bytes = sizeof c;
    c.cache = Version<tw_kv_layout>::defaults();
    c.eps = 1e-6;
    return c;
  }
};

inline void assign(const tw_compressor_problem& c, CompressorProblem& p, const Where& at) {
  p.kind = choose<CompressorKind>(c.kind, {{TW_COMPRESSOR_KIND_CSA, CompressorKind::kCsa, "TW_COMPRESSOR_KIND_CSA"}, {TW_COMPRESSOR_KIND_HCA, CompressorKind::kHca, "TW_COMPRESSOR_KIND_HCA"}, {TW_COMPRESSOR_KIND_INDEX_FP8, CompressorKind::kIndexFp8, "TW_COMPRESSOR_KIND_INDEX_FP8"}, {TW_COMPRESSOR_KIND_INDEX_MXFP4, CompressorKind::kIndexMxfp4, "TW_COMPRESSOR_KIND_INDEX_MXFP4"}}, at, "kind");
  assign(c.cache, p.cache, at.in("cache"));
  p.state_slots = c.state_slots;
  p.ring = c.ring;
  p.eps = c.eps;
}

template <>
struct Version<tw_compressor_arguments> {
  using Cpp = CompressorArguments;
  static constexpr const char* kName = "tw_compressor_arguments";
  static constexpr Inner kInner[] = {{offsetof(tw_compressor_arguments, sequences), &Version<tw_sequence_batch>::kShape, "sequences"}, {offsetof(tw_compressor_arguments, table), &Version<tw_sequence_pages>::kShape, "table"}};
  static constexpr Shape kShape = {kName, sizeof(tw_compressor_arguments), kInner};
  static tw_compressor_arguments defaults() {
    tw_compressor_arguments c = {};
    c.struct_bytes = sizeof c;
    c.sequences = Version<tw_sequence_batch>::defaults();
    c.max_tokens = 1;
    c.table = Version<tw_sequence_pages>::defaults();
    return c;
  }
};

inline void assign(const tw_compressor_arguments& c, CompressorArguments& p, const Where& at) {
  assign(c.sequences, p.sequences, at.in("sequences"));
  p.max_tokens = c.max_tokens;
  p.kv = c.kv;
  p.gate = c.gate;
  p.kv_stride = c.kv_stride;
  p.gate_stride = c.gate_stride;
  p.ape = c.ape;
  p.norm_weight = c.norm_weight;
  p.rope = c.rope;
  p.rope_positions = c.rope_positions;
  p.state = c.state;
  p.state_slots = c.state_slots;
  assign(c.table, p.table, at.in("table"));
  p.pages = c.pages;
  p.stream = c.stream;
}

template <>
struct Version<tw_indexer_problem> {
  using Cpp = IndexerProblem;
  static constexpr const char* kName = "tw_indexer_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_indexer_problem, keys), &Version<tw_kv_layout>::kShape, "keys"}, {offsetof(tw_indexer_problem, rows), &Version<tw_kv_layout>::kShape, "rows"}};
  static constexpr Shape kShape = {kName, sizeof(tw_indexer_problem), kInner};
  static tw_indexer_problem defaults() {
    tw_indexer_problem c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_MXFP4;
    c.heads = 64;
    c.topk = 512;
    c.ratio = 4;
    c.keys = Version<tw_kv_layout>::defaults();
    c.rows = Version<tw_kv_layout>::defaults();
    return c;
  }
};

inline void assign(const tw_indexer_problem& c, IndexerProblem& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"}, {TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}}, at, "format");
  p.heads = c.heads;
  p.topk = c.topk;
  p.ratio = c.ratio;
  p.max_len = c.max_len;
  assign(c.keys, p.keys, at.in("keys"));
  assign(c.rows, p.rows, at.in("rows"));
  p.fill_logits = c.fill_logits != 0;
}

template <>
struct Version<tw_indexer_arguments> {
  using Cpp = IndexerArguments;
  static constexpr const char* kName = "tw_indexer_arguments";
  static constexpr Inner kInner[] = {{offsetof(tw_indexer_arguments, sequences), &Version<tw_sequence_batch>::kShape, "sequences"}, {offsetof(tw_indexer_arguments, key_table), &Version<tw_sequence_pages>::kShape, "key_table"}, {offsetof(tw_indexer_arguments, row_table), &Version<tw_sequence_pages>::kShape, "row_table"}};
  static constexpr Shape kShape = {kName, sizeof(tw_indexer_arguments), kInner};
  static tw_indexer_arguments defaults() {
    tw_indexer_arguments c = {};
    c.struct_bytes = sizeof c;
    c.sequences = Version<tw_sequence_batch>::defaults();
    c.key_table = Version<tw_sequence_pages>::defaults();
    c.row_table = Version<tw_sequence_pages>::defaults();
    return c;
  }
};

inline void assign(const tw_indexer_arguments& c, IndexerArguments& p, const Where& at) {
  p.tokens = c.tokens;
  assign(c.sequences, p.sequences, at.in("sequences"));
  p.positions = c.positions;
  p.lengths = c.lengths;
  p.q = c.q;
  p.q_token_stride = c.q_token_stride;
  p.q_head_stride = c.q_head_stride;
  p.weights = c.weights;
  p.weights_dtype = choose<DType>(c.weights_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "weights_dtype");
  p.weights_stride = c.weights_stride;
  p.rope = c.rope;
  p.rope_positions = c.rope_positions;
  p.key_pages = c.key_pages;
  assign(c.key_table, p.key_table, at.in("key_table"));
  assign(c.row_table, p.row_table, at.in("row_table"));
  p.rows = c.rows;
  p.rows_stride = c.rows_stride;
  p.counts = c.counts;
  p.workspace = c.workspace;
  p.reuses_schedule = c.reuses_schedule != 0;
  p.stream = c.stream;
}

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
