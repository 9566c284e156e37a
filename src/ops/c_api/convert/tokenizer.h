// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, tokenizer: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/tokenizer.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_chat_message> {
  using Cpp = ChatMessage;
  static constexpr const char* kName = "tw_chat_message";
  static constexpr Shape kShape = {kName, sizeof(tw_chat_message), {}};
  static tw_chat_message defaults() {
    tw_chat_message c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_chat_message& c, ChatMessage& p, const Where& at) {
  p.role = choose<ChatRole>(c.role, {{TW_CHAT_ROLE_USER, ChatRole::kUser, "TW_CHAT_ROLE_USER"}, {TW_CHAT_ROLE_SYSTEM, ChatRole::kSystem, "TW_CHAT_ROLE_SYSTEM"}, {TW_CHAT_ROLE_ASSISTANT, ChatRole::kAssistant, "TW_CHAT_ROLE_ASSISTANT"}}, at, "role");
  if (c.content != nullptr) p.content = c.content;
  if (c.reasoning != nullptr) p.reasoning = c.reasoning;
}

}  // namespace tilewright::c_api
