// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, tokenizer, under their names in C.
#pragma once

#include "ops/c_api/convert/tokenizer.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_chat_message(const ChatMessage& x, const ChatMessage& y) {
  Changes found;
  if (x.role != y.role) found.push_back("role");
  if (x.content != y.content) found.push_back("content");
  if (x.reasoning != y.reasoning) found.push_back("reasoning");
  return found;
}

}  // namespace tilewright::c_api
