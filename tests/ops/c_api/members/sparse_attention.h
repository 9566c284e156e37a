// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, sparse attention, under their names in C.
#pragma once

#include "ops/c_api/convert/sparse_attention.h"
#include "tests/ops/c_api/members/attention.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_kv_layout(const KvCacheLayout& x, const KvCacheLayout& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.num_pages != y.num_pages) found.push_back("num_pages");
  if (x.page_stride_bytes != y.page_stride_bytes) found.push_back("page_stride_bytes");
  return found;
}

inline Changes changed_tw_sparse_list(const SparseList& x, const SparseList& y) {
  Changes found;
  append(found, "cache.", changed_tw_kv_layout(x.cache, y.cache));
  if (x.topk != y.topk) found.push_back("topk");
  if (x.index_stride != y.index_stride) found.push_back("index_stride");
  if (x.lengths != y.lengths) found.push_back("lengths");
  return found;
}

inline Changes changed_tw_sparse_attention_problem(const SparseAttentionProblem& x, const SparseAttentionProblem& y) {
  Changes found;
  if (x.batch != y.batch) found.push_back("batch");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.scale != y.scale) found.push_back("scale");
  append(found, "window.", changed_tw_sparse_list(x.window, y.window));
  append(found, "compressed.", changed_tw_sparse_list(x.compressed, y.compressed));
  if (x.has_sink != y.has_sink) found.push_back("has_sink");
  if (x.has_lse != y.has_lse) found.push_back("has_lse");
  if (x.has_max_logits != y.has_max_logits) found.push_back("has_max_logits");
  append(found, "q_strides.", changed_tw_strides(x.q_strides, y.q_strides));
  append(found, "out_strides.", changed_tw_strides(x.out_strides, y.out_strides));
  append(found, "lse_strides.", changed_tw_strides(x.lse_strides, y.lse_strides));
  if (x.kernel != y.kernel) found.push_back("kernel");
  if (x.positive_empty_lse != y.positive_empty_lse) found.push_back("positive_empty_lse");
  if (x.head_dim != y.head_dim) found.push_back("head_dim");
  return found;
}

inline Changes changed_tw_sparse_list_arguments(const SparseListArguments& x, const SparseListArguments& y) {
  Changes found;
  if (x.pages != y.pages) found.push_back("pages");
  if (x.indices != y.indices) found.push_back("indices");
  if (x.lengths != y.lengths) found.push_back("lengths");
  return found;
}

inline Changes changed_tw_sparse_attention_arguments(const SparseAttentionArguments& x, const SparseAttentionArguments& y) {
  Changes found;
  if (x.q != y.q) found.push_back("q");
  append(found, "window.", changed_tw_sparse_list_arguments(x.window, y.window));
  append(found, "compressed.", changed_tw_sparse_list_arguments(x.compressed, y.compressed));
  if (x.out != y.out) found.push_back("out");
  if (x.lse != y.lse) found.push_back("lse");
  if (x.max_logits != y.max_logits) found.push_back("max_logits");
  if (x.sink != y.sink) found.push_back("sink");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.reuses_schedule != y.reuses_schedule) found.push_back("reuses_schedule");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_latent_attention_problem(const LatentAttentionProblem& x, const LatentAttentionProblem& y) {
  Changes found;
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.kv_heads != y.kv_heads) found.push_back("kv_heads");
  if (x.value_dim != y.value_dim) found.push_back("value_dim");
  if (x.has_qv != y.has_qv) found.push_back("has_qv");
  if (x.max_len != y.max_len) found.push_back("max_len");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.num_pages != y.num_pages) found.push_back("num_pages");
  if (x.max_pages != y.max_pages) found.push_back("max_pages");
  if (x.table_stride != y.table_stride) found.push_back("table_stride");
  if (x.scale != y.scale) found.push_back("scale");
  if (x.causal != y.causal) found.push_back("causal");
  if (x.has_sink != y.has_sink) found.push_back("has_sink");
  if (x.has_lse != y.has_lse) found.push_back("has_lse");
  if (x.positive_empty_lse != y.positive_empty_lse) found.push_back("positive_empty_lse");
  append(found, "q_strides.", changed_tw_strides(x.q_strides, y.q_strides));
  append(found, "qv_strides.", changed_tw_strides(x.qv_strides, y.qv_strides));
  append(found, "out_strides.", changed_tw_strides(x.out_strides, y.out_strides));
  append(found, "lse_strides.", changed_tw_strides(x.lse_strides, y.lse_strides));
  append(found, "k_strides.", changed_tw_strides(x.k_strides, y.k_strides));
  append(found, "v_strides.", changed_tw_strides(x.v_strides, y.v_strides));
  if (x.kernel != y.kernel) found.push_back("kernel");
  return found;
}

inline Changes changed_tw_latent_attention_arguments(const LatentAttentionArguments& x, const LatentAttentionArguments& y) {
  Changes found;
  if (x.q != y.q) found.push_back("q");
  if (x.qv != y.qv) found.push_back("qv");
  if (x.k != y.k) found.push_back("k");
  if (x.v != y.v) found.push_back("v");
  if (x.lengths != y.lengths) found.push_back("lengths");
  if (x.block_table != y.block_table) found.push_back("block_table");
  if (x.out != y.out) found.push_back("out");
  if (x.lse != y.lse) found.push_back("lse");
  if (x.sink != y.sink) found.push_back("sink");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.reuses_schedule != y.reuses_schedule) found.push_back("reuses_schedule");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_mask_lists_problem(const MaskListsProblem& x, const MaskListsProblem& y) {
  Changes found;
  if (x.entry != y.entry) found.push_back("entry");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.rows != y.rows) found.push_back("rows");
  if (x.keys != y.keys) found.push_back("keys");
  if (x.query_block != y.query_block) found.push_back("query_block");
  if (x.key_block != y.key_block) found.push_back("key_block");
  if (x.topk != y.topk) found.push_back("topk");
  if (x.index_stride != y.index_stride) found.push_back("index_stride");
  if (x.mask_batch_bytes != y.mask_batch_bytes) found.push_back("mask_batch_bytes");
  if (x.mask_row_bytes != y.mask_row_bytes) found.push_back("mask_row_bytes");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.table_stride != y.table_stride) found.push_back("table_stride");
  if (x.has_totals != y.has_totals) found.push_back("has_totals");
  return found;
}

inline Changes changed_tw_mask_lists_arguments(const MaskListsArguments& x, const MaskListsArguments& y) {
  Changes found;
  if (x.mask != y.mask) found.push_back("mask");
  if (x.indices != y.indices) found.push_back("indices");
  if (x.lengths != y.lengths) found.push_back("lengths");
  if (x.totals != y.totals) found.push_back("totals");
  if (x.block_table != y.block_table) found.push_back("block_table");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
