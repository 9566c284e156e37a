// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, plan; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_reason_set_defaults(tw_reason* given) {
  c_api::set_defaults(given);
}

void tw_candidate_set_defaults(tw_candidate* given) {
  c_api::set_defaults(given);
}

void tw_launch_set_defaults(tw_launch* given) {
  c_api::set_defaults(given);
}
