// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, attention: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/attention.h"
#include "tilewright/attention_merge.h"
#include "tilewright/attention_prepare.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

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
    c.kv_dtype = TW_ABSENT;
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
  p.has_q_lengths = c.has_q_lengths != 0;
  p.has_kv_lengths = c.has_kv_lengths != 0;
  p.page_size = c.page_size;
  p.num_pages = c.num_pages;
  p.max_pages = c.max_pages;
  p.table_stride = c.table_stride;
  p.value_dim = c.value_dim;
  p.chunk = c.chunk;
  if (c.kv_dtype != TW_ABSENT) p.kv_dtype = choose<DType>(c.kv_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "kv_dtype");
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
  p.q_lengths = c.q_lengths;
  p.kv_lengths = c.kv_lengths;
  p.block_table = c.block_table;
}

template <>
struct Version<tw_attention_merge_problem> {
  using Cpp = AttentionMergeProblem;
  static constexpr const char* kName = "tw_attention_merge_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_attention_merge_problem, part_strides), &Version<tw_strides>::kShape, "part_strides"}, {offsetof(tw_attention_merge_problem, out_strides), &Version<tw_strides>::kShape, "out_strides"}, {offsetof(tw_attention_merge_problem, lse_part_strides), &Version<tw_strides>::kShape, "lse_part_strides"}, {offsetof(tw_attention_merge_problem, lse_strides), &Version<tw_strides>::kShape, "lse_strides"}, {offsetof(tw_attention_merge_problem, other_strides), &Version<tw_strides>::kShape, "other_strides"}, {offsetof(tw_attention_merge_problem, lse_other_strides), &Version<tw_strides>::kShape, "lse_other_strides"}};
  static constexpr Shape kShape = {kName, sizeof(tw_attention_merge_problem), kInner};
  static tw_attention_merge_problem defaults() {
    tw_attention_merge_problem c = {};
    c.struct_bytes = sizeof c;
    c.part_dtype = TW_F32;
    c.out_dtype = TW_BF16;
    c.parts = 2;
    c.batch = 1;
    c.heads = 1;
    c.part_strides = Version<tw_strides>::defaults();
    c.out_strides = Version<tw_strides>::defaults();
    c.lse_part_strides = Version<tw_strides>::defaults();
    c.lse_strides = Version<tw_strides>::defaults();
    c.other_strides = Version<tw_strides>::defaults();
    c.lse_other_strides = Version<tw_strides>::defaults();
    return c;
  }
};

inline void assign(const tw_attention_merge_problem& c, AttentionMergeProblem& p, const Where& at) {
  p.part_dtype = choose<DType>(c.part_dtype, {{TW_F32, DType::kF32, "TW_F32"}, {TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}}, at, "part_dtype");
  p.out_dtype = choose<DType>(c.out_dtype, {{TW_F32, DType::kF32, "TW_F32"}, {TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}}, at, "out_dtype");
  p.parts = c.parts;
  p.batch = c.batch;
  p.rows = c.rows;
  p.heads = c.heads;
  p.head_dim = c.head_dim;
  p.has_sink = c.has_sink != 0;
  p.has_lse = c.has_lse != 0;
  p.part_stride = c.part_stride;
  p.lse_part_stride = c.lse_part_stride;
  assign(c.part_strides, p.part_strides, at.in("part_strides"));
  assign(c.out_strides, p.out_strides, at.in("out_strides"));
  assign(c.lse_part_strides, p.lse_part_strides, at.in("lse_part_strides"));
  assign(c.lse_strides, p.lse_strides, at.in("lse_strides"));
  assign(c.other_strides, p.other_strides, at.in("other_strides"));
  assign(c.lse_other_strides, p.lse_other_strides, at.in("lse_other_strides"));
}

template <>
struct Version<tw_attention_merge_arguments> {
  using Cpp = AttentionMergeArguments;
  static constexpr const char* kName = "tw_attention_merge_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_attention_merge_arguments), {}};
  static tw_attention_merge_arguments defaults() {
    tw_attention_merge_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_attention_merge_arguments& c, AttentionMergeArguments& p, const Where&) {
  p.part_out = c.part_out;
  p.part_lse = c.part_lse;
  p.other_out = c.other_out;
  p.other_lse = c.other_lse;
  p.out = c.out;
  p.lse = c.lse;
  p.sink = c.sink;
  p.stream = c.stream;
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
  p.rope.angles = c.rope;
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

}  // namespace tilewright::c_api
