// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, sparse attention; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

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

void tw_latent_attention_problem_set_defaults(tw_latent_attention_problem* given) {
  c_api::set_defaults(given);
}

void tw_latent_attention_arguments_set_defaults(tw_latent_attention_arguments* given) {
  c_api::set_defaults(given);
}

void tw_mask_lists_problem_set_defaults(tw_mask_lists_problem* given) {
  c_api::set_defaults(given);
}

void tw_mask_lists_arguments_set_defaults(tw_mask_lists_arguments* given) {
  c_api::set_defaults(given);
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

tw_status tw_latent_attention_create(const tw_device* device, const tw_latent_attention_problem* problem, tw_latent_attention** attention) {
  return c_api::create_on("tw_latent_attention_create", device, "device", problem, "problem", attention, "attention");
}

tw_status tw_latent_attention_plan(const tw_device* device, const tw_latent_attention_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_latent_attention_plan", device, plan, [](const auto&... given) { return tilewright::plan_latent_attention(given...); }, c_api::Given<tw_latent_attention_problem>{problem, "problem"});
}

void tw_latent_attention_destroy(tw_latent_attention* attention) {
  delete attention;
}

const char* tw_latent_attention_plan_text(const tw_latent_attention* attention) {
  return c_api::plan_text(attention);
}

const char* tw_latent_attention_kernel(const tw_latent_attention* attention) {
  return attention == nullptr ? "" : attention->op.plan().kernel.c_str();
}

size_t tw_latent_attention_workspace_bytes(const tw_latent_attention* attention) {
  return attention == nullptr ? 0 : attention->op.plan().workspace_bytes;
}

tw_status tw_latent_attention_run(const tw_latent_attention* attention, const tw_latent_attention_arguments* arguments) {
  return c_api::call("tw_latent_attention_run", attention, "attention", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_mask_lists_create(const tw_device* device, const tw_mask_lists_problem* problem, tw_mask_lists** lists) {
  return c_api::create_on("tw_mask_lists_create", device, "device", problem, "problem", lists, "lists");
}

tw_status tw_mask_lists_plan(const tw_device* device, const tw_mask_lists_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_mask_lists_plan", device, plan, [](const auto&... given) { return tilewright::plan_mask_lists(given...); }, c_api::Given<tw_mask_lists_problem>{problem, "problem"});
}

void tw_mask_lists_destroy(tw_mask_lists* lists) {
  delete lists;
}

const char* tw_mask_lists_plan_text(const tw_mask_lists* lists) {
  return c_api::plan_text(lists);
}

double tw_mask_lists_bytes(const tw_mask_lists* lists) {
  return lists == nullptr ? 0 : lists->op.plan().bytes;
}

tw_status tw_mask_lists_run(const tw_mask_lists* lists, const tw_mask_lists_arguments* arguments) {
  return c_api::call("tw_mask_lists_run", lists, "lists", arguments, [](const auto& op, const auto& a) { op.run(a); });
}
