// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, tokenizer; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;

void tw_chat_message_set_defaults(tw_chat_message* given) {
  c_api::set_defaults(given);
}
