// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, attention; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

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

void tw_attention_merge_problem_set_defaults(tw_attention_merge_problem* given) {
  c_api::set_defaults(given);
}

void tw_attention_merge_arguments_set_defaults(tw_attention_merge_arguments* given) {
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

tw_status tw_attention_merge_create(const tw_device* device, const tw_attention_merge_problem* problem, tw_attention_merge** merge) {
  return c_api::create_on("tw_attention_merge_create", device, "device", problem, "problem", merge, "merge");
}

tw_status tw_attention_merge_plan(const tw_device* device, const tw_attention_merge_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_attention_merge_plan", device, plan, [](const auto&... given) { return tilewright::plan_attention_merge(given...); }, c_api::Given<tw_attention_merge_problem>{problem, "problem"});
}

void tw_attention_merge_destroy(tw_attention_merge* merge) {
  delete merge;
}

const char* tw_attention_merge_plan_text(const tw_attention_merge* merge) {
  return c_api::plan_text(merge);
}

double tw_attention_merge_bytes(const tw_attention_merge* merge) {
  return merge == nullptr ? 0 : merge->op.plan().bytes;
}

tw_status tw_attention_merge_run(const tw_attention_merge* merge, const tw_attention_merge_arguments* arguments) {
  return c_api::call("tw_attention_merge_run", merge, "merge", arguments, [](const auto& op, const auto& a) { op.run(a); });
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
