// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, decode; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_decode_append_set_defaults(tw_decode_append* given) {
  c_api::set_defaults(given);
}

void tw_attention_decode_problem_set_defaults(tw_attention_decode_problem* given) {
  c_api::set_defaults(given);
}

void tw_attention_decode_arguments_set_defaults(tw_attention_decode_arguments* given) {
  c_api::set_defaults(given);
}

void tw_cache_append_problem_set_defaults(tw_cache_append_problem* given) {
  c_api::set_defaults(given);
}

void tw_cache_append_arguments_set_defaults(tw_cache_append_arguments* given) {
  c_api::set_defaults(given);
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

tw_status tw_cache_append_create(const tw_device* device, const tw_cache_append_problem* problem, tw_cache_append** append) {
  return c_api::create_on("tw_cache_append_create", device, "device", problem, "problem", append, "append");
}

tw_status tw_cache_append_plan(const tw_device* device, const tw_cache_append_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_cache_append_plan", device, plan, [](const auto&... given) { return tilewright::plan_cache_append(given...); }, c_api::Given<tw_cache_append_problem>{problem, "problem"});
}

void tw_cache_append_destroy(tw_cache_append* append) {
  delete append;
}

const char* tw_cache_append_plan_text(const tw_cache_append* append) {
  return c_api::plan_text(append);
}

double tw_cache_append_bytes(const tw_cache_append* append) {
  return append == nullptr ? 0 : append->op.plan().bytes;
}

tw_status tw_cache_append_run(const tw_cache_append* append, const tw_cache_append_arguments* arguments) {
  return c_api::call("tw_cache_append_run", append, "append", arguments, [](const auto& op, const auto& a) { op.run(a); });
}
