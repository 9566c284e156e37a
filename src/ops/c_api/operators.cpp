// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// The functions of the operators of the C interface; those of another form are in the files beside this one.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_reason_set_defaults(tw_reason* given) {
  c_api::set_defaults(given);
}

void tw_candidate_set_defaults(tw_candidate* given) {
  c_api::set_defaults(given);
}

void tw_launch_set_defaults(tw_launch* given) {
  c_api::set_defaults(given);
}

void tw_strides_set_defaults(tw_strides* given) {
  c_api::set_defaults(given);
}

void tw_fp8_options_set_defaults(tw_fp8_options* given) {
  c_api::set_defaults(given);
}

void tw_attention_problem_set_defaults(tw_attention_problem* given) {
  c_api::set_defaults(given);
}

void tw_attention_arguments_set_defaults(tw_attention_arguments* given) {
  c_api::set_defaults(given);
}

void tw_attention_prepare_problem_set_defaults(tw_attention_prepare_problem* given) {
  c_api::set_defaults(given);
}

void tw_attention_prepare_arguments_set_defaults(tw_attention_prepare_arguments* given) {
  c_api::set_defaults(given);
}

void tw_attention_operand_sizes_set_defaults(tw_attention_operand_sizes* given) {
  c_api::set_defaults(given);
}

void tw_decode_append_set_defaults(tw_decode_append* given) {
  c_api::set_defaults(given);
}

void tw_attention_decode_problem_set_defaults(tw_attention_decode_problem* given) {
  c_api::set_defaults(given);
}

void tw_attention_decode_arguments_set_defaults(tw_attention_decode_arguments* given) {
  c_api::set_defaults(given);
}

void tw_linear_weight_source_set_defaults(tw_linear_weight_source* given) {
  c_api::set_defaults(given);
}

void tw_linear_weight_info_set_defaults(tw_linear_weight_info* given) {
  c_api::set_defaults(given);
}

void tw_linear_problem_set_defaults(tw_linear_problem* given) {
  c_api::set_defaults(given);
}

void tw_linear_arguments_set_defaults(tw_linear_arguments* given) {
  c_api::set_defaults(given);
}

void tw_block_scaled_weight_info_set_defaults(tw_block_scaled_weight_info* given) {
  c_api::set_defaults(given);
}

void tw_block_scaled_problem_set_defaults(tw_block_scaled_problem* given) {
  c_api::set_defaults(given);
}

void tw_block_scaled_arguments_set_defaults(tw_block_scaled_arguments* given) {
  c_api::set_defaults(given);
}

void tw_quantize_problem_set_defaults(tw_quantize_problem* given) {
  c_api::set_defaults(given);
}

void tw_quantize_arguments_set_defaults(tw_quantize_arguments* given) {
  c_api::set_defaults(given);
}

void tw_moe_weights_source_set_defaults(tw_moe_weights_source* given) {
  c_api::set_defaults(given);
}

void tw_moe_weights_info_set_defaults(tw_moe_weights_info* given) {
  c_api::set_defaults(given);
}

void tw_moe_problem_set_defaults(tw_moe_problem* given) {
  c_api::set_defaults(given);
}

void tw_moe_arguments_set_defaults(tw_moe_arguments* given) {
  c_api::set_defaults(given);
}

void tw_kv_layout_set_defaults(tw_kv_layout* given) {
  c_api::set_defaults(given);
}

void tw_sparse_list_set_defaults(tw_sparse_list* given) {
  c_api::set_defaults(given);
}

void tw_sparse_attention_problem_set_defaults(tw_sparse_attention_problem* given) {
  c_api::set_defaults(given);
}

void tw_sparse_list_arguments_set_defaults(tw_sparse_list_arguments* given) {
  c_api::set_defaults(given);
}

void tw_sparse_attention_arguments_set_defaults(tw_sparse_attention_arguments* given) {
  c_api::set_defaults(given);
}

void tw_rope_options_set_defaults(tw_rope_options* given) {
  c_api::set_defaults(given);
}

void tw_sequence_batch_set_defaults(tw_sequence_batch* given) {
  c_api::set_defaults(given);
}

void tw_sequence_pages_set_defaults(tw_sequence_pages* given) {
  c_api::set_defaults(given);
}

void tw_kv_write_arguments_set_defaults(tw_kv_write_arguments* given) {
  c_api::set_defaults(given);
}

void tw_kv_read_arguments_set_defaults(tw_kv_read_arguments* given) {
  c_api::set_defaults(given);
}

void tw_kv_list_arguments_set_defaults(tw_kv_list_arguments* given) {
  c_api::set_defaults(given);
}

void tw_kv_cache_work_set_defaults(tw_kv_cache_work* given) {
  c_api::set_defaults(given);
}

void tw_inverse_rope_arguments_set_defaults(tw_inverse_rope_arguments* given) {
  c_api::set_defaults(given);
}

void tw_compressor_problem_set_defaults(tw_compressor_problem* given) {
  c_api::set_defaults(given);
}

void tw_compressor_arguments_set_defaults(tw_compressor_arguments* given) {
  c_api::set_defaults(given);
}

void tw_indexer_problem_set_defaults(tw_indexer_problem* given) {
  c_api::set_defaults(given);
}

void tw_indexer_arguments_set_defaults(tw_indexer_arguments* given) {
  c_api::set_defaults(given);
}

void tw_hyper_connection_problem_set_defaults(tw_hyper_connection_problem* given) {
  c_api::set_defaults(given);
}

void tw_hyper_connection_arguments_set_defaults(tw_hyper_connection_arguments* given) {
  c_api::set_defaults(given);
}

void tw_hyper_embedding_problem_set_defaults(tw_hyper_embedding_problem* given) {
  c_api::set_defaults(given);
}

void tw_hyper_embedding_arguments_set_defaults(tw_hyper_embedding_arguments* given) {
  c_api::set_defaults(given);
}

void tw_rms_norm_problem_set_defaults(tw_rms_norm_problem* given) {
  c_api::set_defaults(given);
}

void tw_rms_norm_arguments_set_defaults(tw_rms_norm_arguments* given) {
  c_api::set_defaults(given);
}

tw_status tw_attention_create(const tw_device* device, const tw_attention_problem* problem, tw_attention** attention) {
  return c_api::create_on("tw_attention_create", device, "device", problem, "problem", attention, "attention");
}

tw_status tw_attention_plan(const tw_device* device, const tw_attention_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_attention_plan", device, plan, [](const auto&... given) { return tilewright::plan_attention(given...); }, c_api::Given<tw_attention_problem>{problem, "problem"});
}

void tw_attention_destroy(tw_attention* attention) {
  delete attention;
}

const char* tw_attention_plan_text(const tw_attention* attention) {
  return c_api::plan_text(attention);
}

const char* tw_attention_kernel(const tw_attention* attention) {
  return attention == nullptr ? "" : attention->op.plan().kernel.c_str();
}

size_t tw_attention_workspace_bytes(const tw_attention* attention) {
  return attention == nullptr ? 0 : attention->op.plan().workspace_bytes;
}

double tw_attention_flops(const tw_attention* attention) {
  return attention == nullptr ? 0 : attention->op.plan().flops;
}

tw_status tw_attention_run(const tw_attention* attention, const tw_attention_arguments* arguments) {
  return c_api::call("tw_attention_run", attention, "attention", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_attention_prepare_create(const tw_device* device, const tw_attention_prepare_problem* problem, tw_attention_prepare** prepare) {
  return c_api::create_on("tw_attention_prepare_create", device, "device", problem, "problem", prepare, "prepare");
}

tw_status tw_attention_prepare_plan(const tw_device* device, const tw_attention_prepare_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_attention_prepare_plan", device, plan, [](const auto&... given) { return tilewright::plan_attention_prepare(given...); }, c_api::Given<tw_attention_prepare_problem>{problem, "problem"});
}

void tw_attention_prepare_destroy(tw_attention_prepare* prepare) {
  delete prepare;
}

const char* tw_attention_prepare_plan_text(const tw_attention_prepare* prepare) {
  return c_api::plan_text(prepare);
}

tw_status tw_attention_prepare_run(const tw_attention_prepare* prepare, const tw_attention_prepare_arguments* arguments) {
  return c_api::call("tw_attention_prepare_run", prepare, "prepare", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_attention_decode_create(const tw_device* device, const tw_attention_decode_problem* problem, tw_attention_decode** decode) {
  return c_api::create_on("tw_attention_decode_create", device, "device", problem, "problem", decode, "decode");
}

tw_status tw_attention_decode_plan(const tw_device* device, const tw_attention_decode_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_attention_decode_plan", device, plan, [](const auto&... given) { return tilewright::plan_attention_decode(given...); }, c_api::Given<tw_attention_decode_problem>{problem, "problem"});
}

void tw_attention_decode_destroy(tw_attention_decode* decode) {
  delete decode;
}

const char* tw_attention_decode_plan_text(const tw_attention_decode* decode) {
  return c_api::plan_text(decode);
}

const char* tw_attention_decode_kernel(const tw_attention_decode* decode) {
  return decode == nullptr ? "" : decode->op.plan().kernel.c_str();
}

size_t tw_attention_decode_workspace_bytes(const tw_attention_decode* decode) {
  return decode == nullptr ? 0 : decode->op.plan().workspace_bytes;
}

tw_status tw_attention_decode_run(const tw_attention_decode* decode, const tw_attention_decode_arguments* arguments) {
  return c_api::call("tw_attention_decode_run", decode, "decode", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_linear_create(const tw_linear_weight* weight, const tw_linear_problem* problem, tw_linear** linear) {
  return c_api::create_on("tw_linear_create", weight, "weight", problem, "problem", linear, "linear");
}

tw_status tw_linear_plan(const tw_device* device, const tw_linear_weight_info* weight, const tw_linear_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_linear_plan", device, plan, [](const auto&... given) { return tilewright::plan_linear(given...); }, c_api::Given<tw_linear_weight_info>{weight, "weight"}, c_api::Given<tw_linear_problem>{problem, "problem"});
}

void tw_linear_destroy(tw_linear* linear) {
  delete linear;
}

const char* tw_linear_plan_text(const tw_linear* linear) {
  return c_api::plan_text(linear);
}

const char* tw_linear_kernel(const tw_linear* linear) {
  return linear == nullptr ? "" : linear->op.plan().kernel.c_str();
}

size_t tw_linear_workspace_bytes(const tw_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().workspace_bytes;
}

double tw_linear_flops(const tw_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().flops;
}

double tw_linear_bytes(const tw_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().bytes;
}

tw_status tw_linear_run(const tw_linear* linear, const tw_linear_arguments* arguments) {
  return c_api::call("tw_linear_run", linear, "linear", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_block_scaled_linear_create(const tw_block_scaled_weight* weight, const tw_block_scaled_problem* problem, tw_block_scaled_linear** linear) {
  return c_api::create_on("tw_block_scaled_linear_create", weight, "weight", problem, "problem", linear, "linear");
}

tw_status tw_block_scaled_linear_plan(const tw_device* device, const tw_block_scaled_weight_info* weight, const tw_block_scaled_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_block_scaled_linear_plan", device, plan, [](const auto&... given) { return tilewright::plan_block_scaled_linear(given...); }, c_api::Given<tw_block_scaled_weight_info>{weight, "weight"}, c_api::Given<tw_block_scaled_problem>{problem, "problem"});
}

void tw_block_scaled_linear_destroy(tw_block_scaled_linear* linear) {
  delete linear;
}

const char* tw_block_scaled_linear_plan_text(const tw_block_scaled_linear* linear) {
  return c_api::plan_text(linear);
}

const char* tw_block_scaled_linear_kernel(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? "" : linear->op.plan().kernel.c_str();
}

size_t tw_block_scaled_linear_x_bytes(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().x_bytes;
}

size_t tw_block_scaled_linear_x_scales_bytes(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().x_scales_bytes;
}

size_t tw_block_scaled_linear_out_bytes(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().out_bytes;
}

size_t tw_block_scaled_linear_out_scales_bytes(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().out_scales_bytes;
}

double tw_block_scaled_linear_flops(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().flops;
}

double tw_block_scaled_linear_bytes(const tw_block_scaled_linear* linear) {
  return linear == nullptr ? 0 : linear->op.plan().bytes;
}

tw_status tw_block_scaled_linear_run(const tw_block_scaled_linear* linear, const tw_block_scaled_arguments* arguments) {
  return c_api::call("tw_block_scaled_linear_run", linear, "linear", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_quantize_create(const tw_device* device, const tw_quantize_problem* problem, tw_quantize** quantize) {
  return c_api::create_on("tw_quantize_create", device, "device", problem, "problem", quantize, "quantize");
}

tw_status tw_quantize_plan(const tw_device* device, const tw_quantize_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_quantize_plan", device, plan, [](const auto&... given) { return tilewright::plan_quantize(given...); }, c_api::Given<tw_quantize_problem>{problem, "problem"});
}

void tw_quantize_destroy(tw_quantize* quantize) {
  delete quantize;
}

const char* tw_quantize_plan_text(const tw_quantize* quantize) {
  return c_api::plan_text(quantize);
}

size_t tw_quantize_workspace_bytes(const tw_quantize* quantize) {
  return quantize == nullptr ? 0 : quantize->op.plan().workspace_bytes;
}

tw_status tw_quantize_run(const tw_quantize* quantize, const tw_quantize_arguments* arguments) {
  return c_api::call("tw_quantize_run", quantize, "quantize", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_moe_create(const tw_moe_weights* weights, const tw_moe_problem* problem, tw_moe** moe) {
  return c_api::create_on("tw_moe_create", weights, "weights", problem, "problem", moe, "moe");
}

tw_status tw_moe_plan(const tw_device* device, const tw_moe_weights_info* weights, const tw_moe_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_moe_plan", device, plan, [](const auto&... given) { return tilewright::plan_moe(given...); }, c_api::Given<tw_moe_weights_info>{weights, "weights"}, c_api::Given<tw_moe_problem>{problem, "problem"});
}

void tw_moe_destroy(tw_moe* moe) {
  delete moe;
}

const char* tw_moe_plan_text(const tw_moe* moe) {
  return c_api::plan_text(moe);
}

const char* tw_moe_kernel(const tw_moe* moe) {
  return moe == nullptr ? "" : moe->op.plan().kernel.c_str();
}

size_t tw_moe_workspace_bytes(const tw_moe* moe) {
  return moe == nullptr ? 0 : moe->op.plan().workspace_bytes;
}

tw_status tw_moe_run(const tw_moe* moe, const tw_moe_arguments* arguments) {
  return c_api::call("tw_moe_run", moe, "moe", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_moe_check(const tw_moe* moe, const tw_moe_arguments* arguments) {
  return c_api::call("tw_moe_check", moe, "moe", arguments, [](const auto& op, const auto& a) { op.check(a); });
}

tw_status tw_sparse_attention_create(const tw_device* device, const tw_sparse_attention_problem* problem, tw_sparse_attention** attention) {
  return c_api::create_on("tw_sparse_attention_create", device, "device", problem, "problem", attention, "attention");
}

tw_status tw_sparse_attention_plan(const tw_device* device, const tw_sparse_attention_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_sparse_attention_plan", device, plan, [](const auto&... given) { return tilewright::plan_sparse_attention(given...); }, c_api::Given<tw_sparse_attention_problem>{problem, "problem"});
}

void tw_sparse_attention_destroy(tw_sparse_attention* attention) {
  delete attention;
}

const char* tw_sparse_attention_plan_text(const tw_sparse_attention* attention) {
  return c_api::plan_text(attention);
}

const char* tw_sparse_attention_kernel(const tw_sparse_attention* attention) {
  return attention == nullptr ? "" : attention->op.plan().kernel.c_str();
}

size_t tw_sparse_attention_workspace_bytes(const tw_sparse_attention* attention) {
  return attention == nullptr ? 0 : attention->op.plan().workspace_bytes;
}

tw_status tw_sparse_attention_run(const tw_sparse_attention* attention, const tw_sparse_attention_arguments* arguments) {
  return c_api::call("tw_sparse_attention_run", attention, "attention", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_kv_cache_create(const tw_device* device, const tw_kv_layout* layout, tw_kv_cache** cache) {
  return c_api::create_on("tw_kv_cache_create", device, "device", layout, "layout", cache, "cache");
}

tw_status tw_kv_cache_plan(const tw_device* device, const tw_kv_layout* layout, const tw_kv_cache_work* work, tw_plan** plan) {
  return c_api::plan("tw_kv_cache_plan", device, plan, [](const auto&... given) { return tilewright::plan_kv_cache(given...); }, c_api::Given<tw_kv_layout>{layout, "layout"}, c_api::Given<tw_kv_cache_work>{work, "work"});
}

void tw_kv_cache_destroy(tw_kv_cache* cache) {
  delete cache;
}

tw_status tw_kv_cache_write(const tw_kv_cache* cache, const tw_kv_write_arguments* arguments) {
  return c_api::call("tw_kv_cache_write", cache, "cache", arguments, [](const auto& op, const auto& a) { op.write(a); });
}

tw_status tw_kv_cache_read(const tw_kv_cache* cache, const tw_kv_read_arguments* arguments) {
  return c_api::call("tw_kv_cache_read", cache, "cache", arguments, [](const auto& op, const auto& a) { op.read(a); });
}

tw_status tw_kv_cache_list(const tw_kv_cache* cache, const tw_kv_list_arguments* arguments) {
  return c_api::call("tw_kv_cache_list", cache, "cache", arguments, [](const auto& op, const auto& a) { op.list(a); });
}

tw_status tw_inverse_rope_create(const tw_device* device, tw_inverse_rope** rope) {
  return c_api::create_on("tw_inverse_rope_create", device, "device", rope, "rope");
}

tw_status tw_inverse_rope_plan(const tw_device* device, int64_t tokens, int64_t heads, int32_t has_codes, tw_plan** plan) {
  return c_api::plan("tw_inverse_rope_plan", device, plan, [](const auto&... given) { return tilewright::plan_inverse_rope(given...); }, tokens, heads, has_codes);
}

void tw_inverse_rope_destroy(tw_inverse_rope* rope) {
  delete rope;
}

tw_status tw_inverse_rope_run(const tw_inverse_rope* rope, const tw_inverse_rope_arguments* arguments) {
  return c_api::call("tw_inverse_rope_run", rope, "rope", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_compressor_create(const tw_device* device, const tw_compressor_problem* problem, tw_compressor** compressor) {
  return c_api::create_on("tw_compressor_create", device, "device", problem, "problem", compressor, "compressor");
}

tw_status tw_compressor_plan(const tw_device* device, const tw_compressor_problem* problem, int64_t batch, int64_t max_tokens, tw_plan** plan) {
  return c_api::plan("tw_compressor_plan", device, plan, [](const auto&... given) { return tilewright::plan_compressor(given...); }, c_api::Given<tw_compressor_problem>{problem, "problem"}, batch, max_tokens);
}

void tw_compressor_destroy(tw_compressor* compressor) {
  delete compressor;
}

size_t tw_compressor_state_bytes(const tw_compressor* compressor) {
  return compressor == nullptr ? 0 : compressor->op.state_bytes();
}

size_t tw_compressor_cache_bytes(const tw_compressor* compressor) {
  return compressor == nullptr ? 0 : compressor->op.cache_bytes();
}

tw_status tw_compressor_run(const tw_compressor* compressor, const tw_compressor_arguments* arguments) {
  return c_api::call("tw_compressor_run", compressor, "compressor", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_indexer_create(const tw_device* device, const tw_indexer_problem* problem, tw_indexer** indexer) {
  return c_api::create_on("tw_indexer_create", device, "device", problem, "problem", indexer, "indexer");
}

tw_status tw_indexer_plan(const tw_device* device, const tw_indexer_problem* problem, int64_t tokens, int64_t batch, tw_plan** plan) {
  return c_api::plan("tw_indexer_plan", device, plan, [](const auto&... given) { return tilewright::plan_indexer(given...); }, c_api::Given<tw_indexer_problem>{problem, "problem"}, tokens, batch);
}

void tw_indexer_destroy(tw_indexer* indexer) {
  delete indexer;
}

size_t tw_indexer_key_cache_bytes(const tw_indexer* indexer) {
  return indexer == nullptr ? 0 : indexer->op.key_cache_bytes();
}

tw_status tw_indexer_run(const tw_indexer* indexer, const tw_indexer_arguments* arguments) {
  return c_api::call("tw_indexer_run", indexer, "indexer", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_hyper_connection_create(const tw_device* device, const tw_hyper_connection_problem* problem, tw_hyper_connection** connection) {
  return c_api::create_on("tw_hyper_connection_create", device, "device", problem, "problem", connection, "connection");
}

tw_status tw_hyper_connection_plan(const tw_device* device, const tw_hyper_connection_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_hyper_connection_plan", device, plan, [](const auto&... given) { return tilewright::plan_hyper_connection(given...); }, c_api::Given<tw_hyper_connection_problem>{problem, "problem"});
}

void tw_hyper_connection_destroy(tw_hyper_connection* connection) {
  delete connection;
}

size_t tw_hyper_connection_workspace_bytes(const tw_hyper_connection* connection) {
  return connection == nullptr ? 0 : connection->op.workspace_bytes();
}

tw_status tw_hyper_connection_run(const tw_hyper_connection* connection, const tw_hyper_connection_arguments* arguments) {
  return c_api::call("tw_hyper_connection_run", connection, "connection", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_hyper_embedding_create(const tw_device* device, const tw_hyper_embedding_problem* problem, tw_hyper_embedding** embedding) {
  return c_api::create_on("tw_hyper_embedding_create", device, "device", problem, "problem", embedding, "embedding");
}

tw_status tw_hyper_embedding_plan(const tw_device* device, const tw_hyper_embedding_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_hyper_embedding_plan", device, plan, [](const auto&... given) { return tilewright::plan_hyper_embedding(given...); }, c_api::Given<tw_hyper_embedding_problem>{problem, "problem"});
}

void tw_hyper_embedding_destroy(tw_hyper_embedding* embedding) {
  delete embedding;
}

tw_status tw_hyper_embedding_run(const tw_hyper_embedding* embedding, const tw_hyper_embedding_arguments* arguments) {
  return c_api::call("tw_hyper_embedding_run", embedding, "embedding", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_rms_norm_create(const tw_device* device, const tw_rms_norm_problem* problem, tw_rms_norm** norm) {
  return c_api::create_on("tw_rms_norm_create", device, "device", problem, "problem", norm, "norm");
}

tw_status tw_rms_norm_plan(const tw_device* device, const tw_rms_norm_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_rms_norm_plan", device, plan, [](const auto&... given) { return tilewright::plan_rms_norm(given...); }, c_api::Given<tw_rms_norm_problem>{problem, "problem"});
}

void tw_rms_norm_destroy(tw_rms_norm* norm) {
  delete norm;
}

tw_status tw_rms_norm_run(const tw_rms_norm* norm, const tw_rms_norm_arguments* arguments) {
  return c_api::call("tw_rms_norm_run", norm, "norm", arguments, [](const auto& op, const auto& a) { op.run(a); });
}
