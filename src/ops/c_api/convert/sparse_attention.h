// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, sparse attention: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/attention.h"
#include "ops/c_api/convert/versions.h"
#include "tilewright/latent_attention.h"
#include "tilewright/mask_lists.h"
#include "tilewright/sparse_attention.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

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
    c.head_dim = 512;
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
  p.head_dim = c.head_dim;
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
struct Version<tw_latent_attention_problem> {
  using Cpp = LatentAttentionProblem;
  static constexpr const char* kName = "tw_latent_attention_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_latent_attention_problem, q_strides), &Version<tw_strides>::kShape, "q_strides"}, {offsetof(tw_latent_attention_problem, qv_strides), &Version<tw_strides>::kShape, "qv_strides"}, {offsetof(tw_latent_attention_problem, out_strides), &Version<tw_strides>::kShape, "out_strides"}, {offsetof(tw_latent_attention_problem, lse_strides), &Version<tw_strides>::kShape, "lse_strides"}, {offsetof(tw_latent_attention_problem, k_strides), &Version<tw_strides>::kShape, "k_strides"}, {offsetof(tw_latent_attention_problem, v_strides), &Version<tw_strides>::kShape, "v_strides"}};
  static constexpr Shape kShape = {kName, sizeof(tw_latent_attention_problem), kInner};
  static tw_latent_attention_problem defaults() {
    tw_latent_attention_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.q_len = 1;
    c.heads = 1;
    c.kv_heads = 1;
    c.value_dim = 512;
    c.has_qv = 1;
    c.causal = 1;
    c.q_strides = Version<tw_strides>::defaults();
    c.qv_strides = Version<tw_strides>::defaults();
    c.out_strides = Version<tw_strides>::defaults();
    c.lse_strides = Version<tw_strides>::defaults();
    c.k_strides = Version<tw_strides>::defaults();
    c.v_strides = Version<tw_strides>::defaults();
    return c;
  }
};

inline void assign(const tw_latent_attention_problem& c, LatentAttentionProblem& p, const Where& at) {
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}}, at, "dtype");
  p.batch = c.batch;
  p.q_len = c.q_len;
  p.heads = c.heads;
  p.kv_heads = c.kv_heads;
  p.value_dim = c.value_dim;
  p.has_qv = c.has_qv != 0;
  p.max_len = c.max_len;
  p.page_size = c.page_size;
  p.num_pages = c.num_pages;
  p.max_pages = c.max_pages;
  p.table_stride = c.table_stride;
  if (c.scale != 0) p.scale = c.scale;
  p.causal = c.causal != 0;
  p.has_sink = c.has_sink != 0;
  p.has_lse = c.has_lse != 0;
  p.positive_empty_lse = c.positive_empty_lse != 0;
  assign(c.q_strides, p.q_strides, at.in("q_strides"));
  assign(c.qv_strides, p.qv_strides, at.in("qv_strides"));
  assign(c.out_strides, p.out_strides, at.in("out_strides"));
  assign(c.lse_strides, p.lse_strides, at.in("lse_strides"));
  assign(c.k_strides, p.k_strides, at.in("k_strides"));
  assign(c.v_strides, p.v_strides, at.in("v_strides"));
  if (c.kernel != nullptr) p.kernel = c.kernel;
}

template <>
struct Version<tw_latent_attention_arguments> {
  using Cpp = LatentAttentionArguments;
  static constexpr const char* kName = "tw_latent_attention_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_latent_attention_arguments), {}};
  static tw_latent_attention_arguments defaults() {
    tw_latent_attention_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_latent_attention_arguments& c, LatentAttentionArguments& p, const Where&) {
  p.q = c.q;
  p.qv = c.qv;
  p.k = c.k;
  p.v = c.v;
  p.lengths = c.lengths;
  p.block_table = c.block_table;
  p.out = c.out;
  p.lse = c.lse;
  p.sink = c.sink;
  p.workspace = c.workspace;
  p.reuses_schedule = c.reuses_schedule != 0;
  p.stream = c.stream;
}

template <>
struct Version<tw_mask_lists_problem> {
  using Cpp = MaskListsProblem;
  static constexpr const char* kName = "tw_mask_lists_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_mask_lists_problem), {}};
  static tw_mask_lists_problem defaults() {
    tw_mask_lists_problem c = {};
    c.struct_bytes = sizeof c;
    c.batch = 1;
    c.query_block = 1;
    c.key_block = 1;
    return c;
  }
};

inline void assign(const tw_mask_lists_problem& c, MaskListsProblem& p, const Where& at) {
  p.entry = choose<MaskEntry>(c.entry, {{TW_MASK_ENTRY_BYTES, MaskEntry::kBytes, "TW_MASK_ENTRY_BYTES"}, {TW_MASK_ENTRY_BITS, MaskEntry::kBits, "TW_MASK_ENTRY_BITS"}}, at, "entry");
  p.batch = c.batch;
  p.rows = c.rows;
  p.keys = c.keys;
  p.query_block = c.query_block;
  p.key_block = c.key_block;
  p.topk = c.topk;
  p.index_stride = c.index_stride;
  p.mask_batch_bytes = c.mask_batch_bytes;
  p.mask_row_bytes = c.mask_row_bytes;
  p.page_size = c.page_size;
  p.table_stride = c.table_stride;
  p.has_totals = c.has_totals != 0;
}

template <>
struct Version<tw_mask_lists_arguments> {
  using Cpp = MaskListsArguments;
  static constexpr const char* kName = "tw_mask_lists_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_mask_lists_arguments), {}};
  static tw_mask_lists_arguments defaults() {
    tw_mask_lists_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_mask_lists_arguments& c, MaskListsArguments& p, const Where&) {
  p.mask = c.mask;
  p.indices = c.indices;
  p.lengths = c.lengths;
  p.totals = c.totals;
  p.block_table = c.block_table;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
