// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, indexer, under their names in C.
#pragma once

#include "ops/c_api/convert/indexer.h"
#include "tests/ops/c_api/members/sparse_attention.h"
#include "tests/ops/c_api/members/cache.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_indexer_problem(const IndexerProblem& x, const IndexerProblem& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.topk != y.topk) found.push_back("topk");
  if (x.ratio != y.ratio) found.push_back("ratio");
  if (x.max_len != y.max_len) found.push_back("max_len");
  append(found, "keys.", changed_tw_kv_layout(x.keys, y.keys));
  append(found, "rows.", changed_tw_kv_layout(x.rows, y.rows));
  if (x.fill_logits != y.fill_logits) found.push_back("fill_logits");
  return found;
}

inline Changes changed_tw_indexer_arguments(const IndexerArguments& x, const IndexerArguments& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  append(found, "sequences.", changed_tw_sequence_batch(x.sequences, y.sequences));
  if (x.positions != y.positions) found.push_back("positions");
  if (x.lengths != y.lengths) found.push_back("lengths");
  if (x.q != y.q) found.push_back("q");
  if (x.q_token_stride != y.q_token_stride) found.push_back("q_token_stride");
  if (x.q_head_stride != y.q_head_stride) found.push_back("q_head_stride");
  if (x.weights != y.weights) found.push_back("weights");
  if (x.weights_dtype != y.weights_dtype) found.push_back("weights_dtype");
  if (x.weights_stride != y.weights_stride) found.push_back("weights_stride");
  if (x.rope.angles != y.rope.angles) found.push_back("rope");
  if (x.rope.positions != y.rope.positions) found.push_back("rope_positions");
  if (x.key_pages != y.key_pages) found.push_back("key_pages");
  append(found, "key_table.", changed_tw_sequence_pages(x.key_table, y.key_table));
  append(found, "row_table.", changed_tw_sequence_pages(x.row_table, y.row_table));
  if (x.rows != y.rows) found.push_back("rows");
  if (x.rows_stride != y.rows_stride) found.push_back("rows_stride");
  if (x.counts != y.counts) found.push_back("counts");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.reuses_schedule != y.reuses_schedule) found.push_back("reuses_schedule");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_indexer_logits_problem(const IndexerLogitsProblem& x, const IndexerLogitsProblem& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.max_len != y.max_len) found.push_back("max_len");
  append(found, "keys.", changed_tw_kv_layout(x.keys, y.keys));
  if (x.is_compressed != y.is_compressed) found.push_back("is_compressed");
  if (x.fill_logits != y.fill_logits) found.push_back("fill_logits");
  return found;
}

inline Changes changed_tw_indexer_logits_arguments(const IndexerLogitsArguments& x, const IndexerLogitsArguments& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  append(found, "sequences.", changed_tw_sequence_batch(x.sequences, y.sequences));
  if (x.starts != y.starts) found.push_back("starts");
  if (x.ends != y.ends) found.push_back("ends");
  if (x.q != y.q) found.push_back("q");
  if (x.q_scales != y.q_scales) found.push_back("q_scales");
  if (x.weights != y.weights) found.push_back("weights");
  if (x.keys != y.keys) found.push_back("keys");
  if (x.key_scales != y.key_scales) found.push_back("key_scales");
  if (x.num_keys != y.num_keys) found.push_back("num_keys");
  append(found, "key_table.", changed_tw_sequence_pages(x.key_table, y.key_table));
  if (x.logits != y.logits) found.push_back("logits");
  if (x.logits_stride != y.logits_stride) found.push_back("logits_stride");
  if (x.columns != y.columns) found.push_back("columns");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.reuses_schedule != y.reuses_schedule) found.push_back("reuses_schedule");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
