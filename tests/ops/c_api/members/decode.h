// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, decode, under their names in C.
#pragma once

#include "ops/c_api/convert/decode.h"
#include "tests/ops/c_api/members/attention.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_decode_append(const DecodeAppend& x, const DecodeAppend& y) {
  Changes found;
  if (x.is_wanted != y.is_wanted) found.push_back("is_wanted");
  if (x.rotary != y.rotary) found.push_back("rotary");
  if (x.rotary_dim != y.rotary_dim) found.push_back("rotary_dim");
  if (x.max_position != y.max_position) found.push_back("max_position");
  return found;
}

inline Changes changed_tw_attention_decode_problem(const AttentionDecodeProblem& x, const AttentionDecodeProblem& y) {
  Changes found;
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.kv_dtype != y.kv_dtype) found.push_back("kv_dtype");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.kv_heads != y.kv_heads) found.push_back("kv_heads");
  if (x.head_dim != y.head_dim) found.push_back("head_dim");
  if (x.max_len != y.max_len) found.push_back("max_len");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.num_pages != y.num_pages) found.push_back("num_pages");
  if (x.max_pages != y.max_pages) found.push_back("max_pages");
  if (x.table_stride != y.table_stride) found.push_back("table_stride");
  if (x.scale != y.scale) found.push_back("scale");
  if (x.causal != y.causal) found.push_back("causal");
  if (x.window_left != y.window_left) found.push_back("window_left");
  if (x.softcap != y.softcap) found.push_back("softcap");
  if (x.descale != y.descale) found.push_back("descale");
  if (x.has_sink != y.has_sink) found.push_back("has_sink");
  if (x.has_lse != y.has_lse) found.push_back("has_lse");
  append(found, "append.", changed_tw_decode_append(x.append, y.append));
  append(found, "q_strides.", changed_tw_strides(x.q_strides, y.q_strides));
  append(found, "out_strides.", changed_tw_strides(x.out_strides, y.out_strides));
  append(found, "new_k_strides.", changed_tw_strides(x.new_k_strides, y.new_k_strides));
  append(found, "new_v_strides.", changed_tw_strides(x.new_v_strides, y.new_v_strides));
  append(found, "cache_strides.", changed_tw_strides(x.cache_strides, y.cache_strides));
  if (x.splits != y.splits) found.push_back("splits");
  if (x.kernel != y.kernel) found.push_back("kernel");
  if (x.chunk != y.chunk) found.push_back("chunk");
  return found;
}

inline Changes changed_tw_attention_decode_arguments(const AttentionDecodeArguments& x, const AttentionDecodeArguments& y) {
  Changes found;
  if (x.q != y.q) found.push_back("q");
  if (x.k_cache != y.k_cache) found.push_back("k_cache");
  if (x.v_cache != y.v_cache) found.push_back("v_cache");
  if (x.lengths != y.lengths) found.push_back("lengths");
  if (x.block_table != y.block_table) found.push_back("block_table");
  if (x.k_descale != y.k_descale) found.push_back("k_descale");
  if (x.v_descale != y.v_descale) found.push_back("v_descale");
  if (x.new_k != y.new_k) found.push_back("new_k");
  if (x.new_v != y.new_v) found.push_back("new_v");
  if (x.rope.cos != y.rope.cos) found.push_back("cos");
  if (x.rope.sin != y.rope.sin) found.push_back("sin");
  if (x.out != y.out) found.push_back("out");
  if (x.lse != y.lse) found.push_back("lse");
  if (x.sink != y.sink) found.push_back("sink");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_cache_append_problem(const CacheAppendProblem& x, const CacheAppendProblem& y) {
  Changes found;
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.kv_dtype != y.kv_dtype) found.push_back("kv_dtype");
  if (x.batch != y.batch) found.push_back("batch");
  if (x.kv_heads != y.kv_heads) found.push_back("kv_heads");
  if (x.new_len != y.new_len) found.push_back("new_len");
  if (x.head_dim != y.head_dim) found.push_back("head_dim");
  if (x.value_dim != y.value_dim) found.push_back("value_dim");
  if (x.is_packed != y.is_packed) found.push_back("is_packed");
  if (x.total_new != y.total_new) found.push_back("total_new");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.is_q_packed != y.is_q_packed) found.push_back("is_q_packed");
  if (x.total_q != y.total_q) found.push_back("total_q");
  if (x.max_len != y.max_len) found.push_back("max_len");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.num_pages != y.num_pages) found.push_back("num_pages");
  if (x.max_pages != y.max_pages) found.push_back("max_pages");
  if (x.table_stride != y.table_stride) found.push_back("table_stride");
  if (x.descale != y.descale) found.push_back("descale");
  if (x.rotary != y.rotary) found.push_back("rotary");
  if (x.rotary_dim != y.rotary_dim) found.push_back("rotary_dim");
  if (x.max_position != y.max_position) found.push_back("max_position");
  if (x.has_rotary_lengths != y.has_rotary_lengths) found.push_back("has_rotary_lengths");
  if (x.is_one_position != y.is_one_position) found.push_back("is_one_position");
  if (x.has_new_lengths != y.has_new_lengths) found.push_back("has_new_lengths");
  append(found, "q_strides.", changed_tw_strides(x.q_strides, y.q_strides));
  append(found, "turned_q_strides.", changed_tw_strides(x.turned_q_strides, y.turned_q_strides));
  append(found, "new_k_strides.", changed_tw_strides(x.new_k_strides, y.new_k_strides));
  append(found, "new_v_strides.", changed_tw_strides(x.new_v_strides, y.new_v_strides));
  append(found, "k_cache_strides.", changed_tw_strides(x.k_cache_strides, y.k_cache_strides));
  append(found, "v_cache_strides.", changed_tw_strides(x.v_cache_strides, y.v_cache_strides));
  return found;
}

inline Changes changed_tw_cache_append_arguments(const CacheAppendArguments& x, const CacheAppendArguments& y) {
  Changes found;
  if (x.q != y.q) found.push_back("q");
  if (x.new_k != y.new_k) found.push_back("new_k");
  if (x.new_v != y.new_v) found.push_back("new_v");
  if (x.turned_q != y.turned_q) found.push_back("turned_q");
  if (x.k_cache != y.k_cache) found.push_back("k_cache");
  if (x.v_cache != y.v_cache) found.push_back("v_cache");
  if (x.lengths != y.lengths) found.push_back("lengths");
  if (x.rotary_lengths != y.rotary_lengths) found.push_back("rotary_lengths");
  if (x.new_lengths != y.new_lengths) found.push_back("new_lengths");
  if (x.block_table != y.block_table) found.push_back("block_table");
  if (x.cu_new != y.cu_new) found.push_back("cu_new");
  if (x.cu_q != y.cu_q) found.push_back("cu_q");
  if (x.k_descale != y.k_descale) found.push_back("k_descale");
  if (x.v_descale != y.v_descale) found.push_back("v_descale");
  if (x.rope.cos != y.rope.cos) found.push_back("cos");
  if (x.rope.sin != y.rope.sin) found.push_back("sin");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
