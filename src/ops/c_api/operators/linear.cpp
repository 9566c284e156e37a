// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, linear; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

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
