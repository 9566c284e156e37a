// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, cache, under their names in C.
#pragma once

#include "ops/c_api/convert/cache.h"
#include "tests/ops/c_api/members/sparse_attention.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_rope_options(const RopeOptions& x, const RopeOptions& y) {
  Changes found;
  if (x.theta != y.theta) found.push_back("theta");
  if (x.has_yarn != y.has_yarn) found.push_back("has_yarn");
  if (x.factor != y.factor) found.push_back("factor");
  if (x.original_positions != y.original_positions) found.push_back("original_positions");
  if (x.beta_fast != y.beta_fast) found.push_back("beta_fast");
  if (x.beta_slow != y.beta_slow) found.push_back("beta_slow");
  return found;
}

inline Changes changed_tw_sequence_batch(const SequenceBatch& x, const SequenceBatch& y) {
  Changes found;
  if (x.batch != y.batch) found.push_back("batch");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.offsets != y.offsets) found.push_back("offsets");
  if (x.starts != y.starts) found.push_back("starts");
  return found;
}

inline Changes changed_tw_sequence_pages(const SequencePages& x, const SequencePages& y) {
  Changes found;
  if (x.pages != y.pages) found.push_back("pages");
  if (x.blocks != y.blocks) found.push_back("blocks");
  if (x.stride != y.stride) found.push_back("stride");
  return found;
}

inline Changes changed_tw_kv_write_arguments(const KvWriteArguments& x, const KvWriteArguments& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.eps != y.eps) found.push_back("eps");
  if (x.q != y.q) found.push_back("q");
  if (x.q_out != y.q_out) found.push_back("q_out");
  if (x.q_token_stride != y.q_token_stride) found.push_back("q_token_stride");
  if (x.q_head_stride != y.q_head_stride) found.push_back("q_head_stride");
  if (x.kv != y.kv) found.push_back("kv");
  if (x.kv_dtype != y.kv_dtype) found.push_back("kv_dtype");
  if (x.kv_stride != y.kv_stride) found.push_back("kv_stride");
  if (x.kv_weight != y.kv_weight) found.push_back("kv_weight");
  if (x.positions != y.positions) found.push_back("positions");
  if (x.rope.angles != y.rope.angles) found.push_back("rope");
  if (x.rope.positions != y.rope.positions) found.push_back("rope_positions");
  if (x.slots != y.slots) found.push_back("slots");
  if (x.pages != y.pages) found.push_back("pages");
  if (x.kv_out != y.kv_out) found.push_back("kv_out");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_kv_read_arguments(const KvReadArguments& x, const KvReadArguments& y) {
  Changes found;
  if (x.count != y.count) found.push_back("count");
  if (x.rows != y.rows) found.push_back("rows");
  if (x.pages != y.pages) found.push_back("pages");
  if (x.out != y.out) found.push_back("out");
  if (x.out_stride != y.out_stride) found.push_back("out_stride");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_kv_list_arguments(const KvListArguments& x, const KvListArguments& y) {
  Changes found;
  if (x.kind != y.kind) found.push_back("kind");
  if (x.tokens != y.tokens) found.push_back("tokens");
  append(found, "sequences.", changed_tw_sequence_batch(x.sequences, y.sequences));
  append(found, "table.", changed_tw_sequence_pages(x.table, y.table));
  if (x.ring != y.ring) found.push_back("ring");
  if (x.window != y.window) found.push_back("window");
  if (x.ratio != y.ratio) found.push_back("ratio");
  if (x.list_len != y.list_len) found.push_back("list_len");
  if (x.list_stride != y.list_stride) found.push_back("list_stride");
  if (x.lists != y.lists) found.push_back("lists");
  if (x.lengths != y.lengths) found.push_back("lengths");
  if (x.positions != y.positions) found.push_back("positions");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_kv_cache_work(const KvCacheWork& x, const KvCacheWork& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.list_len != y.list_len) found.push_back("list_len");
  if (x.read_rows != y.read_rows) found.push_back("read_rows");
  return found;
}

inline Changes changed_tw_inverse_rope_arguments(const InverseRopeArguments& x, const InverseRopeArguments& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.out != y.out) found.push_back("out");
  if (x.token_stride != y.token_stride) found.push_back("token_stride");
  if (x.head_stride != y.head_stride) found.push_back("head_stride");
  if (x.positions != y.positions) found.push_back("positions");
  if (x.rope.angles != y.rope.angles) found.push_back("rope");
  if (x.rope.positions != y.rope.positions) found.push_back("rope_positions");
  if (x.codes != y.codes) found.push_back("codes");
  if (x.scales != y.scales) found.push_back("scales");
  if (x.has_pow2_scales != y.has_pow2_scales) found.push_back("has_pow2_scales");
  if (x.has_block_major_scales != y.has_block_major_scales) found.push_back("has_block_major_scales");
  if (x.has_operand_order != y.has_operand_order) found.push_back("has_operand_order");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_compressor_problem(const CompressorProblem& x, const CompressorProblem& y) {
  Changes found;
  if (x.kind != y.kind) found.push_back("kind");
  append(found, "cache.", changed_tw_kv_layout(x.cache, y.cache));
  if (x.state_slots != y.state_slots) found.push_back("state_slots");
  if (x.ring != y.ring) found.push_back("ring");
  if (x.eps != y.eps) found.push_back("eps");
  return found;
}

inline Changes changed_tw_compressor_arguments(const CompressorArguments& x, const CompressorArguments& y) {
  Changes found;
  append(found, "sequences.", changed_tw_sequence_batch(x.sequences, y.sequences));
  if (x.max_tokens != y.max_tokens) found.push_back("max_tokens");
  if (x.kv != y.kv) found.push_back("kv");
  if (x.gate != y.gate) found.push_back("gate");
  if (x.kv_stride != y.kv_stride) found.push_back("kv_stride");
  if (x.gate_stride != y.gate_stride) found.push_back("gate_stride");
  if (x.ape != y.ape) found.push_back("ape");
  if (x.norm_weight != y.norm_weight) found.push_back("norm_weight");
  if (x.rope.angles != y.rope.angles) found.push_back("rope");
  if (x.rope.positions != y.rope.positions) found.push_back("rope_positions");
  if (x.state != y.state) found.push_back("state");
  if (x.state_slots != y.state_slots) found.push_back("state_slots");
  append(found, "table.", changed_tw_sequence_pages(x.table, y.table));
  if (x.pages != y.pages) found.push_back("pages");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
