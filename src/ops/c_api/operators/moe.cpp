// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, moe; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

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
