// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, attention, under their names in C.
#pragma once

#include "ops/c_api/convert/attention.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_strides(const Strides& x, const Strides& y) {
  Changes found;
  if (x.batch != y.batch) found.push_back("batch");
  if (x.row != y.row) found.push_back("row");
  if (x.head != y.head) found.push_back("head");
  return found;
}

inline Changes changed_tw_fp8_options(const Fp8Options& x, const Fp8Options& y) {
  Changes found;
  if (x.scales != y.scales) found.push_back("scales");
  if (x.v_layout != y.v_layout) found.push_back("v_layout");
  if (x.accumulation != y.accumulation) found.push_back("accumulation");
  return found;
}

inline Changes changed_tw_attention_problem(const AttentionProblem& x, const AttentionProblem& y) {
  Changes found;
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.kv_heads != y.kv_heads) found.push_back("kv_heads");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.kv_len != y.kv_len) found.push_back("kv_len");
  if (x.head_dim != y.head_dim) found.push_back("head_dim");
  if (x.scale != y.scale) found.push_back("scale");
  if (x.causal != y.causal) found.push_back("causal");
  if (x.window_left != y.window_left) found.push_back("window_left");
  if (x.window_right != y.window_right) found.push_back("window_right");
  if (x.softcap != y.softcap) found.push_back("softcap");
  if (x.has_sink != y.has_sink) found.push_back("has_sink");
  if (x.has_lse != y.has_lse) found.push_back("has_lse");
  if (x.is_packed != y.is_packed) found.push_back("is_packed");
  if (x.total_q != y.total_q) found.push_back("total_q");
  if (x.total_kv != y.total_kv) found.push_back("total_kv");
  append(found, "q_strides.", changed_tw_strides(x.q_strides, y.q_strides));
  append(found, "k_strides.", changed_tw_strides(x.k_strides, y.k_strides));
  append(found, "v_strides.", changed_tw_strides(x.v_strides, y.v_strides));
  append(found, "out_strides.", changed_tw_strides(x.out_strides, y.out_strides));
  if (x.kernel != y.kernel) found.push_back("kernel");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  append(found, "fp8.", changed_tw_fp8_options(x.fp8, y.fp8));
  if (x.has_q_lengths != y.has_q_lengths) found.push_back("has_q_lengths");
  if (x.has_kv_lengths != y.has_kv_lengths) found.push_back("has_kv_lengths");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.num_pages != y.num_pages) found.push_back("num_pages");
  if (x.max_pages != y.max_pages) found.push_back("max_pages");
  if (x.table_stride != y.table_stride) found.push_back("table_stride");
  if (x.value_dim != y.value_dim) found.push_back("value_dim");
  if (x.chunk != y.chunk) found.push_back("chunk");
  if (x.kv_dtype != y.kv_dtype) found.push_back("kv_dtype");
  return found;
}

inline Changes changed_tw_attention_arguments(const AttentionArguments& x, const AttentionArguments& y) {
  Changes found;
  if (x.q != y.q) found.push_back("q");
  if (x.k != y.k) found.push_back("k");
  if (x.v != y.v) found.push_back("v");
  if (x.out != y.out) found.push_back("out");
  if (x.lse != y.lse) found.push_back("lse");
  if (x.sink != y.sink) found.push_back("sink");
  if (x.cu_q != y.cu_q) found.push_back("cu_q");
  if (x.cu_kv != y.cu_kv) found.push_back("cu_kv");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  if (x.q_descale != y.q_descale) found.push_back("q_descale");
  if (x.k_descale != y.k_descale) found.push_back("k_descale");
  if (x.v_descale != y.v_descale) found.push_back("v_descale");
  if (x.v_descale_max != y.v_descale_max) found.push_back("v_descale_max");
  if (x.q_lengths != y.q_lengths) found.push_back("q_lengths");
  if (x.kv_lengths != y.kv_lengths) found.push_back("kv_lengths");
  if (x.block_table != y.block_table) found.push_back("block_table");
  return found;
}

inline Changes changed_tw_attention_merge_problem(const AttentionMergeProblem& x, const AttentionMergeProblem& y) {
  Changes found;
  if (x.part_dtype != y.part_dtype) found.push_back("part_dtype");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.parts != y.parts) found.push_back("parts");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.rows != y.rows) found.push_back("rows");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.head_dim != y.head_dim) found.push_back("head_dim");
  if (x.has_sink != y.has_sink) found.push_back("has_sink");
  if (x.has_lse != y.has_lse) found.push_back("has_lse");
  if (x.part_stride != y.part_stride) found.push_back("part_stride");
  if (x.lse_part_stride != y.lse_part_stride) found.push_back("lse_part_stride");
  append(found, "part_strides.", changed_tw_strides(x.part_strides, y.part_strides));
  append(found, "out_strides.", changed_tw_strides(x.out_strides, y.out_strides));
  append(found, "lse_part_strides.", changed_tw_strides(x.lse_part_strides, y.lse_part_strides));
  append(found, "lse_strides.", changed_tw_strides(x.lse_strides, y.lse_strides));
  append(found, "other_strides.", changed_tw_strides(x.other_strides, y.other_strides));
  append(found, "lse_other_strides.", changed_tw_strides(x.lse_other_strides, y.lse_other_strides));
  return found;
}

inline Changes changed_tw_attention_merge_arguments(const AttentionMergeArguments& x, const AttentionMergeArguments& y) {
  Changes found;
  if (x.part_out != y.part_out) found.push_back("part_out");
  if (x.part_lse != y.part_lse) found.push_back("part_lse");
  if (x.other_out != y.other_out) found.push_back("other_out");
  if (x.other_lse != y.other_lse) found.push_back("other_lse");
  if (x.out != y.out) found.push_back("out");
  if (x.lse != y.lse) found.push_back("lse");
  if (x.sink != y.sink) found.push_back("sink");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_attention_prepare_problem(const AttentionPrepareProblem& x, const AttentionPrepareProblem& y) {
  Changes found;
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.kv_heads != y.kv_heads) found.push_back("kv_heads");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.kv_len != y.kv_len) found.push_back("kv_len");
  if (x.head_dim != y.head_dim) found.push_back("head_dim");
  if (x.is_packed != y.is_packed) found.push_back("is_packed");
  if (x.total_q != y.total_q) found.push_back("total_q");
  if (x.total_kv != y.total_kv) found.push_back("total_kv");
  append(found, "q_strides.", changed_tw_strides(x.q_strides, y.q_strides));
  append(found, "k_strides.", changed_tw_strides(x.k_strides, y.k_strides));
  append(found, "v_strides.", changed_tw_strides(x.v_strides, y.v_strides));
  append(found, "q8_strides.", changed_tw_strides(x.q8_strides, y.q8_strides));
  append(found, "k8_strides.", changed_tw_strides(x.k8_strides, y.k8_strides));
  append(found, "v8_strides.", changed_tw_strides(x.v8_strides, y.v8_strides));
  if (x.scales != y.scales) found.push_back("scales");
  if (x.v_layout != y.v_layout) found.push_back("v_layout");
  if (x.is_rotated != y.is_rotated) found.push_back("is_rotated");
  if (x.sign_seed != y.sign_seed) found.push_back("sign_seed");
  if (x.rope != y.rope) found.push_back("rope");
  if (x.rotary_dim != y.rotary_dim) found.push_back("rotary_dim");
  if (x.rope_positions != y.rope_positions) found.push_back("rope_positions");
  if (x.has_positions != y.has_positions) found.push_back("has_positions");
  return found;
}

inline Changes changed_tw_attention_prepare_arguments(const AttentionPrepareArguments& x, const AttentionPrepareArguments& y) {
  Changes found;
  if (x.q != y.q) found.push_back("q");
  if (x.k != y.k) found.push_back("k");
  if (x.v != y.v) found.push_back("v");
  if (x.q8 != y.q8) found.push_back("q8");
  if (x.k8 != y.k8) found.push_back("k8");
  if (x.v8 != y.v8) found.push_back("v8");
  if (x.q_descale != y.q_descale) found.push_back("q_descale");
  if (x.k_descale != y.k_descale) found.push_back("k_descale");
  if (x.v_descale != y.v_descale) found.push_back("v_descale");
  if (x.v_descale_max != y.v_descale_max) found.push_back("v_descale_max");
  if (x.cu_q != y.cu_q) found.push_back("cu_q");
  if (x.cu_kv != y.cu_kv) found.push_back("cu_kv");
  if (x.rope.angles != y.rope.angles) found.push_back("rope");
  if (x.q_positions != y.q_positions) found.push_back("q_positions");
  if (x.k_positions != y.k_positions) found.push_back("k_positions");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
