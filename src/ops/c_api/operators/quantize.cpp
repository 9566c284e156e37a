// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, quantize; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_quantize_problem_set_defaults(tw_quantize_problem* given) {
  c_api::set_defaults(given);
}

void tw_quantize_arguments_set_defaults(tw_quantize_arguments* given) {
  c_api::set_defaults(given);
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
