// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, tokenizer, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/tokenizer.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_chat_message) {
  const Members<tw_chat_message, ChatMessage> test(tw_chat_message_init, changed_tw_chat_message);
  test.has_the_defaults();
  test.sets("role", [](auto& c) { c.role = TW_CHAT_ROLE_SYSTEM; }, [](const auto& p) { return p.role == ChatRole::kSystem; });
  test.sets("role", [](auto& c) { c.role = TW_CHAT_ROLE_ASSISTANT; }, [](const auto& p) { return p.role == ChatRole::kAssistant; });
  test.refuses("role", [](auto& c) { c.role = 77; });
  test.sets("content", [](auto& c) { c.content = "sentinel 2"; }, [](const auto& p) { return p.content == "sentinel 2"; });
  test.sets("reasoning", [](auto& c) { c.reasoning = "sentinel 3"; }, [](const auto& p) { return p.reasoning == "sentinel 3"; });
}

}  // namespace
}  // namespace tilewright::c_api
