// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, cache; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

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
