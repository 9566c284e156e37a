// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of every struct of the C interface, set alone to a value of its own: the C++ struct has it there, and
// nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

Changes changed_tw_strides(const Strides& x, const Strides& y) {
  Changes found;
  if (x.batch != y.batch) found.push_back("batch");
  if (x.row != y.row) found.push_back("row");
  if (x.head != y.head) found.push_back("head");
  return found;
}

Changes changed_tw_fp8_options(const Fp8Options& x, const Fp8Options& y) {
  Changes found;
  if (x.scales != y.scales) found.push_back("scales");
  if (x.v_layout != y.v_layout) found.push_back("v_layout");
  if (x.accumulation != y.accumulation) found.push_back("accumulation");
  return found;
}

Changes changed_tw_attention_problem(const AttentionProblem& x, const AttentionProblem& y) {
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
  return found;
}

Changes changed_tw_attention_arguments(const AttentionArguments& x, const AttentionArguments& y) {
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
  return found;
}

Changes changed_tw_attention_prepare_problem(const AttentionPrepareProblem& x, const AttentionPrepareProblem& y) {
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

Changes changed_tw_attention_prepare_arguments(const AttentionPrepareArguments& x, const AttentionPrepareArguments& y) {
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
  if (x.rope != y.rope) found.push_back("rope");
  if (x.q_positions != y.q_positions) found.push_back("q_positions");
  if (x.k_positions != y.k_positions) found.push_back("k_positions");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_decode_append(const DecodeAppend& x, const DecodeAppend& y) {
  Changes found;
  if (x.is_wanted != y.is_wanted) found.push_back("is_wanted");
  if (x.rotary != y.rotary) found.push_back("rotary");
  if (x.rotary_dim != y.rotary_dim) found.push_back("rotary_dim");
  if (x.max_position != y.max_position) found.push_back("max_position");
  return found;
}

Changes changed_tw_attention_decode_problem(const AttentionDecodeProblem& x, const AttentionDecodeProblem& y) {
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
  return found;
}

Changes changed_tw_attention_decode_arguments(const AttentionDecodeArguments& x, const AttentionDecodeArguments& y) {
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
  if (x.cos != y.cos) found.push_back("cos");
  if (x.sin != y.sin) found.push_back("sin");
  if (x.out != y.out) found.push_back("out");
  if (x.lse != y.lse) found.push_back("lse");
  if (x.sink != y.sink) found.push_back("sink");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_linear_weight_info(const LinearWeightInfo& x, const LinearWeightInfo& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.activations != y.activations) found.push_back("activations");
  if (x.n != y.n) found.push_back("n");
  if (x.k != y.k) found.push_back("k");
  return found;
}

Changes changed_tw_linear_problem(const LinearProblem& x, const LinearProblem& y) {
  Changes found;
  if (x.m != y.m) found.push_back("m");
  if (x.x_dtype != y.x_dtype) found.push_back("x_dtype");
  if (x.activation_scales != y.activation_scales) found.push_back("activation_scales");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.has_bias != y.has_bias) found.push_back("has_bias");
  if (x.x_stride != y.x_stride) found.push_back("x_stride");
  if (x.out_stride != y.out_stride) found.push_back("out_stride");
  if (x.kernel != y.kernel) found.push_back("kernel");
  return found;
}

Changes changed_tw_linear_arguments(const LinearArguments& x, const LinearArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.x_scales != y.x_scales) found.push_back("x_scales");
  if (x.bias != y.bias) found.push_back("bias");
  if (x.out != y.out) found.push_back("out");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_block_scaled_weight_info(const BlockScaledWeightInfo& x, const BlockScaledWeightInfo& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.n != y.n) found.push_back("n");
  if (x.k != y.k) found.push_back("k");
  if (x.is_gate_up != y.is_gate_up) found.push_back("is_gate_up");
  return found;
}

Changes changed_tw_block_scaled_problem(const BlockScaledProblem& x, const BlockScaledProblem& y) {
  Changes found;
  if (x.m != y.m) found.push_back("m");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.x_row_bytes != y.x_row_bytes) found.push_back("x_row_bytes");
  if (x.out_row_bytes != y.out_row_bytes) found.push_back("out_row_bytes");
  if (x.kernel != y.kernel) found.push_back("kernel");
  if (x.swiglu_limit != y.swiglu_limit) found.push_back("swiglu_limit");
  return found;
}

Changes changed_tw_block_scaled_arguments(const BlockScaledArguments& x, const BlockScaledArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.x_scales != y.x_scales) found.push_back("x_scales");
  if (x.out != y.out) found.push_back("out");
  if (x.out_scales != y.out_scales) found.push_back("out_scales");
  if (x.x_tensor_scale != y.x_tensor_scale) found.push_back("x_tensor_scale");
  if (x.out_encode_scale != y.out_encode_scale) found.push_back("out_encode_scale");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_quantize_problem(const QuantizeProblem& x, const QuantizeProblem& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.scales != y.scales) found.push_back("scales");
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.rows != y.rows) found.push_back("rows");
  if (x.cols != y.cols) found.push_back("cols");
  if (x.row_stride != y.row_stride) found.push_back("row_stride");
  if (x.has_row_index != y.has_row_index) found.push_back("has_row_index");
  if (x.out_rows != y.out_rows) found.push_back("out_rows");
  if (x.out_cols != y.out_cols) found.push_back("out_cols");
  if (x.has_operand_order != y.has_operand_order) found.push_back("has_operand_order");
  if (x.has_128x4_scales != y.has_128x4_scales) found.push_back("has_128x4_scales");
  if (x.has_block_major_scales != y.has_block_major_scales) found.push_back("has_block_major_scales");
  if (x.encode_scale != y.encode_scale) found.push_back("encode_scale");
  if (x.has_encode_scale_address != y.has_encode_scale_address) found.push_back("has_encode_scale_address");
  return found;
}

Changes changed_tw_quantize_arguments(const QuantizeArguments& x, const QuantizeArguments& y) {
  Changes found;
  if (x.in != y.in) found.push_back("in");
  if (x.row_index != y.row_index) found.push_back("row_index");
  if (x.codes != y.codes) found.push_back("codes");
  if (x.scales != y.scales) found.push_back("scales");
  if (x.encode_scale != y.encode_scale) found.push_back("encode_scale");
  if (x.tensor_scale != y.tensor_scale) found.push_back("tensor_scale");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_moe_weights_info(const MoeWeightsInfo& x, const MoeWeightsInfo& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.activations != y.activations) found.push_back("activations");
  if (x.experts != y.experts) found.push_back("experts");
  if (x.hidden != y.hidden) found.push_back("hidden");
  if (x.inter != y.inter) found.push_back("inter");
  if (x.has_shared != y.has_shared) found.push_back("has_shared");
  return found;
}

Changes changed_tw_moe_problem(const MoeProblem& x, const MoeProblem& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.topk != y.topk) found.push_back("topk");
  if (x.routing != y.routing) found.push_back("routing");
  if (x.score != y.score) found.push_back("score");
  if (x.normalize != y.normalize) found.push_back("normalize");
  if (x.has_bias != y.has_bias) found.push_back("has_bias");
  if (x.route_scale != y.route_scale) found.push_back("route_scale");
  if (x.vocab != y.vocab) found.push_back("vocab");
  if (x.logits_stride != y.logits_stride) found.push_back("logits_stride");
  if (x.swiglu_limit != y.swiglu_limit) found.push_back("swiglu_limit");
  if (x.weight_after_down != y.weight_after_down) found.push_back("weight_after_down");
  if (x.out_dtype != y.out_dtype) found.push_back("out_dtype");
  if (x.kernel != y.kernel) found.push_back("kernel");
  return found;
}

Changes changed_tw_moe_arguments(const MoeArguments& x, const MoeArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.ids != y.ids) found.push_back("ids");
  if (x.weights != y.weights) found.push_back("weights");
  if (x.logits != y.logits) found.push_back("logits");
  if (x.bias != y.bias) found.push_back("bias");
  if (x.token_ids != y.token_ids) found.push_back("token_ids");
  if (x.table != y.table) found.push_back("table");
  if (x.out != y.out) found.push_back("out");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_kv_layout(const KvCacheLayout& x, const KvCacheLayout& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.page_size != y.page_size) found.push_back("page_size");
  if (x.num_pages != y.num_pages) found.push_back("num_pages");
  if (x.page_stride_bytes != y.page_stride_bytes) found.push_back("page_stride_bytes");
  return found;
}

Changes changed_tw_sparse_list(const SparseList& x, const SparseList& y) {
  Changes found;
  append(found, "cache.", changed_tw_kv_layout(x.cache, y.cache));
  if (x.topk != y.topk) found.push_back("topk");
  if (x.index_stride != y.index_stride) found.push_back("index_stride");
  if (x.lengths != y.lengths) found.push_back("lengths");
  return found;
}

Changes changed_tw_sparse_attention_problem(const SparseAttentionProblem& x, const SparseAttentionProblem& y) {
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
  return found;
}

Changes changed_tw_sparse_list_arguments(const SparseListArguments& x, const SparseListArguments& y) {
  Changes found;
  if (x.pages != y.pages) found.push_back("pages");
  if (x.indices != y.indices) found.push_back("indices");
  if (x.lengths != y.lengths) found.push_back("lengths");
  return found;
}

Changes changed_tw_sparse_attention_arguments(const SparseAttentionArguments& x, const SparseAttentionArguments& y) {
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

Changes changed_tw_rope_options(const RopeOptions& x, const RopeOptions& y) {
  Changes found;
  if (x.theta != y.theta) found.push_back("theta");
  if (x.has_yarn != y.has_yarn) found.push_back("has_yarn");
  if (x.factor != y.factor) found.push_back("factor");
  if (x.original_positions != y.original_positions) found.push_back("original_positions");
  if (x.beta_fast != y.beta_fast) found.push_back("beta_fast");
  if (x.beta_slow != y.beta_slow) found.push_back("beta_slow");
  return found;
}

Changes changed_tw_sequence_batch(const SequenceBatch& x, const SequenceBatch& y) {
  Changes found;
  if (x.batch != y.batch) found.push_back("batch");
  if (x.q_len != y.q_len) found.push_back("q_len");
  if (x.offsets != y.offsets) found.push_back("offsets");
  if (x.starts != y.starts) found.push_back("starts");
  return found;
}

Changes changed_tw_sequence_pages(const SequencePages& x, const SequencePages& y) {
  Changes found;
  if (x.pages != y.pages) found.push_back("pages");
  if (x.blocks != y.blocks) found.push_back("blocks");
  if (x.stride != y.stride) found.push_back("stride");
  return found;
}

Changes changed_tw_kv_write_arguments(const KvWriteArguments& x, const KvWriteArguments& y) {
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
  if (x.rope != y.rope) found.push_back("rope");
  if (x.rope_positions != y.rope_positions) found.push_back("rope_positions");
  if (x.slots != y.slots) found.push_back("slots");
  if (x.pages != y.pages) found.push_back("pages");
  if (x.kv_out != y.kv_out) found.push_back("kv_out");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_kv_read_arguments(const KvReadArguments& x, const KvReadArguments& y) {
  Changes found;
  if (x.count != y.count) found.push_back("count");
  if (x.rows != y.rows) found.push_back("rows");
  if (x.pages != y.pages) found.push_back("pages");
  if (x.out != y.out) found.push_back("out");
  if (x.out_stride != y.out_stride) found.push_back("out_stride");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_kv_list_arguments(const KvListArguments& x, const KvListArguments& y) {
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

Changes changed_tw_kv_cache_work(const KvCacheWork& x, const KvCacheWork& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.list_len != y.list_len) found.push_back("list_len");
  if (x.read_rows != y.read_rows) found.push_back("read_rows");
  return found;
}

Changes changed_tw_inverse_rope_arguments(const InverseRopeArguments& x, const InverseRopeArguments& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.heads != y.heads) found.push_back("heads");
  if (x.out != y.out) found.push_back("out");
  if (x.token_stride != y.token_stride) found.push_back("token_stride");
  if (x.head_stride != y.head_stride) found.push_back("head_stride");
  if (x.positions != y.positions) found.push_back("positions");
  if (x.rope != y.rope) found.push_back("rope");
  if (x.rope_positions != y.rope_positions) found.push_back("rope_positions");
  if (x.codes != y.codes) found.push_back("codes");
  if (x.scales != y.scales) found.push_back("scales");
  if (x.has_pow2_scales != y.has_pow2_scales) found.push_back("has_pow2_scales");
  if (x.has_block_major_scales != y.has_block_major_scales) found.push_back("has_block_major_scales");
  if (x.has_operand_order != y.has_operand_order) found.push_back("has_operand_order");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_compressor_problem(const CompressorProblem& x, const CompressorProblem& y) {
  Changes found;
  if (x.kind != y.kind) found.push_back("kind");
  append(found, "cache.", changed_tw_kv_layout(x.cache, y.cache));
  if (x.state_slots != y.state_slots) found.push_back("state_slots");
  if (x.ring != y.ring) found.push_back("ring");
  if (x.eps != y.eps) found.push_back("eps");
  return found;
}

Changes changed_tw_compressor_arguments(const CompressorArguments& x, const CompressorArguments& y) {
  Changes found;
  append(found, "sequences.", changed_tw_sequence_batch(x.sequences, y.sequences));
  if (x.max_tokens != y.max_tokens) found.push_back("max_tokens");
  if (x.kv != y.kv) found.push_back("kv");
  if (x.gate != y.gate) found.push_back("gate");
  if (x.kv_stride != y.kv_stride) found.push_back("kv_stride");
  if (x.gate_stride != y.gate_stride) found.push_back("gate_stride");
  if (x.ape != y.ape) found.push_back("ape");
  if (x.norm_weight != y.norm_weight) found.push_back("norm_weight");
  if (x.rope != y.rope) found.push_back("rope");
  if (x.rope_positions != y.rope_positions) found.push_back("rope_positions");
  if (x.state != y.state) found.push_back("state");
  if (x.state_slots != y.state_slots) found.push_back("state_slots");
  append(found, "table.", changed_tw_sequence_pages(x.table, y.table));
  if (x.pages != y.pages) found.push_back("pages");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_indexer_problem(const IndexerProblem& x, const IndexerProblem& y) {
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

Changes changed_tw_indexer_arguments(const IndexerArguments& x, const IndexerArguments& y) {
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
  if (x.rope != y.rope) found.push_back("rope");
  if (x.rope_positions != y.rope_positions) found.push_back("rope_positions");
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

Changes changed_tw_hyper_connection_problem(const HyperConnectionProblem& x, const HyperConnectionProblem& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.hidden != y.hidden) found.push_back("hidden");
  if (x.stream_dtype != y.stream_dtype) found.push_back("stream_dtype");
  if (x.has_merge != y.has_merge) found.push_back("has_merge");
  if (x.has_second != y.has_second) found.push_back("has_second");
  if (x.has_mix != y.has_mix) found.push_back("has_mix");
  if (x.is_head != y.is_head) found.push_back("is_head");
  if (x.result_dtype != y.result_dtype) found.push_back("result_dtype");
  if (x.second_dtype != y.second_dtype) found.push_back("second_dtype");
  if (x.iterations != y.iterations) found.push_back("iterations");
  if (x.eps != y.eps) found.push_back("eps");
  if (x.norm_eps != y.norm_eps) found.push_back("norm_eps");
  return found;
}

Changes changed_tw_hyper_connection_arguments(const HyperConnectionArguments& x, const HyperConnectionArguments& y) {
  Changes found;
  if (x.streams != y.streams) found.push_back("streams");
  if (x.merged != y.merged) found.push_back("merged");
  if (x.mix_before != y.mix_before) found.push_back("mix_before");
  if (x.result != y.result) found.push_back("result");
  if (x.second_result != y.second_result) found.push_back("second_result");
  if (x.mix_weight != y.mix_weight) found.push_back("mix_weight");
  if (x.mix_bias != y.mix_bias) found.push_back("mix_bias");
  if (x.mix_scale != y.mix_scale) found.push_back("mix_scale");
  if (x.norm_weight != y.norm_weight) found.push_back("norm_weight");
  if (x.mix != y.mix) found.push_back("mix");
  if (x.out != y.out) found.push_back("out");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_hyper_embedding_problem(const HyperEmbeddingProblem& x, const HyperEmbeddingProblem& y) {
  Changes found;
  if (x.tokens != y.tokens) found.push_back("tokens");
  if (x.hidden != y.hidden) found.push_back("hidden");
  if (x.vocab != y.vocab) found.push_back("vocab");
  if (x.stream_dtype != y.stream_dtype) found.push_back("stream_dtype");
  return found;
}

Changes changed_tw_hyper_embedding_arguments(const HyperEmbeddingArguments& x, const HyperEmbeddingArguments& y) {
  Changes found;
  if (x.table != y.table) found.push_back("table");
  if (x.ids != y.ids) found.push_back("ids");
  if (x.streams != y.streams) found.push_back("streams");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

Changes changed_tw_rms_norm_problem(const RmsNormProblem& x, const RmsNormProblem& y) {
  Changes found;
  if (x.rows != y.rows) found.push_back("rows");
  if (x.cols != y.cols) found.push_back("cols");
  if (x.x_dtype != y.x_dtype) found.push_back("x_dtype");
  if (x.x_stride != y.x_stride) found.push_back("x_stride");
  if (x.out_stride != y.out_stride) found.push_back("out_stride");
  if (x.has_weight != y.has_weight) found.push_back("has_weight");
  if (x.eps != y.eps) found.push_back("eps");
  return found;
}

Changes changed_tw_rms_norm_arguments(const RmsNormArguments& x, const RmsNormArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.weight != y.weight) found.push_back("weight");
  if (x.out != y.out) found.push_back("out");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

TEST(CApiMembers, tw_strides) {
  const Members<tw_strides, Strides> test(tw_strides_init, changed_tw_strides);
  test.has_the_defaults();
  test.sets("batch", [](auto& c) { c.batch = 1001; }, [](const auto& p) { return p.batch == 1001; });
  test.sets("row", [](auto& c) { c.row = 1002; }, [](const auto& p) { return p.row == 1002; });
  test.sets("head", [](auto& c) { c.head = 1003; }, [](const auto& p) { return p.head == 1003; });
}

TEST(CApiMembers, tw_fp8_options) {
  const Members<tw_fp8_options, Fp8Options> test(tw_fp8_options_init, changed_tw_fp8_options);
  test.has_the_defaults();
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.scales == ScaleSharing::kHead; });
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_BLOCK; }, [](const auto& p) { return p.scales == ScaleSharing::kBlock; });
  test.refuses("scales", [](auto& c) { c.scales = 77; });
  test.sets("v_layout", [](auto& c) { c.v_layout = TW_FP8_VALUE_LAYOUT_COLUMNS; }, [](const auto& p) { return p.v_layout == Fp8ValueLayout::kColumns; });
  test.refuses("v_layout", [](auto& c) { c.v_layout = 77; });
  test.sets("accumulation", [](auto& c) { c.accumulation = TW_FP8_ACCUMULATION_ONE_LEVEL; }, [](const auto& p) { return p.accumulation == Fp8Accumulation::kOneLevel; });
  test.sets("accumulation", [](auto& c) { c.accumulation = TW_FP8_ACCUMULATION_TWO_LEVEL; }, [](const auto& p) { return p.accumulation == Fp8Accumulation::kTwoLevel; });
  test.refuses("accumulation", [](auto& c) { c.accumulation = 77; });
}

TEST(CApiMembers, tw_attention_problem) {
  const Members<tw_attention_problem, AttentionProblem> test(tw_attention_problem_init, changed_tw_attention_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_E4M3; }, [](const auto& p) { return p.dtype == DType::kF8_E4M3; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1002; }, [](const auto& p) { return p.batch == 1002; });
  test.sets("heads", [](auto& c) { c.heads = 1003; }, [](const auto& p) { return p.heads == 1003; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1004; }, [](const auto& p) { return p.kv_heads == 1004; });
  test.sets("q_len", [](auto& c) { c.q_len = 1005; }, [](const auto& p) { return p.q_len == 1005; });
  test.sets("kv_len", [](auto& c) { c.kv_len = 1006; }, [](const auto& p) { return p.kv_len == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("scale", [](auto& c) { c.scale = 8.25; }, [](const auto& p) { return p.scale == 8.25; });
  test.sets("causal", [](auto& c) { c.causal = 1; }, [](const auto& p) { return p.causal == true; });
  test.sets("window_left", [](auto& c) { c.window_left = 1010; }, [](const auto& p) { return p.window_left == 1010; });
  test.sets("window_right", [](auto& c) { c.window_right = 1011; }, [](const auto& p) { return p.window_right == 1011; });
  test.sets("softcap", [](auto& c) { c.softcap = 12.25; }, [](const auto& p) { return p.softcap == 12.25; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("is_packed", [](auto& c) { c.is_packed = 1; }, [](const auto& p) { return p.is_packed == true; });
  test.sets("total_q", [](auto& c) { c.total_q = 1016; }, [](const auto& p) { return p.total_q == 1016; });
  test.sets("total_kv", [](auto& c) { c.total_kv = 1017; }, [](const auto& p) { return p.total_kv == 1017; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1018; }, [](const auto& p) { return p.q_strides.batch == 1018; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1019; }, [](const auto& p) { return p.q_strides.row == 1019; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1020; }, [](const auto& p) { return p.q_strides.head == 1020; });
  test.sets("k_strides.batch", [](auto& c) { c.k_strides.batch = 1021; }, [](const auto& p) { return p.k_strides.batch == 1021; });
  test.sets("k_strides.row", [](auto& c) { c.k_strides.row = 1022; }, [](const auto& p) { return p.k_strides.row == 1022; });
  test.sets("k_strides.head", [](auto& c) { c.k_strides.head = 1023; }, [](const auto& p) { return p.k_strides.head == 1023; });
  test.sets("v_strides.batch", [](auto& c) { c.v_strides.batch = 1024; }, [](const auto& p) { return p.v_strides.batch == 1024; });
  test.sets("v_strides.row", [](auto& c) { c.v_strides.row = 1025; }, [](const auto& p) { return p.v_strides.row == 1025; });
  test.sets("v_strides.head", [](auto& c) { c.v_strides.head = 1026; }, [](const auto& p) { return p.v_strides.head == 1026; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1027; }, [](const auto& p) { return p.out_strides.batch == 1027; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1028; }, [](const auto& p) { return p.out_strides.row == 1028; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1029; }, [](const auto& p) { return p.out_strides.head == 1029; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 30"; }, [](const auto& p) { return p.kernel == "sentinel 30"; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_BF16; }, [](const auto& p) { return p.out_dtype == DType::kBF16; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F16; }, [](const auto& p) { return p.out_dtype == DType::kF16; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("fp8.scales", [](auto& c) { c.fp8.scales = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.fp8.scales == ScaleSharing::kHead; });
  test.sets("fp8.scales", [](auto& c) { c.fp8.scales = TW_SCALE_SHARING_BLOCK; }, [](const auto& p) { return p.fp8.scales == ScaleSharing::kBlock; });
  test.refuses("fp8.scales", [](auto& c) { c.fp8.scales = 77; });
  test.sets("fp8.v_layout", [](auto& c) { c.fp8.v_layout = TW_FP8_VALUE_LAYOUT_COLUMNS; }, [](const auto& p) { return p.fp8.v_layout == Fp8ValueLayout::kColumns; });
  test.refuses("fp8.v_layout", [](auto& c) { c.fp8.v_layout = 77; });
  test.sets("fp8.accumulation", [](auto& c) { c.fp8.accumulation = TW_FP8_ACCUMULATION_ONE_LEVEL; }, [](const auto& p) { return p.fp8.accumulation == Fp8Accumulation::kOneLevel; });
  test.sets("fp8.accumulation", [](auto& c) { c.fp8.accumulation = TW_FP8_ACCUMULATION_TWO_LEVEL; }, [](const auto& p) { return p.fp8.accumulation == Fp8Accumulation::kTwoLevel; });
  test.refuses("fp8.accumulation", [](auto& c) { c.fp8.accumulation = 77; });
}

TEST(CApiMembers, tw_attention_arguments) {
  const Members<tw_attention_arguments, AttentionArguments> test(tw_attention_arguments_init, changed_tw_attention_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("k", [](auto& c) { c.k = at<const void>(2); }, [](const auto& p) { return p.k == at<const void>(2); });
  test.sets("v", [](auto& c) { c.v = at<const void>(3); }, [](const auto& p) { return p.v == at<const void>(3); });
  test.sets("out", [](auto& c) { c.out = at<void>(4); }, [](const auto& p) { return p.out == at<void>(4); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(5); }, [](const auto& p) { return p.lse == at<float>(5); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(6); }, [](const auto& p) { return p.sink == at<const float>(6); });
  test.sets("cu_q", [](auto& c) { c.cu_q = at<const int32_t>(7); }, [](const auto& p) { return p.cu_q == at<const int32_t>(7); });
  test.sets("cu_kv", [](auto& c) { c.cu_kv = at<const int32_t>(8); }, [](const auto& p) { return p.cu_kv == at<const int32_t>(8); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(9); }, [](const auto& p) { return p.workspace == at<void>(9); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(10); }, [](const auto& p) { return p.stream == at<void>(10); });
  test.sets("q_descale", [](auto& c) { c.q_descale = at<const float>(11); }, [](const auto& p) { return p.q_descale == at<const float>(11); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<const float>(12); }, [](const auto& p) { return p.k_descale == at<const float>(12); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<const float>(13); }, [](const auto& p) { return p.v_descale == at<const float>(13); });
  test.sets("v_descale_max", [](auto& c) { c.v_descale_max = at<const float>(14); }, [](const auto& p) { return p.v_descale_max == at<const float>(14); });
}

TEST(CApiMembers, tw_attention_prepare_problem) {
  const Members<tw_attention_prepare_problem, AttentionPrepareProblem> test(tw_attention_prepare_problem_init, changed_tw_attention_prepare_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1002; }, [](const auto& p) { return p.batch == 1002; });
  test.sets("heads", [](auto& c) { c.heads = 1003; }, [](const auto& p) { return p.heads == 1003; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1004; }, [](const auto& p) { return p.kv_heads == 1004; });
  test.sets("q_len", [](auto& c) { c.q_len = 1005; }, [](const auto& p) { return p.q_len == 1005; });
  test.sets("kv_len", [](auto& c) { c.kv_len = 1006; }, [](const auto& p) { return p.kv_len == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("is_packed", [](auto& c) { c.is_packed = 1; }, [](const auto& p) { return p.is_packed == true; });
  test.sets("total_q", [](auto& c) { c.total_q = 1009; }, [](const auto& p) { return p.total_q == 1009; });
  test.sets("total_kv", [](auto& c) { c.total_kv = 1010; }, [](const auto& p) { return p.total_kv == 1010; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1011; }, [](const auto& p) { return p.q_strides.batch == 1011; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1012; }, [](const auto& p) { return p.q_strides.row == 1012; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1013; }, [](const auto& p) { return p.q_strides.head == 1013; });
  test.sets("k_strides.batch", [](auto& c) { c.k_strides.batch = 1014; }, [](const auto& p) { return p.k_strides.batch == 1014; });
  test.sets("k_strides.row", [](auto& c) { c.k_strides.row = 1015; }, [](const auto& p) { return p.k_strides.row == 1015; });
  test.sets("k_strides.head", [](auto& c) { c.k_strides.head = 1016; }, [](const auto& p) { return p.k_strides.head == 1016; });
  test.sets("v_strides.batch", [](auto& c) { c.v_strides.batch = 1017; }, [](const auto& p) { return p.v_strides.batch == 1017; });
  test.sets("v_strides.row", [](auto& c) { c.v_strides.row = 1018; }, [](const auto& p) { return p.v_strides.row == 1018; });
  test.sets("v_strides.head", [](auto& c) { c.v_strides.head = 1019; }, [](const auto& p) { return p.v_strides.head == 1019; });
  test.sets("q8_strides.batch", [](auto& c) { c.q8_strides.batch = 1020; }, [](const auto& p) { return p.q8_strides.batch == 1020; });
  test.sets("q8_strides.row", [](auto& c) { c.q8_strides.row = 1021; }, [](const auto& p) { return p.q8_strides.row == 1021; });
  test.sets("q8_strides.head", [](auto& c) { c.q8_strides.head = 1022; }, [](const auto& p) { return p.q8_strides.head == 1022; });
  test.sets("k8_strides.batch", [](auto& c) { c.k8_strides.batch = 1023; }, [](const auto& p) { return p.k8_strides.batch == 1023; });
  test.sets("k8_strides.row", [](auto& c) { c.k8_strides.row = 1024; }, [](const auto& p) { return p.k8_strides.row == 1024; });
  test.sets("k8_strides.head", [](auto& c) { c.k8_strides.head = 1025; }, [](const auto& p) { return p.k8_strides.head == 1025; });
  test.sets("v8_strides.batch", [](auto& c) { c.v8_strides.batch = 1026; }, [](const auto& p) { return p.v8_strides.batch == 1026; });
  test.sets("v8_strides.row", [](auto& c) { c.v8_strides.row = 1027; }, [](const auto& p) { return p.v8_strides.row == 1027; });
  test.sets("v8_strides.head", [](auto& c) { c.v8_strides.head = 1028; }, [](const auto& p) { return p.v8_strides.head == 1028; });
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_TENSOR; }, [](const auto& p) { return p.scales == ScaleSharing::kTensor; });
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.scales == ScaleSharing::kHead; });
  test.refuses("scales", [](auto& c) { c.scales = 77; });
  test.sets("v_layout", [](auto& c) { c.v_layout = TW_FP8_VALUE_LAYOUT_ROWS; }, [](const auto& p) { return p.v_layout == Fp8ValueLayout::kRows; });
  test.refuses("v_layout", [](auto& c) { c.v_layout = 77; });
  test.sets("is_rotated", [](auto& c) { c.is_rotated = 0; }, [](const auto& p) { return p.is_rotated == false; });
  test.sets("sign_seed", [](auto& c) { c.sign_seed = 1032; }, [](const auto& p) { return p.sign_seed == 1032; });
  test.sets("rope", [](auto& c) { c.rope = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.rope == RotaryPairs::kInterleaved; });
  test.sets("rope", [](auto& c) { c.rope = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.rope == RotaryPairs::kHalves; });
  test.refuses("rope", [](auto& c) { c.rope = 77; });
  test.sets("rotary_dim", [](auto& c) { c.rotary_dim = 1034; }, [](const auto& p) { return p.rotary_dim == 1034; });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1035; }, [](const auto& p) { return p.rope_positions == 1035; });
  test.sets("has_positions", [](auto& c) { c.has_positions = 1; }, [](const auto& p) { return p.has_positions == true; });
}

TEST(CApiMembers, tw_attention_prepare_arguments) {
  const Members<tw_attention_prepare_arguments, AttentionPrepareArguments> test(tw_attention_prepare_arguments_init, changed_tw_attention_prepare_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("k", [](auto& c) { c.k = at<const void>(2); }, [](const auto& p) { return p.k == at<const void>(2); });
  test.sets("v", [](auto& c) { c.v = at<const void>(3); }, [](const auto& p) { return p.v == at<const void>(3); });
  test.sets("q8", [](auto& c) { c.q8 = at<void>(4); }, [](const auto& p) { return p.q8 == at<void>(4); });
  test.sets("k8", [](auto& c) { c.k8 = at<void>(5); }, [](const auto& p) { return p.k8 == at<void>(5); });
  test.sets("v8", [](auto& c) { c.v8 = at<void>(6); }, [](const auto& p) { return p.v8 == at<void>(6); });
  test.sets("q_descale", [](auto& c) { c.q_descale = at<float>(7); }, [](const auto& p) { return p.q_descale == at<float>(7); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<float>(8); }, [](const auto& p) { return p.k_descale == at<float>(8); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<float>(9); }, [](const auto& p) { return p.v_descale == at<float>(9); });
  test.sets("v_descale_max", [](auto& c) { c.v_descale_max = at<float>(10); }, [](const auto& p) { return p.v_descale_max == at<float>(10); });
  test.sets("cu_q", [](auto& c) { c.cu_q = at<const int32_t>(11); }, [](const auto& p) { return p.cu_q == at<const int32_t>(11); });
  test.sets("cu_kv", [](auto& c) { c.cu_kv = at<const int32_t>(12); }, [](const auto& p) { return p.cu_kv == at<const int32_t>(12); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(13); }, [](const auto& p) { return p.rope == at<const float>(13); });
  test.sets("q_positions", [](auto& c) { c.q_positions = at<const int32_t>(14); }, [](const auto& p) { return p.q_positions == at<const int32_t>(14); });
  test.sets("k_positions", [](auto& c) { c.k_positions = at<const int32_t>(15); }, [](const auto& p) { return p.k_positions == at<const int32_t>(15); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(16); }, [](const auto& p) { return p.workspace == at<void>(16); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(17); }, [](const auto& p) { return p.stream == at<void>(17); });
}

TEST(CApiMembers, tw_decode_append) {
  const Members<tw_decode_append, DecodeAppend> test(tw_decode_append_init, changed_tw_decode_append);
  test.has_the_defaults();
  test.sets("is_wanted", [](auto& c) { c.is_wanted = 1; }, [](const auto& p) { return p.is_wanted == true; });
  test.sets("rotary", [](auto& c) { c.rotary = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.rotary == RotaryPairs::kInterleaved; });
  test.sets("rotary", [](auto& c) { c.rotary = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.rotary == RotaryPairs::kHalves; });
  test.refuses("rotary", [](auto& c) { c.rotary = 77; });
  test.sets("rotary_dim", [](auto& c) { c.rotary_dim = 1003; }, [](const auto& p) { return p.rotary_dim == 1003; });
  test.sets("max_position", [](auto& c) { c.max_position = 1004; }, [](const auto& p) { return p.max_position == 1004; });
}

TEST(CApiMembers, tw_attention_decode_problem) {
  const Members<tw_attention_decode_problem, AttentionDecodeProblem> test(tw_attention_decode_problem_init, changed_tw_attention_decode_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_F16; }, [](const auto& p) { return p.kv_dtype == DType::kF16; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_E4M3; }, [](const auto& p) { return p.kv_dtype == DType::kF8_E4M3; });
  test.refuses("kv_dtype", [](auto& c) { c.kv_dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1003; }, [](const auto& p) { return p.batch == 1003; });
  test.sets("q_len", [](auto& c) { c.q_len = 1004; }, [](const auto& p) { return p.q_len == 1004; });
  test.sets("heads", [](auto& c) { c.heads = 1005; }, [](const auto& p) { return p.heads == 1005; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1006; }, [](const auto& p) { return p.kv_heads == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("max_len", [](auto& c) { c.max_len = 1008; }, [](const auto& p) { return p.max_len == 1008; });
  test.sets("page_size", [](auto& c) { c.page_size = 1009; }, [](const auto& p) { return p.page_size == 1009; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1010; }, [](const auto& p) { return p.num_pages == 1010; });
  test.sets("max_pages", [](auto& c) { c.max_pages = 1011; }, [](const auto& p) { return p.max_pages == 1011; });
  test.sets("table_stride", [](auto& c) { c.table_stride = 1012; }, [](const auto& p) { return p.table_stride == 1012; });
  test.sets("scale", [](auto& c) { c.scale = 13.25; }, [](const auto& p) { return p.scale == 13.25; });
  test.sets("causal", [](auto& c) { c.causal = 0; }, [](const auto& p) { return p.causal == false; });
  test.sets("window_left", [](auto& c) { c.window_left = 1015; }, [](const auto& p) { return p.window_left == 1015; });
  test.sets("softcap", [](auto& c) { c.softcap = 16.25; }, [](const auto& p) { return p.softcap == 16.25; });
  test.sets("descale", [](auto& c) { c.descale = TW_SCALE_SHARING_TENSOR; }, [](const auto& p) { return p.descale == ScaleSharing::kTensor; });
  test.sets("descale", [](auto& c) { c.descale = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.descale == ScaleSharing::kHead; });
  test.refuses("descale", [](auto& c) { c.descale = 77; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("append.is_wanted", [](auto& c) { c.append.is_wanted = 1; }, [](const auto& p) { return p.append.is_wanted == true; });
  test.sets("append.rotary", [](auto& c) { c.append.rotary = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.append.rotary == RotaryPairs::kInterleaved; });
  test.sets("append.rotary", [](auto& c) { c.append.rotary = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.append.rotary == RotaryPairs::kHalves; });
  test.refuses("append.rotary", [](auto& c) { c.append.rotary = 77; });
  test.sets("append.rotary_dim", [](auto& c) { c.append.rotary_dim = 1022; }, [](const auto& p) { return p.append.rotary_dim == 1022; });
  test.sets("append.max_position", [](auto& c) { c.append.max_position = 1023; }, [](const auto& p) { return p.append.max_position == 1023; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1024; }, [](const auto& p) { return p.q_strides.batch == 1024; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1025; }, [](const auto& p) { return p.q_strides.row == 1025; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1026; }, [](const auto& p) { return p.q_strides.head == 1026; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1027; }, [](const auto& p) { return p.out_strides.batch == 1027; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1028; }, [](const auto& p) { return p.out_strides.row == 1028; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1029; }, [](const auto& p) { return p.out_strides.head == 1029; });
  test.sets("new_k_strides.batch", [](auto& c) { c.new_k_strides.batch = 1030; }, [](const auto& p) { return p.new_k_strides.batch == 1030; });
  test.sets("new_k_strides.row", [](auto& c) { c.new_k_strides.row = 1031; }, [](const auto& p) { return p.new_k_strides.row == 1031; });
  test.sets("new_k_strides.head", [](auto& c) { c.new_k_strides.head = 1032; }, [](const auto& p) { return p.new_k_strides.head == 1032; });
  test.sets("new_v_strides.batch", [](auto& c) { c.new_v_strides.batch = 1033; }, [](const auto& p) { return p.new_v_strides.batch == 1033; });
  test.sets("new_v_strides.row", [](auto& c) { c.new_v_strides.row = 1034; }, [](const auto& p) { return p.new_v_strides.row == 1034; });
  test.sets("new_v_strides.head", [](auto& c) { c.new_v_strides.head = 1035; }, [](const auto& p) { return p.new_v_strides.head == 1035; });
  test.sets("cache_strides.batch", [](auto& c) { c.cache_strides.batch = 1036; }, [](const auto& p) { return p.cache_strides.batch == 1036; });
  test.sets("cache_strides.row", [](auto& c) { c.cache_strides.row = 1037; }, [](const auto& p) { return p.cache_strides.row == 1037; });
  test.sets("cache_strides.head", [](auto& c) { c.cache_strides.head = 1038; }, [](const auto& p) { return p.cache_strides.head == 1038; });
  test.sets("splits", [](auto& c) { c.splits = 1039; }, [](const auto& p) { return p.splits == 1039; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 40"; }, [](const auto& p) { return p.kernel == "sentinel 40"; });
}

TEST(CApiMembers, tw_attention_decode_arguments) {
  const Members<tw_attention_decode_arguments, AttentionDecodeArguments> test(tw_attention_decode_arguments_init, changed_tw_attention_decode_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("k_cache", [](auto& c) { c.k_cache = at<void>(2); }, [](const auto& p) { return p.k_cache == at<void>(2); });
  test.sets("v_cache", [](auto& c) { c.v_cache = at<void>(3); }, [](const auto& p) { return p.v_cache == at<void>(3); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(4); }, [](const auto& p) { return p.lengths == at<const int32_t>(4); });
  test.sets("block_table", [](auto& c) { c.block_table = at<const int32_t>(5); }, [](const auto& p) { return p.block_table == at<const int32_t>(5); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<const float>(6); }, [](const auto& p) { return p.k_descale == at<const float>(6); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<const float>(7); }, [](const auto& p) { return p.v_descale == at<const float>(7); });
  test.sets("new_k", [](auto& c) { c.new_k = at<const void>(8); }, [](const auto& p) { return p.new_k == at<const void>(8); });
  test.sets("new_v", [](auto& c) { c.new_v = at<const void>(9); }, [](const auto& p) { return p.new_v == at<const void>(9); });
  test.sets("cos", [](auto& c) { c.cos = at<const float>(10); }, [](const auto& p) { return p.cos == at<const float>(10); });
  test.sets("sin", [](auto& c) { c.sin = at<const float>(11); }, [](const auto& p) { return p.sin == at<const float>(11); });
  test.sets("out", [](auto& c) { c.out = at<void>(12); }, [](const auto& p) { return p.out == at<void>(12); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(13); }, [](const auto& p) { return p.lse == at<float>(13); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(14); }, [](const auto& p) { return p.sink == at<const float>(14); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(15); }, [](const auto& p) { return p.workspace == at<void>(15); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(16); }, [](const auto& p) { return p.stream == at<void>(16); });
}

TEST(CApiMembers, tw_linear_weight_info) {
  const Members<tw_linear_weight_info, LinearWeightInfo> test(tw_linear_weight_info_init, changed_tw_linear_weight_info);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_FP8; }, [](const auto& p) { return p.activations == LinearActivations::kFp8; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_BLOCK_SCALED; }, [](const auto& p) { return p.activations == LinearActivations::kBlockScaled; });
  test.refuses("activations", [](auto& c) { c.activations = 77; });
  test.sets("n", [](auto& c) { c.n = 1003; }, [](const auto& p) { return p.n == 1003; });
  test.sets("k", [](auto& c) { c.k = 1004; }, [](const auto& p) { return p.k == 1004; });
}

TEST(CApiMembers, tw_linear_problem) {
  const Members<tw_linear_problem, LinearProblem> test(tw_linear_problem_init, changed_tw_linear_problem);
  test.has_the_defaults();
  test.sets("m", [](auto& c) { c.m = 1001; }, [](const auto& p) { return p.m == 1001; });
  test.sets("x_dtype", [](auto& c) { c.x_dtype = TW_E4M3; }, [](const auto& p) { return p.x_dtype == DType::kF8_E4M3; });
  test.refuses("x_dtype", [](auto& c) { c.x_dtype = 77; });
  test.sets("activation_scales", [](auto& c) { c.activation_scales = TW_SCALE_SHARING_ROW; }, [](const auto& p) { return p.activation_scales == ScaleSharing::kRow; });
  test.sets("activation_scales", [](auto& c) { c.activation_scales = TW_SCALE_SHARING_BLOCK; }, [](const auto& p) { return p.activation_scales == ScaleSharing::kBlock; });
  test.refuses("activation_scales", [](auto& c) { c.activation_scales = 77; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F32; }, [](const auto& p) { return p.out_dtype == DType::kF32; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("has_bias", [](auto& c) { c.has_bias = 1; }, [](const auto& p) { return p.has_bias == true; });
  test.sets("x_stride", [](auto& c) { c.x_stride = 1006; }, [](const auto& p) { return p.x_stride == 1006; });
  test.sets("out_stride", [](auto& c) { c.out_stride = 1007; }, [](const auto& p) { return p.out_stride == 1007; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 8"; }, [](const auto& p) { return p.kernel == "sentinel 8"; });
}

TEST(CApiMembers, tw_linear_arguments) {
  const Members<tw_linear_arguments, LinearArguments> test(tw_linear_arguments_init, changed_tw_linear_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("x_scales", [](auto& c) { c.x_scales = at<const float>(2); }, [](const auto& p) { return p.x_scales == at<const float>(2); });
  test.sets("bias", [](auto& c) { c.bias = at<const float>(3); }, [](const auto& p) { return p.bias == at<const float>(3); });
  test.sets("out", [](auto& c) { c.out = at<void>(4); }, [](const auto& p) { return p.out == at<void>(4); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(5); }, [](const auto& p) { return p.workspace == at<void>(5); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(6); }, [](const auto& p) { return p.stream == at<void>(6); });
}

TEST(CApiMembers, tw_block_scaled_weight_info) {
  const Members<tw_block_scaled_weight_info, BlockScaledWeightInfo> test(tw_block_scaled_weight_info_init, changed_tw_block_scaled_weight_info);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("n", [](auto& c) { c.n = 1002; }, [](const auto& p) { return p.n == 1002; });
  test.sets("k", [](auto& c) { c.k = 1003; }, [](const auto& p) { return p.k == 1003; });
  test.sets("is_gate_up", [](auto& c) { c.is_gate_up = 1; }, [](const auto& p) { return p.is_gate_up == true; });
}

TEST(CApiMembers, tw_block_scaled_problem) {
  const Members<tw_block_scaled_problem, BlockScaledProblem> test(tw_block_scaled_problem_init, changed_tw_block_scaled_problem);
  test.has_the_defaults();
  test.sets("m", [](auto& c) { c.m = 1001; }, [](const auto& p) { return p.m == 1001; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F4; }, [](const auto& p) { return p.out_dtype == DType::kF4; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_E4M3; }, [](const auto& p) { return p.out_dtype == DType::kF8_E4M3; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("x_row_bytes", [](auto& c) { c.x_row_bytes = 1003; }, [](const auto& p) { return p.x_row_bytes == 1003; });
  test.sets("out_row_bytes", [](auto& c) { c.out_row_bytes = 1004; }, [](const auto& p) { return p.out_row_bytes == 1004; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 5"; }, [](const auto& p) { return p.kernel == "sentinel 5"; });
  test.sets("swiglu_limit", [](auto& c) { c.swiglu_limit = 6.25; }, [](const auto& p) { return p.swiglu_limit == 6.25; });
}

TEST(CApiMembers, tw_block_scaled_arguments) {
  const Members<tw_block_scaled_arguments, BlockScaledArguments> test(tw_block_scaled_arguments_init, changed_tw_block_scaled_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("x_scales", [](auto& c) { c.x_scales = at<const void>(2); }, [](const auto& p) { return p.x_scales == at<const void>(2); });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("out_scales", [](auto& c) { c.out_scales = at<void>(4); }, [](const auto& p) { return p.out_scales == at<void>(4); });
  test.sets("x_tensor_scale", [](auto& c) { c.x_tensor_scale = 5.25f; }, [](const auto& p) { return p.x_tensor_scale == 5.25f; });
  test.sets("out_encode_scale", [](auto& c) { c.out_encode_scale = 6.25f; }, [](const auto& p) { return p.out_encode_scale == 6.25f; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(7); }, [](const auto& p) { return p.stream == at<void>(7); });
}

TEST(CApiMembers, tw_quantize_problem) {
  const Members<tw_quantize_problem, QuantizeProblem> test(tw_quantize_problem_init, changed_tw_quantize_problem);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = "sentinel 1"; }, [](const auto& p) { return p.format == "sentinel 1"; });
  test.sets("scales", [](auto& c) { c.scales = "sentinel 2"; }, [](const auto& p) { return p.scales == "sentinel 2"; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_F32; }, [](const auto& p) { return p.dtype == DType::kF32; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("rows", [](auto& c) { c.rows = 1004; }, [](const auto& p) { return p.rows == 1004; });
  test.sets("cols", [](auto& c) { c.cols = 1005; }, [](const auto& p) { return p.cols == 1005; });
  test.sets("row_stride", [](auto& c) { c.row_stride = 1006; }, [](const auto& p) { return p.row_stride == 1006; });
  test.sets("has_row_index", [](auto& c) { c.has_row_index = 1; }, [](const auto& p) { return p.has_row_index == true; });
  test.sets("out_rows", [](auto& c) { c.out_rows = 1008; }, [](const auto& p) { return p.out_rows == 1008; });
  test.sets("out_cols", [](auto& c) { c.out_cols = 1009; }, [](const auto& p) { return p.out_cols == 1009; });
  test.sets("has_operand_order", [](auto& c) { c.has_operand_order = 1; }, [](const auto& p) { return p.has_operand_order == true; });
  test.sets("has_128x4_scales", [](auto& c) { c.has_128x4_scales = 1; }, [](const auto& p) { return p.has_128x4_scales == true; });
  test.sets("has_block_major_scales", [](auto& c) { c.has_block_major_scales = 1; }, [](const auto& p) { return p.has_block_major_scales == true; });
  test.sets("encode_scale", [](auto& c) { c.encode_scale = 13.25f; }, [](const auto& p) { return p.encode_scale == 13.25f; });
  test.sets("has_encode_scale_address", [](auto& c) { c.has_encode_scale_address = 1; }, [](const auto& p) { return p.has_encode_scale_address == true; });
}

TEST(CApiMembers, tw_quantize_arguments) {
  const Members<tw_quantize_arguments, QuantizeArguments> test(tw_quantize_arguments_init, changed_tw_quantize_arguments);
  test.has_the_defaults();
  test.sets("in", [](auto& c) { c.in = at<const void>(1); }, [](const auto& p) { return p.in == at<const void>(1); });
  test.sets("row_index", [](auto& c) { c.row_index = at<const int32_t>(2); }, [](const auto& p) { return p.row_index == at<const int32_t>(2); });
  test.sets("codes", [](auto& c) { c.codes = at<void>(3); }, [](const auto& p) { return p.codes == at<void>(3); });
  test.sets("scales", [](auto& c) { c.scales = at<void>(4); }, [](const auto& p) { return p.scales == at<void>(4); });
  test.sets("encode_scale", [](auto& c) { c.encode_scale = at<const float>(5); }, [](const auto& p) { return p.encode_scale == at<const float>(5); });
  test.sets("tensor_scale", [](auto& c) { c.tensor_scale = at<float>(6); }, [](const auto& p) { return p.tensor_scale == at<float>(6); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(7); }, [](const auto& p) { return p.workspace == at<void>(7); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(8); }, [](const auto& p) { return p.stream == at<void>(8); });
}

TEST(CApiMembers, tw_moe_weights_info) {
  const Members<tw_moe_weights_info, MoeWeightsInfo> test(tw_moe_weights_info_init, changed_tw_moe_weights_info);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_FP8; }, [](const auto& p) { return p.activations == LinearActivations::kFp8; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_BLOCK_SCALED; }, [](const auto& p) { return p.activations == LinearActivations::kBlockScaled; });
  test.refuses("activations", [](auto& c) { c.activations = 77; });
  test.sets("experts", [](auto& c) { c.experts = 1003; }, [](const auto& p) { return p.experts == 1003; });
  test.sets("hidden", [](auto& c) { c.hidden = 1004; }, [](const auto& p) { return p.hidden == 1004; });
  test.sets("inter", [](auto& c) { c.inter = 1005; }, [](const auto& p) { return p.inter == 1005; });
  test.sets("has_shared", [](auto& c) { c.has_shared = 1; }, [](const auto& p) { return p.has_shared == true; });
}

TEST(CApiMembers, tw_moe_problem) {
  const Members<tw_moe_problem, MoeProblem> test(tw_moe_problem_init, changed_tw_moe_problem);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("topk", [](auto& c) { c.topk = 1002; }, [](const auto& p) { return p.topk == 1002; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_LOGITS; }, [](const auto& p) { return p.routing == MoeRouting::kLogits; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_HASH; }, [](const auto& p) { return p.routing == MoeRouting::kHash; });
  test.refuses("routing", [](auto& c) { c.routing = 77; });
  test.sets("score", [](auto& c) { c.score = TW_MOE_SCORE_SQRT_SOFTPLUS; }, [](const auto& p) { return p.score == MoeScore::kSqrtSoftplus; });
  test.refuses("score", [](auto& c) { c.score = 77; });
  test.sets("normalize", [](auto& c) { c.normalize = 0; }, [](const auto& p) { return p.normalize == false; });
  test.sets("has_bias", [](auto& c) { c.has_bias = 1; }, [](const auto& p) { return p.has_bias == true; });
  test.sets("route_scale", [](auto& c) { c.route_scale = 7.25; }, [](const auto& p) { return p.route_scale == 7.25; });
  test.sets("vocab", [](auto& c) { c.vocab = 1008; }, [](const auto& p) { return p.vocab == 1008; });
  test.sets("logits_stride", [](auto& c) { c.logits_stride = 1009; }, [](const auto& p) { return p.logits_stride == 1009; });
  test.sets("swiglu_limit", [](auto& c) { c.swiglu_limit = 10.25; }, [](const auto& p) { return p.swiglu_limit == 10.25; });
  test.sets("weight_after_down", [](auto& c) { c.weight_after_down = 1; }, [](const auto& p) { return p.weight_after_down == true; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F32; }, [](const auto& p) { return p.out_dtype == DType::kF32; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 13"; }, [](const auto& p) { return p.kernel == "sentinel 13"; });
}

TEST(CApiMembers, tw_moe_arguments) {
  const Members<tw_moe_arguments, MoeArguments> test(tw_moe_arguments_init, changed_tw_moe_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("ids", [](auto& c) { c.ids = at<const int32_t>(2); }, [](const auto& p) { return p.ids == at<const int32_t>(2); });
  test.sets("weights", [](auto& c) { c.weights = at<const float>(3); }, [](const auto& p) { return p.weights == at<const float>(3); });
  test.sets("logits", [](auto& c) { c.logits = at<const float>(4); }, [](const auto& p) { return p.logits == at<const float>(4); });
  test.sets("bias", [](auto& c) { c.bias = at<const float>(5); }, [](const auto& p) { return p.bias == at<const float>(5); });
  test.sets("token_ids", [](auto& c) { c.token_ids = at<const int32_t>(6); }, [](const auto& p) { return p.token_ids == at<const int32_t>(6); });
  test.sets("table", [](auto& c) { c.table = at<const int32_t>(7); }, [](const auto& p) { return p.table == at<const int32_t>(7); });
  test.sets("out", [](auto& c) { c.out = at<void>(8); }, [](const auto& p) { return p.out == at<void>(8); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(9); }, [](const auto& p) { return p.workspace == at<void>(9); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(10); }, [](const auto& p) { return p.stream == at<void>(10); });
}

TEST(CApiMembers, tw_kv_layout) {
  const Members<tw_kv_layout, KvCacheLayout> test(tw_kv_layout_init, changed_tw_kv_layout);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.format == NumberFormat::kNvfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("page_size", [](auto& c) { c.page_size = 1002; }, [](const auto& p) { return p.page_size == 1002; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1003; }, [](const auto& p) { return p.num_pages == 1003; });
  test.sets("page_stride_bytes", [](auto& c) { c.page_stride_bytes = 1004; }, [](const auto& p) { return p.page_stride_bytes == 1004; });
}

TEST(CApiMembers, tw_sparse_list) {
  const Members<tw_sparse_list, SparseList> test(tw_sparse_list_init, changed_tw_sparse_list);
  test.has_the_defaults();
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.cache.format == NumberFormat::kBf16; });
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.cache.format == NumberFormat::kNvfp4; });
  test.refuses("cache.format", [](auto& c) { c.cache.format = 77; });
  test.sets("cache.page_size", [](auto& c) { c.cache.page_size = 1002; }, [](const auto& p) { return p.cache.page_size == 1002; });
  test.sets("cache.num_pages", [](auto& c) { c.cache.num_pages = 1003; }, [](const auto& p) { return p.cache.num_pages == 1003; });
  test.sets("cache.page_stride_bytes", [](auto& c) { c.cache.page_stride_bytes = 1004; }, [](const auto& p) { return p.cache.page_stride_bytes == 1004; });
  test.sets("topk", [](auto& c) { c.topk = 1005; }, [](const auto& p) { return p.topk == 1005; });
  test.sets("index_stride", [](auto& c) { c.index_stride = 1006; }, [](const auto& p) { return p.index_stride == 1006; });
  test.sets("lengths", [](auto& c) { c.lengths = TW_SPARSE_LENGTHS_PER_BATCH; }, [](const auto& p) { return p.lengths == SparseLengths::kPerBatch; });
  test.sets("lengths", [](auto& c) { c.lengths = TW_SPARSE_LENGTHS_PER_QUERY; }, [](const auto& p) { return p.lengths == SparseLengths::kPerQuery; });
  test.refuses("lengths", [](auto& c) { c.lengths = 77; });
}

TEST(CApiMembers, tw_sparse_attention_problem) {
  const Members<tw_sparse_attention_problem, SparseAttentionProblem> test(tw_sparse_attention_problem_init, changed_tw_sparse_attention_problem);
  test.has_the_defaults();
  test.sets("batch", [](auto& c) { c.batch = 1001; }, [](const auto& p) { return p.batch == 1001; });
  test.sets("q_len", [](auto& c) { c.q_len = 1002; }, [](const auto& p) { return p.q_len == 1002; });
  test.sets("heads", [](auto& c) { c.heads = 1003; }, [](const auto& p) { return p.heads == 1003; });
  test.sets("scale", [](auto& c) { c.scale = 4.25; }, [](const auto& p) { return p.scale == 4.25; });
  test.sets("window.cache.format", [](auto& c) { c.window.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.window.cache.format == NumberFormat::kBf16; });
  test.sets("window.cache.format", [](auto& c) { c.window.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.window.cache.format == NumberFormat::kNvfp4; });
  test.refuses("window.cache.format", [](auto& c) { c.window.cache.format = 77; });
  test.sets("window.cache.page_size", [](auto& c) { c.window.cache.page_size = 1006; }, [](const auto& p) { return p.window.cache.page_size == 1006; });
  test.sets("window.cache.num_pages", [](auto& c) { c.window.cache.num_pages = 1007; }, [](const auto& p) { return p.window.cache.num_pages == 1007; });
  test.sets("window.cache.page_stride_bytes", [](auto& c) { c.window.cache.page_stride_bytes = 1008; }, [](const auto& p) { return p.window.cache.page_stride_bytes == 1008; });
  test.sets("window.topk", [](auto& c) { c.window.topk = 1009; }, [](const auto& p) { return p.window.topk == 1009; });
  test.sets("window.index_stride", [](auto& c) { c.window.index_stride = 1010; }, [](const auto& p) { return p.window.index_stride == 1010; });
  test.sets("window.lengths", [](auto& c) { c.window.lengths = TW_SPARSE_LENGTHS_PER_BATCH; }, [](const auto& p) { return p.window.lengths == SparseLengths::kPerBatch; });
  test.sets("window.lengths", [](auto& c) { c.window.lengths = TW_SPARSE_LENGTHS_PER_QUERY; }, [](const auto& p) { return p.window.lengths == SparseLengths::kPerQuery; });
  test.refuses("window.lengths", [](auto& c) { c.window.lengths = 77; });
  test.sets("compressed.cache.format", [](auto& c) { c.compressed.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.compressed.cache.format == NumberFormat::kBf16; });
  test.sets("compressed.cache.format", [](auto& c) { c.compressed.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.compressed.cache.format == NumberFormat::kNvfp4; });
  test.refuses("compressed.cache.format", [](auto& c) { c.compressed.cache.format = 77; });
  test.sets("compressed.cache.page_size", [](auto& c) { c.compressed.cache.page_size = 1013; }, [](const auto& p) { return p.compressed.cache.page_size == 1013; });
  test.sets("compressed.cache.num_pages", [](auto& c) { c.compressed.cache.num_pages = 1014; }, [](const auto& p) { return p.compressed.cache.num_pages == 1014; });
  test.sets("compressed.cache.page_stride_bytes", [](auto& c) { c.compressed.cache.page_stride_bytes = 1015; }, [](const auto& p) { return p.compressed.cache.page_stride_bytes == 1015; });
  test.sets("compressed.topk", [](auto& c) { c.compressed.topk = 1016; }, [](const auto& p) { return p.compressed.topk == 1016; });
  test.sets("compressed.index_stride", [](auto& c) { c.compressed.index_stride = 1017; }, [](const auto& p) { return p.compressed.index_stride == 1017; });
  test.sets("compressed.lengths", [](auto& c) { c.compressed.lengths = TW_SPARSE_LENGTHS_PER_BATCH; }, [](const auto& p) { return p.compressed.lengths == SparseLengths::kPerBatch; });
  test.sets("compressed.lengths", [](auto& c) { c.compressed.lengths = TW_SPARSE_LENGTHS_PER_QUERY; }, [](const auto& p) { return p.compressed.lengths == SparseLengths::kPerQuery; });
  test.refuses("compressed.lengths", [](auto& c) { c.compressed.lengths = 77; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("has_max_logits", [](auto& c) { c.has_max_logits = 1; }, [](const auto& p) { return p.has_max_logits == true; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1022; }, [](const auto& p) { return p.q_strides.batch == 1022; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1023; }, [](const auto& p) { return p.q_strides.row == 1023; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1024; }, [](const auto& p) { return p.q_strides.head == 1024; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1025; }, [](const auto& p) { return p.out_strides.batch == 1025; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1026; }, [](const auto& p) { return p.out_strides.row == 1026; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1027; }, [](const auto& p) { return p.out_strides.head == 1027; });
  test.sets("lse_strides.batch", [](auto& c) { c.lse_strides.batch = 1028; }, [](const auto& p) { return p.lse_strides.batch == 1028; });
  test.sets("lse_strides.row", [](auto& c) { c.lse_strides.row = 1029; }, [](const auto& p) { return p.lse_strides.row == 1029; });
  test.sets("lse_strides.head", [](auto& c) { c.lse_strides.head = 1030; }, [](const auto& p) { return p.lse_strides.head == 1030; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 31"; }, [](const auto& p) { return p.kernel == "sentinel 31"; });
  test.sets("positive_empty_lse", [](auto& c) { c.positive_empty_lse = 1; }, [](const auto& p) { return p.positive_empty_lse == true; });
}

TEST(CApiMembers, tw_sparse_list_arguments) {
  const Members<tw_sparse_list_arguments, SparseListArguments> test(tw_sparse_list_arguments_init, changed_tw_sparse_list_arguments);
  test.has_the_defaults();
  test.sets("pages", [](auto& c) { c.pages = at<const void>(1); }, [](const auto& p) { return p.pages == at<const void>(1); });
  test.sets("indices", [](auto& c) { c.indices = at<const int32_t>(2); }, [](const auto& p) { return p.indices == at<const int32_t>(2); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(3); }, [](const auto& p) { return p.lengths == at<const int32_t>(3); });
}

TEST(CApiMembers, tw_sparse_attention_arguments) {
  const Members<tw_sparse_attention_arguments, SparseAttentionArguments> test(tw_sparse_attention_arguments_init, changed_tw_sparse_attention_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("window.pages", [](auto& c) { c.window.pages = at<const void>(2); }, [](const auto& p) { return p.window.pages == at<const void>(2); });
  test.sets("window.indices", [](auto& c) { c.window.indices = at<const int32_t>(3); }, [](const auto& p) { return p.window.indices == at<const int32_t>(3); });
  test.sets("window.lengths", [](auto& c) { c.window.lengths = at<const int32_t>(4); }, [](const auto& p) { return p.window.lengths == at<const int32_t>(4); });
  test.sets("compressed.pages", [](auto& c) { c.compressed.pages = at<const void>(5); }, [](const auto& p) { return p.compressed.pages == at<const void>(5); });
  test.sets("compressed.indices", [](auto& c) { c.compressed.indices = at<const int32_t>(6); }, [](const auto& p) { return p.compressed.indices == at<const int32_t>(6); });
  test.sets("compressed.lengths", [](auto& c) { c.compressed.lengths = at<const int32_t>(7); }, [](const auto& p) { return p.compressed.lengths == at<const int32_t>(7); });
  test.sets("out", [](auto& c) { c.out = at<void>(8); }, [](const auto& p) { return p.out == at<void>(8); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(9); }, [](const auto& p) { return p.lse == at<float>(9); });
  test.sets("max_logits", [](auto& c) { c.max_logits = at<float>(10); }, [](const auto& p) { return p.max_logits == at<float>(10); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(11); }, [](const auto& p) { return p.sink == at<const float>(11); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(12); }, [](const auto& p) { return p.workspace == at<void>(12); });
  test.sets("reuses_schedule", [](auto& c) { c.reuses_schedule = 1; }, [](const auto& p) { return p.reuses_schedule == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(14); }, [](const auto& p) { return p.stream == at<void>(14); });
}

TEST(CApiMembers, tw_rope_options) {
  const Members<tw_rope_options, RopeOptions> test(tw_rope_options_init, changed_tw_rope_options);
  test.has_the_defaults();
  test.sets("theta", [](auto& c) { c.theta = 1.25; }, [](const auto& p) { return p.theta == 1.25; });
  test.sets("has_yarn", [](auto& c) { c.has_yarn = 1; }, [](const auto& p) { return p.has_yarn == true; });
  test.sets("factor", [](auto& c) { c.factor = 3.25; }, [](const auto& p) { return p.factor == 3.25; });
  test.sets("original_positions", [](auto& c) { c.original_positions = 4.25; }, [](const auto& p) { return p.original_positions == 4.25; });
  test.sets("beta_fast", [](auto& c) { c.beta_fast = 5.25; }, [](const auto& p) { return p.beta_fast == 5.25; });
  test.sets("beta_slow", [](auto& c) { c.beta_slow = 6.25; }, [](const auto& p) { return p.beta_slow == 6.25; });
}

TEST(CApiMembers, tw_sequence_batch) {
  const Members<tw_sequence_batch, SequenceBatch> test(tw_sequence_batch_init, changed_tw_sequence_batch);
  test.has_the_defaults();
  test.sets("batch", [](auto& c) { c.batch = 1001; }, [](const auto& p) { return p.batch == 1001; });
  test.sets("q_len", [](auto& c) { c.q_len = 1002; }, [](const auto& p) { return p.q_len == 1002; });
  test.sets("offsets", [](auto& c) { c.offsets = at<const int32_t>(3); }, [](const auto& p) { return p.offsets == at<const int32_t>(3); });
  test.sets("starts", [](auto& c) { c.starts = at<const int32_t>(4); }, [](const auto& p) { return p.starts == at<const int32_t>(4); });
}

TEST(CApiMembers, tw_sequence_pages) {
  const Members<tw_sequence_pages, SequencePages> test(tw_sequence_pages_init, changed_tw_sequence_pages);
  test.has_the_defaults();
  test.sets("pages", [](auto& c) { c.pages = at<const int32_t>(1); }, [](const auto& p) { return p.pages == at<const int32_t>(1); });
  test.sets("blocks", [](auto& c) { c.blocks = 1002; }, [](const auto& p) { return p.blocks == 1002; });
  test.sets("stride", [](auto& c) { c.stride = 1003; }, [](const auto& p) { return p.stride == 1003; });
}

TEST(CApiMembers, tw_kv_write_arguments) {
  const Members<tw_kv_write_arguments, KvWriteArguments> test(tw_kv_write_arguments_init, changed_tw_kv_write_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("eps", [](auto& c) { c.eps = 3.25; }, [](const auto& p) { return p.eps == 3.25; });
  test.sets("q", [](auto& c) { c.q = at<const void>(4); }, [](const auto& p) { return p.q == at<const void>(4); });
  test.sets("q_out", [](auto& c) { c.q_out = at<void>(5); }, [](const auto& p) { return p.q_out == at<void>(5); });
  test.sets("q_token_stride", [](auto& c) { c.q_token_stride = 1006; }, [](const auto& p) { return p.q_token_stride == 1006; });
  test.sets("q_head_stride", [](auto& c) { c.q_head_stride = 1007; }, [](const auto& p) { return p.q_head_stride == 1007; });
  test.sets("kv", [](auto& c) { c.kv = at<const void>(8); }, [](const auto& p) { return p.kv == at<const void>(8); });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_F32; }, [](const auto& p) { return p.kv_dtype == DType::kF32; });
  test.refuses("kv_dtype", [](auto& c) { c.kv_dtype = 77; });
  test.sets("kv_stride", [](auto& c) { c.kv_stride = 1010; }, [](const auto& p) { return p.kv_stride == 1010; });
  test.sets("kv_weight", [](auto& c) { c.kv_weight = at<const void>(11); }, [](const auto& p) { return p.kv_weight == at<const void>(11); });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(12); }, [](const auto& p) { return p.positions == at<const int32_t>(12); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(13); }, [](const auto& p) { return p.rope == at<const float>(13); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1014; }, [](const auto& p) { return p.rope_positions == 1014; });
  test.sets("slots", [](auto& c) { c.slots = at<const int32_t>(15); }, [](const auto& p) { return p.slots == at<const int32_t>(15); });
  test.sets("pages", [](auto& c) { c.pages = at<void>(16); }, [](const auto& p) { return p.pages == at<void>(16); });
  test.sets("kv_out", [](auto& c) { c.kv_out = at<void>(17); }, [](const auto& p) { return p.kv_out == at<void>(17); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(18); }, [](const auto& p) { return p.stream == at<void>(18); });
}

TEST(CApiMembers, tw_kv_read_arguments) {
  const Members<tw_kv_read_arguments, KvReadArguments> test(tw_kv_read_arguments_init, changed_tw_kv_read_arguments);
  test.has_the_defaults();
  test.sets("count", [](auto& c) { c.count = 1001; }, [](const auto& p) { return p.count == 1001; });
  test.sets("rows", [](auto& c) { c.rows = at<const int32_t>(2); }, [](const auto& p) { return p.rows == at<const int32_t>(2); });
  test.sets("pages", [](auto& c) { c.pages = at<const void>(3); }, [](const auto& p) { return p.pages == at<const void>(3); });
  test.sets("out", [](auto& c) { c.out = at<void>(4); }, [](const auto& p) { return p.out == at<void>(4); });
  test.sets("out_stride", [](auto& c) { c.out_stride = 1005; }, [](const auto& p) { return p.out_stride == 1005; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(6); }, [](const auto& p) { return p.stream == at<void>(6); });
}

TEST(CApiMembers, tw_kv_list_arguments) {
  const Members<tw_kv_list_arguments, KvListArguments> test(tw_kv_list_arguments_init, changed_tw_kv_list_arguments);
  test.has_the_defaults();
  test.sets("kind", [](auto& c) { c.kind = TW_KV_LIST_KIND_WINDOW; }, [](const auto& p) { return p.kind == KvListKind::kWindow; });
  test.sets("kind", [](auto& c) { c.kind = TW_KV_LIST_KIND_ENTRIES; }, [](const auto& p) { return p.kind == KvListKind::kEntries; });
  test.refuses("kind", [](auto& c) { c.kind = 77; });
  test.sets("tokens", [](auto& c) { c.tokens = 1002; }, [](const auto& p) { return p.tokens == 1002; });
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1003; }, [](const auto& p) { return p.sequences.batch == 1003; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1004; }, [](const auto& p) { return p.sequences.q_len == 1004; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(5); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(5); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(6); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(6); });
  test.sets("table.pages", [](auto& c) { c.table.pages = at<const int32_t>(7); }, [](const auto& p) { return p.table.pages == at<const int32_t>(7); });
  test.sets("table.blocks", [](auto& c) { c.table.blocks = 1008; }, [](const auto& p) { return p.table.blocks == 1008; });
  test.sets("table.stride", [](auto& c) { c.table.stride = 1009; }, [](const auto& p) { return p.table.stride == 1009; });
  test.sets("ring", [](auto& c) { c.ring = 1010; }, [](const auto& p) { return p.ring == 1010; });
  test.sets("window", [](auto& c) { c.window = 1011; }, [](const auto& p) { return p.window == 1011; });
  test.sets("ratio", [](auto& c) { c.ratio = 1012; }, [](const auto& p) { return p.ratio == 1012; });
  test.sets("list_len", [](auto& c) { c.list_len = 1013; }, [](const auto& p) { return p.list_len == 1013; });
  test.sets("list_stride", [](auto& c) { c.list_stride = 1014; }, [](const auto& p) { return p.list_stride == 1014; });
  test.sets("lists", [](auto& c) { c.lists = at<int32_t>(15); }, [](const auto& p) { return p.lists == at<int32_t>(15); });
  test.sets("lengths", [](auto& c) { c.lengths = at<int32_t>(16); }, [](const auto& p) { return p.lengths == at<int32_t>(16); });
  test.sets("positions", [](auto& c) { c.positions = at<int32_t>(17); }, [](const auto& p) { return p.positions == at<int32_t>(17); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(18); }, [](const auto& p) { return p.stream == at<void>(18); });
}

TEST(CApiMembers, tw_kv_cache_work) {
  const Members<tw_kv_cache_work, KvCacheWork> test(tw_kv_cache_work_init, changed_tw_kv_cache_work);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("list_len", [](auto& c) { c.list_len = 1003; }, [](const auto& p) { return p.list_len == 1003; });
  test.sets("read_rows", [](auto& c) { c.read_rows = 1004; }, [](const auto& p) { return p.read_rows == 1004; });
}

TEST(CApiMembers, tw_inverse_rope_arguments) {
  const Members<tw_inverse_rope_arguments, InverseRopeArguments> test(tw_inverse_rope_arguments_init, changed_tw_inverse_rope_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("token_stride", [](auto& c) { c.token_stride = 1004; }, [](const auto& p) { return p.token_stride == 1004; });
  test.sets("head_stride", [](auto& c) { c.head_stride = 1005; }, [](const auto& p) { return p.head_stride == 1005; });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(6); }, [](const auto& p) { return p.positions == at<const int32_t>(6); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(7); }, [](const auto& p) { return p.rope == at<const float>(7); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1008; }, [](const auto& p) { return p.rope_positions == 1008; });
  test.sets("codes", [](auto& c) { c.codes = at<void>(9); }, [](const auto& p) { return p.codes == at<void>(9); });
  test.sets("scales", [](auto& c) { c.scales = at<void>(10); }, [](const auto& p) { return p.scales == at<void>(10); });
  test.sets("has_pow2_scales", [](auto& c) { c.has_pow2_scales = 1; }, [](const auto& p) { return p.has_pow2_scales == true; });
  test.sets("has_block_major_scales", [](auto& c) { c.has_block_major_scales = 1; }, [](const auto& p) { return p.has_block_major_scales == true; });
  test.sets("has_operand_order", [](auto& c) { c.has_operand_order = 1; }, [](const auto& p) { return p.has_operand_order == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(14); }, [](const auto& p) { return p.stream == at<void>(14); });
}

TEST(CApiMembers, tw_compressor_problem) {
  const Members<tw_compressor_problem, CompressorProblem> test(tw_compressor_problem_init, changed_tw_compressor_problem);
  test.has_the_defaults();
  test.sets("kind", [](auto& c) { c.kind = TW_COMPRESSOR_KIND_HCA; }, [](const auto& p) { return p.kind == CompressorKind::kHca; });
  test.sets("kind", [](auto& c) { c.kind = TW_COMPRESSOR_KIND_INDEX_FP8; }, [](const auto& p) { return p.kind == CompressorKind::kIndexFp8; });
  test.sets("kind", [](auto& c) { c.kind = TW_COMPRESSOR_KIND_INDEX_MXFP4; }, [](const auto& p) { return p.kind == CompressorKind::kIndexMxfp4; });
  test.refuses("kind", [](auto& c) { c.kind = 77; });
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.cache.format == NumberFormat::kBf16; });
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.cache.format == NumberFormat::kNvfp4; });
  test.refuses("cache.format", [](auto& c) { c.cache.format = 77; });
  test.sets("cache.page_size", [](auto& c) { c.cache.page_size = 1003; }, [](const auto& p) { return p.cache.page_size == 1003; });
  test.sets("cache.num_pages", [](auto& c) { c.cache.num_pages = 1004; }, [](const auto& p) { return p.cache.num_pages == 1004; });
  test.sets("cache.page_stride_bytes", [](auto& c) { c.cache.page_stride_bytes = 1005; }, [](const auto& p) { return p.cache.page_stride_bytes == 1005; });
  test.sets("state_slots", [](auto& c) { c.state_slots = 1006; }, [](const auto& p) { return p.state_slots == 1006; });
  test.sets("ring", [](auto& c) { c.ring = 1007; }, [](const auto& p) { return p.ring == 1007; });
  test.sets("eps", [](auto& c) { c.eps = 8.25; }, [](const auto& p) { return p.eps == 8.25; });
}

TEST(CApiMembers, tw_compressor_arguments) {
  const Members<tw_compressor_arguments, CompressorArguments> test(tw_compressor_arguments_init, changed_tw_compressor_arguments);
  test.has_the_defaults();
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1001; }, [](const auto& p) { return p.sequences.batch == 1001; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1002; }, [](const auto& p) { return p.sequences.q_len == 1002; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(3); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(3); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(4); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(4); });
  test.sets("max_tokens", [](auto& c) { c.max_tokens = 1005; }, [](const auto& p) { return p.max_tokens == 1005; });
  test.sets("kv", [](auto& c) { c.kv = at<const float>(6); }, [](const auto& p) { return p.kv == at<const float>(6); });
  test.sets("gate", [](auto& c) { c.gate = at<const float>(7); }, [](const auto& p) { return p.gate == at<const float>(7); });
  test.sets("kv_stride", [](auto& c) { c.kv_stride = 1008; }, [](const auto& p) { return p.kv_stride == 1008; });
  test.sets("gate_stride", [](auto& c) { c.gate_stride = 1009; }, [](const auto& p) { return p.gate_stride == 1009; });
  test.sets("ape", [](auto& c) { c.ape = at<const float>(10); }, [](const auto& p) { return p.ape == at<const float>(10); });
  test.sets("norm_weight", [](auto& c) { c.norm_weight = at<const void>(11); }, [](const auto& p) { return p.norm_weight == at<const void>(11); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(12); }, [](const auto& p) { return p.rope == at<const float>(12); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1013; }, [](const auto& p) { return p.rope_positions == 1013; });
  test.sets("state", [](auto& c) { c.state = at<void>(14); }, [](const auto& p) { return p.state == at<void>(14); });
  test.sets("state_slots", [](auto& c) { c.state_slots = at<const int32_t>(15); }, [](const auto& p) { return p.state_slots == at<const int32_t>(15); });
  test.sets("table.pages", [](auto& c) { c.table.pages = at<const int32_t>(16); }, [](const auto& p) { return p.table.pages == at<const int32_t>(16); });
  test.sets("table.blocks", [](auto& c) { c.table.blocks = 1017; }, [](const auto& p) { return p.table.blocks == 1017; });
  test.sets("table.stride", [](auto& c) { c.table.stride = 1018; }, [](const auto& p) { return p.table.stride == 1018; });
  test.sets("pages", [](auto& c) { c.pages = at<void>(19); }, [](const auto& p) { return p.pages == at<void>(19); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(20); }, [](const auto& p) { return p.stream == at<void>(20); });
}

TEST(CApiMembers, tw_indexer_problem) {
  const Members<tw_indexer_problem, IndexerProblem> test(tw_indexer_problem_init, changed_tw_indexer_problem);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("topk", [](auto& c) { c.topk = 1003; }, [](const auto& p) { return p.topk == 1003; });
  test.sets("ratio", [](auto& c) { c.ratio = 1004; }, [](const auto& p) { return p.ratio == 1004; });
  test.sets("max_len", [](auto& c) { c.max_len = 1005; }, [](const auto& p) { return p.max_len == 1005; });
  test.sets("keys.format", [](auto& c) { c.keys.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.keys.format == NumberFormat::kBf16; });
  test.sets("keys.format", [](auto& c) { c.keys.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.keys.format == NumberFormat::kNvfp4; });
  test.refuses("keys.format", [](auto& c) { c.keys.format = 77; });
  test.sets("keys.page_size", [](auto& c) { c.keys.page_size = 1007; }, [](const auto& p) { return p.keys.page_size == 1007; });
  test.sets("keys.num_pages", [](auto& c) { c.keys.num_pages = 1008; }, [](const auto& p) { return p.keys.num_pages == 1008; });
  test.sets("keys.page_stride_bytes", [](auto& c) { c.keys.page_stride_bytes = 1009; }, [](const auto& p) { return p.keys.page_stride_bytes == 1009; });
  test.sets("rows.format", [](auto& c) { c.rows.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.rows.format == NumberFormat::kBf16; });
  test.sets("rows.format", [](auto& c) { c.rows.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.rows.format == NumberFormat::kNvfp4; });
  test.refuses("rows.format", [](auto& c) { c.rows.format = 77; });
  test.sets("rows.page_size", [](auto& c) { c.rows.page_size = 1011; }, [](const auto& p) { return p.rows.page_size == 1011; });
  test.sets("rows.num_pages", [](auto& c) { c.rows.num_pages = 1012; }, [](const auto& p) { return p.rows.num_pages == 1012; });
  test.sets("rows.page_stride_bytes", [](auto& c) { c.rows.page_stride_bytes = 1013; }, [](const auto& p) { return p.rows.page_stride_bytes == 1013; });
  test.sets("fill_logits", [](auto& c) { c.fill_logits = 1; }, [](const auto& p) { return p.fill_logits == true; });
}

TEST(CApiMembers, tw_indexer_arguments) {
  const Members<tw_indexer_arguments, IndexerArguments> test(tw_indexer_arguments_init, changed_tw_indexer_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1002; }, [](const auto& p) { return p.sequences.batch == 1002; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1003; }, [](const auto& p) { return p.sequences.q_len == 1003; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(4); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(4); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(5); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(5); });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(6); }, [](const auto& p) { return p.positions == at<const int32_t>(6); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(7); }, [](const auto& p) { return p.lengths == at<const int32_t>(7); });
  test.sets("q", [](auto& c) { c.q = at<const void>(8); }, [](const auto& p) { return p.q == at<const void>(8); });
  test.sets("q_token_stride", [](auto& c) { c.q_token_stride = 1009; }, [](const auto& p) { return p.q_token_stride == 1009; });
  test.sets("q_head_stride", [](auto& c) { c.q_head_stride = 1010; }, [](const auto& p) { return p.q_head_stride == 1010; });
  test.sets("weights", [](auto& c) { c.weights = at<const void>(11); }, [](const auto& p) { return p.weights == at<const void>(11); });
  test.sets("weights_dtype", [](auto& c) { c.weights_dtype = TW_F32; }, [](const auto& p) { return p.weights_dtype == DType::kF32; });
  test.refuses("weights_dtype", [](auto& c) { c.weights_dtype = 77; });
  test.sets("weights_stride", [](auto& c) { c.weights_stride = 1013; }, [](const auto& p) { return p.weights_stride == 1013; });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(14); }, [](const auto& p) { return p.rope == at<const float>(14); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1015; }, [](const auto& p) { return p.rope_positions == 1015; });
  test.sets("key_pages", [](auto& c) { c.key_pages = at<const void>(16); }, [](const auto& p) { return p.key_pages == at<const void>(16); });
  test.sets("key_table.pages", [](auto& c) { c.key_table.pages = at<const int32_t>(17); }, [](const auto& p) { return p.key_table.pages == at<const int32_t>(17); });
  test.sets("key_table.blocks", [](auto& c) { c.key_table.blocks = 1018; }, [](const auto& p) { return p.key_table.blocks == 1018; });
  test.sets("key_table.stride", [](auto& c) { c.key_table.stride = 1019; }, [](const auto& p) { return p.key_table.stride == 1019; });
  test.sets("row_table.pages", [](auto& c) { c.row_table.pages = at<const int32_t>(20); }, [](const auto& p) { return p.row_table.pages == at<const int32_t>(20); });
  test.sets("row_table.blocks", [](auto& c) { c.row_table.blocks = 1021; }, [](const auto& p) { return p.row_table.blocks == 1021; });
  test.sets("row_table.stride", [](auto& c) { c.row_table.stride = 1022; }, [](const auto& p) { return p.row_table.stride == 1022; });
  test.sets("rows", [](auto& c) { c.rows = at<int32_t>(23); }, [](const auto& p) { return p.rows == at<int32_t>(23); });
  test.sets("rows_stride", [](auto& c) { c.rows_stride = 1024; }, [](const auto& p) { return p.rows_stride == 1024; });
  test.sets("counts", [](auto& c) { c.counts = at<int32_t>(25); }, [](const auto& p) { return p.counts == at<int32_t>(25); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(26); }, [](const auto& p) { return p.workspace == at<void>(26); });
  test.sets("reuses_schedule", [](auto& c) { c.reuses_schedule = 1; }, [](const auto& p) { return p.reuses_schedule == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(28); }, [](const auto& p) { return p.stream == at<void>(28); });
}

TEST(CApiMembers, tw_hyper_connection_problem) {
  const Members<tw_hyper_connection_problem, HyperConnectionProblem> test(tw_hyper_connection_problem_init, changed_tw_hyper_connection_problem);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("hidden", [](auto& c) { c.hidden = 1002; }, [](const auto& p) { return p.hidden == 1002; });
  test.sets("stream_dtype", [](auto& c) { c.stream_dtype = TW_F32; }, [](const auto& p) { return p.stream_dtype == DType::kF32; });
  test.refuses("stream_dtype", [](auto& c) { c.stream_dtype = 77; });
  test.sets("has_merge", [](auto& c) { c.has_merge = 1; }, [](const auto& p) { return p.has_merge == true; });
  test.sets("has_second", [](auto& c) { c.has_second = 1; }, [](const auto& p) { return p.has_second == true; });
  test.sets("has_mix", [](auto& c) { c.has_mix = 0; }, [](const auto& p) { return p.has_mix == false; });
  test.sets("is_head", [](auto& c) { c.is_head = 1; }, [](const auto& p) { return p.is_head == true; });
  test.sets("result_dtype", [](auto& c) { c.result_dtype = TW_F32; }, [](const auto& p) { return p.result_dtype == DType::kF32; });
  test.refuses("result_dtype", [](auto& c) { c.result_dtype = 77; });
  test.sets("second_dtype", [](auto& c) { c.second_dtype = TW_F32; }, [](const auto& p) { return p.second_dtype == DType::kF32; });
  test.refuses("second_dtype", [](auto& c) { c.second_dtype = 77; });
  test.sets("iterations", [](auto& c) { c.iterations = 1010; }, [](const auto& p) { return p.iterations == 1010; });
  test.sets("eps", [](auto& c) { c.eps = 11.25; }, [](const auto& p) { return p.eps == 11.25; });
  test.sets("norm_eps", [](auto& c) { c.norm_eps = 12.25; }, [](const auto& p) { return p.norm_eps == 12.25; });
}

TEST(CApiMembers, tw_hyper_connection_arguments) {
  const Members<tw_hyper_connection_arguments, HyperConnectionArguments> test(tw_hyper_connection_arguments_init, changed_tw_hyper_connection_arguments);
  test.has_the_defaults();
  test.sets("streams", [](auto& c) { c.streams = at<const void>(1); }, [](const auto& p) { return p.streams == at<const void>(1); });
  test.sets("merged", [](auto& c) { c.merged = at<void>(2); }, [](const auto& p) { return p.merged == at<void>(2); });
  test.sets("mix_before", [](auto& c) { c.mix_before = at<const float>(3); }, [](const auto& p) { return p.mix_before == at<const float>(3); });
  test.sets("result", [](auto& c) { c.result = at<const void>(4); }, [](const auto& p) { return p.result == at<const void>(4); });
  test.sets("second_result", [](auto& c) { c.second_result = at<const void>(5); }, [](const auto& p) { return p.second_result == at<const void>(5); });
  test.sets("mix_weight", [](auto& c) { c.mix_weight = at<const float>(6); }, [](const auto& p) { return p.mix_weight == at<const float>(6); });
  test.sets("mix_bias", [](auto& c) { c.mix_bias = at<const float>(7); }, [](const auto& p) { return p.mix_bias == at<const float>(7); });
  test.sets("mix_scale", [](auto& c) { c.mix_scale = at<const float>(8); }, [](const auto& p) { return p.mix_scale == at<const float>(8); });
  test.sets("norm_weight", [](auto& c) { c.norm_weight = at<const void>(9); }, [](const auto& p) { return p.norm_weight == at<const void>(9); });
  test.sets("mix", [](auto& c) { c.mix = at<float>(10); }, [](const auto& p) { return p.mix == at<float>(10); });
  test.sets("out", [](auto& c) { c.out = at<void>(11); }, [](const auto& p) { return p.out == at<void>(11); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(12); }, [](const auto& p) { return p.workspace == at<void>(12); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(13); }, [](const auto& p) { return p.stream == at<void>(13); });
}

TEST(CApiMembers, tw_hyper_embedding_problem) {
  const Members<tw_hyper_embedding_problem, HyperEmbeddingProblem> test(tw_hyper_embedding_problem_init, changed_tw_hyper_embedding_problem);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("hidden", [](auto& c) { c.hidden = 1002; }, [](const auto& p) { return p.hidden == 1002; });
  test.sets("vocab", [](auto& c) { c.vocab = 1003; }, [](const auto& p) { return p.vocab == 1003; });
  test.sets("stream_dtype", [](auto& c) { c.stream_dtype = TW_F32; }, [](const auto& p) { return p.stream_dtype == DType::kF32; });
  test.refuses("stream_dtype", [](auto& c) { c.stream_dtype = 77; });
}

TEST(CApiMembers, tw_hyper_embedding_arguments) {
  const Members<tw_hyper_embedding_arguments, HyperEmbeddingArguments> test(tw_hyper_embedding_arguments_init, changed_tw_hyper_embedding_arguments);
  test.has_the_defaults();
  test.sets("table", [](auto& c) { c.table = at<const void>(1); }, [](const auto& p) { return p.table == at<const void>(1); });
  test.sets("ids", [](auto& c) { c.ids = at<const int32_t>(2); }, [](const auto& p) { return p.ids == at<const int32_t>(2); });
  test.sets("streams", [](auto& c) { c.streams = at<void>(3); }, [](const auto& p) { return p.streams == at<void>(3); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(4); }, [](const auto& p) { return p.stream == at<void>(4); });
}

TEST(CApiMembers, tw_rms_norm_problem) {
  const Members<tw_rms_norm_problem, RmsNormProblem> test(tw_rms_norm_problem_init, changed_tw_rms_norm_problem);
  test.has_the_defaults();
  test.sets("rows", [](auto& c) { c.rows = 1001; }, [](const auto& p) { return p.rows == 1001; });
  test.sets("cols", [](auto& c) { c.cols = 1002; }, [](const auto& p) { return p.cols == 1002; });
  test.sets("x_dtype", [](auto& c) { c.x_dtype = TW_F32; }, [](const auto& p) { return p.x_dtype == DType::kF32; });
  test.refuses("x_dtype", [](auto& c) { c.x_dtype = 77; });
  test.sets("x_stride", [](auto& c) { c.x_stride = 1004; }, [](const auto& p) { return p.x_stride == 1004; });
  test.sets("out_stride", [](auto& c) { c.out_stride = 1005; }, [](const auto& p) { return p.out_stride == 1005; });
  test.sets("has_weight", [](auto& c) { c.has_weight = 0; }, [](const auto& p) { return p.has_weight == false; });
  test.sets("eps", [](auto& c) { c.eps = 7.25; }, [](const auto& p) { return p.eps == 7.25; });
}

TEST(CApiMembers, tw_rms_norm_arguments) {
  const Members<tw_rms_norm_arguments, RmsNormArguments> test(tw_rms_norm_arguments_init, changed_tw_rms_norm_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("weight", [](auto& c) { c.weight = at<const void>(2); }, [](const auto& p) { return p.weight == at<const void>(2); });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(4); }, [](const auto& p) { return p.stream == at<void>(4); });
}

}  // namespace
}  // namespace tilewright::c_api
