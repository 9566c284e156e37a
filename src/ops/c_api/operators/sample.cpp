// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, sample; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_sample_problem_set_defaults(tw_sample_problem* given) {
  c_api::set_defaults(given);
}

void tw_sample_arguments_set_defaults(tw_sample_arguments* given) {
  c_api::set_defaults(given);
}

void tw_gather_rows_problem_set_defaults(tw_gather_rows_problem* given) {
  c_api::set_defaults(given);
}

void tw_gather_rows_arguments_set_defaults(tw_gather_rows_arguments* given) {
  c_api::set_defaults(given);
}

tw_status tw_sample_create(const tw_device* device, const tw_sample_problem* problem, tw_sample** sample) {
  return c_api::create_on("tw_sample_create", device, "device", problem, "problem", sample, "sample");
}

tw_status tw_sample_plan(const tw_device* device, const tw_sample_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_sample_plan", device, plan, [](const auto&... given) { return tilewright::plan_sample(given...); }, c_api::Given<tw_sample_problem>{problem, "problem"});
}

void tw_sample_destroy(tw_sample* sample) {
  delete sample;
}

const char* tw_sample_plan_text(const tw_sample* sample) {
  return c_api::plan_text(sample);
}

const char* tw_sample_kernel(const tw_sample* sample) {
  return sample == nullptr ? "" : sample->op.plan().kernel.c_str();
}

tw_status tw_sample_run(const tw_sample* sample, const tw_sample_arguments* arguments) {
  return c_api::call("tw_sample_run", sample, "sample", arguments, [](const auto& op, const auto& a) { op.run(a); });
}

tw_status tw_gather_rows_create(const tw_device* device, const tw_gather_rows_problem* problem, tw_gather_rows** gather) {
  return c_api::create_on("tw_gather_rows_create", device, "device", problem, "problem", gather, "gather");
}

tw_status tw_gather_rows_plan(const tw_device* device, const tw_gather_rows_problem* problem, tw_plan** plan) {
  return c_api::plan("tw_gather_rows_plan", device, plan, [](const auto&... given) { return tilewright::plan_gather_rows(given...); }, c_api::Given<tw_gather_rows_problem>{problem, "problem"});
}

void tw_gather_rows_destroy(tw_gather_rows* gather) {
  delete gather;
}

const char* tw_gather_rows_plan_text(const tw_gather_rows* gather) {
  return c_api::plan_text(gather);
}

tw_status tw_gather_rows_run(const tw_gather_rows* gather, const tw_gather_rows_arguments* arguments) {
  return c_api::call("tw_gather_rows_run", gather, "gather", arguments, [](const auto& op, const auto& a) { op.run(a); });
}
