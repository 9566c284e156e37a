// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, hyper connection; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

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
