// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, cache: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/sparse_attention.h"
#include "ops/c_api/convert/versions.h"
#include "tilewright/cache_writer.h"
#include "tilewright/compressor.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

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
  p.rope.angles = c.rope;
  p.rope.positions = c.rope_positions;
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
  p.rope.angles = c.rope;
  p.rope.positions = c.rope_positions;
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
  p.rope.angles = c.rope;
  p.rope.positions = c.rope_positions;
  p.state = c.state;
  p.state_slots = c.state_slots;
  assign(c.table, p.table, at.in("table"));
  p.pages = c.pages;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
