// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, llm; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_llm_options_set_defaults(tw_llm_options* given) {
  c_api::set_defaults(given);
}

void tw_llm_sampling_set_defaults(tw_llm_sampling* given) {
  c_api::set_defaults(given);
}
