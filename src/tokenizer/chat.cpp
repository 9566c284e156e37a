// The form of a conversation that DeepSeek-V4 was trained with, without tools.
#include "tilewright/tokenizer.h"

#include "base/error.h"

#include <string>

namespace tilewright {

namespace {

// The bar is U+FF5C, the line U+2581.
constexpr const char* kBegin = "<\uff5cbegin\u2581of\u2581sentence\uff5c>";
constexpr const char* kEnd = "<\uff5cend\u2581of\u2581sentence\uff5c>";
constexpr const char* kUser = "<\uff5cUser\uff5c>";
constexpr const char* kAssistant = "<\uff5cAssistant\uff5c>";
constexpr const char* kThink = "<think>";
constexpr const char* kThinkEnd = "</think>";

class ChatWriter {
 public:
  explicit ChatWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add_token(const char* name) {
    const auto id = tokenizer_.find_added(name);
    require(
        id.has_value(), ErrorKind::kUnsupported,
        "Tokenizer::chat: this tokenizer has no token {}; the chat form is that of DeepSeek-V4: "
        "use its tokenizer.json, or give the text to encode()",
        name);
    encode_text();
    ids_.push_back(*id);
  }
  void add_text(std::string_view text) { text_ += text; }
  std::vector<std::int32_t> take() {
    encode_text();
    return std::move(ids_);
  }

 private:
  // Texts that follow each other are one, whose pieces may reach from one into the next.
  void encode_text() {
    const auto ids = tokenizer_.encode(text_, AddedTokens::kAsText);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    text_.clear();
  }

  const Tokenizer& tokenizer_;
  std::string text_;
  std::vector<std::int32_t> ids_;
};

std::vector<ChatMessage> join_user_messages(std::span<const ChatMessage> messages) {
  std::vector<ChatMessage> joined;
  for (const ChatMessage& message : messages) {
    const bool goes_on =
        message.role == ChatRole::kUser && !joined.empty() && joined.back().role == ChatRole::kUser;
    if (goes_on) {
      joined.back().content += "\n\n" + message.content;
    } else {
      joined.push_back(message);
    }
  }
  return joined;
}

}  // namespace

std::vector<std::int32_t> Tokenizer::chat(std::span<const ChatMessage> given, ChatMode mode) const {
  require(!given.empty(), ErrorKind::kInvalidArgument,
          "Tokenizer::chat: no messages; expected at least one");
  const std::vector<ChatMessage> messages = join_user_messages(given);
  std::ptrdiff_t last_user = -1;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].role == ChatRole::kUser) last_user = static_cast<std::ptrdiff_t>(i);
  ChatWriter writer(*this);
  writer.add_token(kBegin);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const bool thinks = mode == ChatMode::kThinking && static_cast<std::ptrdiff_t>(i) >= last_user;
    if (message.role == ChatRole::kUser) writer.add_token(kUser);
    if (message.role == ChatRole::kAssistant && thinks) {
      writer.add_text(message.reasoning);
      writer.add_token(kThinkEnd);
    }
    writer.add_text(message.content);
    if (message.role == ChatRole::kAssistant) writer.add_token(kEnd);
    // What opens the assistant's turn stands behind the user's.
    const bool opens = message.role == ChatRole::kUser &&
                       (i + 1 == messages.size() || messages[i + 1].role == ChatRole::kAssistant);
    if (!opens) continue;
    writer.add_token(kAssistant);
    writer.add_token(thinks ? kThink : kThinkEnd);
  }
  return writer.take();
}

}  // namespace tilewright
