// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, indexer; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_indexer_problem_set_defaults(tw_indexer_problem* given) {
  c_api::set_defaults(given);
}

void tw_indexer_arguments_set_defaults(tw_indexer_arguments* given) {
  c_api::set_defaults(given);
}

void tw_indexer_logits_problem_set_defaults(tw_indexer_logits_problem* given) {
  c_api::set_defaults(given);
}

void tw_indexer_logits_arguments_set_defaults(tw_indexer_logits_arguments* given) {
  c_api::set_defaults(given);
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

tw_status tw_indexer_logits_create(const tw_device* device, const tw_indexer_logits_problem* problem, tw_indexer_logits** logits) {
  return c_api::create_on("tw_indexer_logits_create", device, "device", problem, "problem", logits, "logits");
}

tw_status tw_indexer_logits_plan(const tw_device* device, const tw_indexer_logits_problem* problem, int64_t tokens, int64_t batch, tw_plan** plan) {
  return c_api::plan("tw_indexer_logits_plan", device, plan, [](const auto&... given) { return tilewright::plan_indexer_logits(given...); }, c_api::Given<tw_indexer_logits_problem>{problem, "problem"}, tokens, batch);
}

void tw_indexer_logits_destroy(tw_indexer_logits* logits) {
  delete logits;
}

tw_status tw_indexer_logits_run(const tw_indexer_logits* logits, const tw_indexer_logits_arguments* arguments) {
  return c_api::call("tw_indexer_logits_run", logits, "logits", arguments, [](const auto& op, const auto& a) { op.run(a); });
}
