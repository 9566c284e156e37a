// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, decode: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/attention.h"
#include "ops/c_api/convert/versions.h"
#include "tilewright/attention_decode.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

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
  p.chunk = c.chunk;
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
  p.rope.cos = c.cos;
  p.rope.sin = c.sin;
  p.out = c.out;
  p.lse = c.lse;
  p.sink = c.sink;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

template <>
struct Version<tw_cache_append_problem> {
  using Cpp = CacheAppendProblem;
  static constexpr const char* kName = "tw_cache_append_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_cache_append_problem, q_strides), &Version<tw_strides>::kShape, "q_strides"}, {offsetof(tw_cache_append_problem, turned_q_strides), &Version<tw_strides>::kShape, "turned_q_strides"}, {offsetof(tw_cache_append_problem, new_k_strides), &Version<tw_strides>::kShape, "new_k_strides"}, {offsetof(tw_cache_append_problem, new_v_strides), &Version<tw_strides>::kShape, "new_v_strides"}, {offsetof(tw_cache_append_problem, k_cache_strides), &Version<tw_strides>::kShape, "k_cache_strides"}, {offsetof(tw_cache_append_problem, v_cache_strides), &Version<tw_strides>::kShape, "v_cache_strides"}};
  static constexpr Shape kShape = {kName, sizeof(tw_cache_append_problem), kInner};
  static tw_cache_append_problem defaults() {
    tw_cache_append_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.kv_heads = 1;
    c.descale = TW_SCALE_SHARING_NONE;
    c.q_strides = Version<tw_strides>::defaults();
    c.turned_q_strides = Version<tw_strides>::defaults();
    c.new_k_strides = Version<tw_strides>::defaults();
    c.new_v_strides = Version<tw_strides>::defaults();
    c.k_cache_strides = Version<tw_strides>::defaults();
    c.v_cache_strides = Version<tw_strides>::defaults();
    return c;
  }
};

inline void assign(const tw_cache_append_problem& c, CacheAppendProblem& p, const Where& at) {
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "dtype");
  p.kv_dtype = choose<DType>(c.kv_dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_E4M3, DType::kF8_E4M3, "TW_E4M3"}}, at, "kv_dtype");
  p.batch = c.batch;
  p.kv_heads = c.kv_heads;
  p.new_len = c.new_len;
  p.head_dim = c.head_dim;
  p.value_dim = c.value_dim;
  p.is_packed = c.is_packed != 0;
  p.total_new = c.total_new;
  p.heads = c.heads;
  p.q_len = c.q_len;
  p.is_q_packed = c.is_q_packed != 0;
  p.total_q = c.total_q;
  p.max_len = c.max_len;
  p.page_size = c.page_size;
  p.num_pages = c.num_pages;
  p.max_pages = c.max_pages;
  p.table_stride = c.table_stride;
  p.descale = choose<ScaleSharing>(c.descale, {{TW_SCALE_SHARING_NONE, ScaleSharing::kNone, "TW_SCALE_SHARING_NONE"}, {TW_SCALE_SHARING_TENSOR, ScaleSharing::kTensor, "TW_SCALE_SHARING_TENSOR"}, {TW_SCALE_SHARING_HEAD, ScaleSharing::kHead, "TW_SCALE_SHARING_HEAD"}}, at, "descale");
  p.rotary = choose<RotaryPairs>(c.rotary, {{TW_ROTARY_PAIRS_NONE, RotaryPairs::kNone, "TW_ROTARY_PAIRS_NONE"}, {TW_ROTARY_PAIRS_INTERLEAVED, RotaryPairs::kInterleaved, "TW_ROTARY_PAIRS_INTERLEAVED"}, {TW_ROTARY_PAIRS_HALVES, RotaryPairs::kHalves, "TW_ROTARY_PAIRS_HALVES"}}, at, "rotary");
  p.rotary_dim = c.rotary_dim;
  p.max_position = c.max_position;
  p.has_rotary_lengths = c.has_rotary_lengths != 0;
  p.is_one_position = c.is_one_position != 0;
  p.has_new_lengths = c.has_new_lengths != 0;
  assign(c.q_strides, p.q_strides, at.in("q_strides"));
  assign(c.turned_q_strides, p.turned_q_strides, at.in("turned_q_strides"));
  assign(c.new_k_strides, p.new_k_strides, at.in("new_k_strides"));
  assign(c.new_v_strides, p.new_v_strides, at.in("new_v_strides"));
  assign(c.k_cache_strides, p.k_cache_strides, at.in("k_cache_strides"));
  assign(c.v_cache_strides, p.v_cache_strides, at.in("v_cache_strides"));
}

template <>
struct Version<tw_cache_append_arguments> {
  using Cpp = CacheAppendArguments;
  static constexpr const char* kName = "tw_cache_append_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_cache_append_arguments), {}};
  static tw_cache_append_arguments defaults() {
    tw_cache_append_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_cache_append_arguments& c, CacheAppendArguments& p, const Where&) {
  p.q = c.q;
  p.new_k = c.new_k;
  p.new_v = c.new_v;
  p.turned_q = c.turned_q;
  p.k_cache = c.k_cache;
  p.v_cache = c.v_cache;
  p.lengths = c.lengths;
  p.rotary_lengths = c.rotary_lengths;
  p.new_lengths = c.new_lengths;
  p.block_table = c.block_table;
  p.cu_new = c.cu_new;
  p.cu_q = c.cu_q;
  p.k_descale = c.k_descale;
  p.v_descale = c.v_descale;
  p.rope.cos = c.cos;
  p.rope.sin = c.sin;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
