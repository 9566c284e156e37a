// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, indexer: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/sparse_attention.h"
#include "ops/c_api/convert/cache.h"
#include "ops/c_api/convert/versions.h"
#include "tilewright/indexer.h"
#include "tilewright/indexer_logits.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

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
  p.rope.angles = c.rope;
  p.rope.positions = c.rope_positions;
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
struct Version<tw_indexer_logits_problem> {
  using Cpp = IndexerLogitsProblem;
  static constexpr const char* kName = "tw_indexer_logits_problem";
  static constexpr Inner kInner[] = {{offsetof(tw_indexer_logits_problem, keys), &Version<tw_kv_layout>::kShape, "keys"}};
  static constexpr Shape kShape = {kName, sizeof(tw_indexer_logits_problem), kInner};
  static tw_indexer_logits_problem defaults() {
    tw_indexer_logits_problem c = {};
    c.struct_bytes = sizeof c;
    c.format = TW_NUMBER_FORMAT_FP8;
    c.heads = 64;
    c.keys = Version<tw_kv_layout>::defaults();
    return c;
  }
};

inline void assign(const tw_indexer_logits_problem& c, IndexerLogitsProblem& p, const Where& at) {
  p.format = choose<NumberFormat>(c.format, {{TW_NUMBER_FORMAT_FP8, NumberFormat::kFp8, "TW_NUMBER_FORMAT_FP8"}, {TW_NUMBER_FORMAT_MXFP4, NumberFormat::kMxfp4, "TW_NUMBER_FORMAT_MXFP4"}}, at, "format");
  p.heads = c.heads;
  p.max_len = c.max_len;
  assign(c.keys, p.keys, at.in("keys"));
  p.is_compressed = c.is_compressed != 0;
  p.fill_logits = c.fill_logits != 0;
}

template <>
struct Version<tw_indexer_logits_arguments> {
  using Cpp = IndexerLogitsArguments;
  static constexpr const char* kName = "tw_indexer_logits_arguments";
  static constexpr Inner kInner[] = {{offsetof(tw_indexer_logits_arguments, sequences), &Version<tw_sequence_batch>::kShape, "sequences"}, {offsetof(tw_indexer_logits_arguments, key_table), &Version<tw_sequence_pages>::kShape, "key_table"}};
  static constexpr Shape kShape = {kName, sizeof(tw_indexer_logits_arguments), kInner};
  static tw_indexer_logits_arguments defaults() {
    tw_indexer_logits_arguments c = {};
    c.struct_bytes = sizeof c;
    c.sequences = Version<tw_sequence_batch>::defaults();
    c.key_table = Version<tw_sequence_pages>::defaults();
    return c;
  }
};

inline void assign(const tw_indexer_logits_arguments& c, IndexerLogitsArguments& p, const Where& at) {
  p.tokens = c.tokens;
  assign(c.sequences, p.sequences, at.in("sequences"));
  p.starts = c.starts;
  p.ends = c.ends;
  p.q = c.q;
  p.q_scales = c.q_scales;
  p.weights = c.weights;
  p.keys = c.keys;
  p.key_scales = c.key_scales;
  p.num_keys = c.num_keys;
  assign(c.key_table, p.key_table, at.in("key_table"));
  p.logits = c.logits;
  p.logits_stride = c.logits_stride;
  p.columns = c.columns;
  p.workspace = c.workspace;
  p.reuses_schedule = c.reuses_schedule != 0;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
