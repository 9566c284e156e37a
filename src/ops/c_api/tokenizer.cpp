#include "tilewright/tokenizer.h"

#include "base/error.h"
#include "ops/c_api/convert/all.h"
#include "ops/c_api/status.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace c_api = tilewright::c_api;

using c_api::guarded;
using c_api::require_address;
using c_api::Where;
using tilewright::AddedTokens;
using tilewright::ChatMessage;
using tilewright::ChatMode;
using tilewright::ErrorKind;
using tilewright::require;
using tilewright::Tokenizer;
using tilewright::TokenStream;

struct tw_tokenizer {
  Tokenizer tokenizer;
};

struct tw_token_stream {
  TokenStream stream;
  std::string text;  // of the last call
};

namespace {

std::string_view text_of(const char* text, std::size_t bytes, const char* function,
                         const char* name) {
  if (bytes > 0) require_address(text, function, name);
  return {text, bytes};
}

/// What a call gives, to the caller's memory. The names are those of its parameters.
template <class Made, class T>
void give(const Made& made, T* to, const char* name, std::size_t capacity, std::size_t* count,
          const char* function) {
  if (count != nullptr) *count = made.size();
  if (to == nullptr) return;
  require(made.size() <= capacity, ErrorKind::kInvalidArgument,
          "{}: capacity = {}; expected at least {}, for so many {} there are", function, capacity,
          made.size(), name);
  std::ranges::copy(made, to);
}

AddedTokens to_added_tokens(std::int32_t given, const char* function) {
  require(given == TW_ADDED_TOKENS_MATCH || given == TW_ADDED_TOKENS_AS_TEXT,
          ErrorKind::kInvalidArgument,
          "{}: added_tokens = {}; expected TW_ADDED_TOKENS_MATCH = 0 or TW_ADDED_TOKENS_AS_TEXT = "
          "1",
          function, given);
  return given == TW_ADDED_TOKENS_MATCH ? AddedTokens::kMatch : AddedTokens::kAsText;
}

ChatMode to_mode(std::int32_t given, const char* function) {
  require(given == TW_CHAT_MODE_CHAT || given == TW_CHAT_MODE_THINKING, ErrorKind::kInvalidArgument,
          "{}: mode = {}; expected TW_CHAT_MODE_CHAT = 0 or TW_CHAT_MODE_THINKING = 1", function,
          given);
  return given == TW_CHAT_MODE_CHAT ? ChatMode::kChat : ChatMode::kThinking;
}

// Messages lie one behind the other as the caller's header has them, which may be smaller or larger
// than ours.
std::vector<ChatMessage> to_messages(const tw_chat_message* first, std::size_t count,
                                     const char* function) {
  std::vector<ChatMessage> messages;
  if (count == 0) return messages;
  require_address(first, function, "messages");
  const auto* const begin = reinterpret_cast<const std::byte*>(first);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "messages[" + std::to_string(i) + "]";
    const auto* const given =
        reinterpret_cast<const tw_chat_message*>(begin + i * first->struct_bytes);
    require(given->struct_bytes == first->struct_bytes, ErrorKind::kInvalidArgument,
            "{}: {}.struct_bytes = {}, but that of the first is {}; tw_chat_message_init() sets it",
            function, name, given->struct_bytes, first->struct_bytes);
    messages.push_back(c_api::to_cpp(given, Where{function, name.c_str()}));
  }
  return messages;
}

void keep(tw_token_stream& stream, std::string made, const char** text, std::size_t* bytes) {
  stream.text = std::move(made);
  *text = stream.text.c_str();
  if (bytes != nullptr) *bytes = stream.text.size();
}

}  // namespace

tw_status tw_tokenizer_open(const char* path, tw_tokenizer** tokenizer) {
  return guarded([&] {
    require_address(tokenizer, "tw_tokenizer_open", "tokenizer");
    *tokenizer = nullptr;
    *tokenizer = new tw_tokenizer{path == nullptr ? Tokenizer::of_bytes() : Tokenizer::open(path)};
  });
}

tw_status tw_tokenizer_parse(const char* text, std::size_t text_bytes, const char* source,
                             tw_tokenizer** tokenizer) {
  const char* const function = "tw_tokenizer_parse";
  return guarded([&] {
    require_address(tokenizer, function, "tokenizer");
    *tokenizer = nullptr;
    require_address(source, function, "source");
    *tokenizer =
        new tw_tokenizer{Tokenizer::parse(text_of(text, text_bytes, function, "text"), source)};
  });
}

void tw_tokenizer_destroy(tw_tokenizer* tokenizer) {
  delete tokenizer;
}

std::int64_t tw_tokenizer_vocab_size(const tw_tokenizer* tokenizer) {
  return tokenizer == nullptr ? 0 : tokenizer->tokenizer.vocab_size();
}

tw_status tw_tokenizer_encode(const tw_tokenizer* tokenizer, const char* text,
                              std::size_t text_bytes, std::int32_t added_tokens, std::int32_t* ids,
                              std::size_t capacity, std::size_t* num_ids) {
  const char* const function = "tw_tokenizer_encode";
  return guarded([&] {
    require_address(tokenizer, function, "tokenizer");
    const AddedTokens added = to_added_tokens(added_tokens, function);
    const std::string_view given = text_of(text, text_bytes, function, "text");
    give(tokenizer->tokenizer.encode(given, added), ids, "ids", capacity, num_ids, function);
  });
}

tw_status tw_tokenizer_chat(const tw_tokenizer* tokenizer, const tw_chat_message* messages,
                            std::size_t num_messages, std::int32_t mode, std::int32_t* ids,
                            std::size_t capacity, std::size_t* num_ids) {
  const char* const function = "tw_tokenizer_chat";
  return guarded([&] {
    require_address(tokenizer, function, "tokenizer");
    const ChatMode chat_mode = to_mode(mode, function);
    const auto given = to_messages(messages, num_messages, function);
    give(tokenizer->tokenizer.chat(given, chat_mode), ids, "ids", capacity, num_ids, function);
  });
}

tw_status tw_tokenizer_decode(const tw_tokenizer* tokenizer, const std::int32_t* ids,
                              std::size_t num_ids, char* text, std::size_t capacity,
                              std::size_t* text_bytes) {
  const char* const function = "tw_tokenizer_decode";
  return guarded([&] {
    require_address(tokenizer, function, "tokenizer");
    if (num_ids > 0) require_address(ids, function, "ids");
    give(tokenizer->tokenizer.decode(std::span(ids, num_ids)), text, "bytes of text", capacity,
         text_bytes, function);
  });
}

tw_status tw_tokenizer_token_bytes(const tw_tokenizer* tokenizer, std::int32_t id,
                                   const char** bytes, std::size_t* num_bytes) {
  const char* const function = "tw_tokenizer_token_bytes";
  return guarded([&] {
    require_address(tokenizer, function, "tokenizer");
    require_address(bytes, function, "bytes");
    require_address(num_bytes, function, "num_bytes");
    const std::string_view found = tokenizer->tokenizer.token_bytes(id);
    *bytes = found.data();
    *num_bytes = found.size();
  });
}

int tw_tokenizer_is_special(const tw_tokenizer* tokenizer, std::int32_t id) {
  return tokenizer != nullptr && tokenizer->tokenizer.is_special(id) ? 1 : 0;
}

std::int32_t tw_tokenizer_find_added(const tw_tokenizer* tokenizer, const char* name) {
  if (tokenizer == nullptr || name == nullptr) return -1;
  std::int32_t id = -1;
  (void)guarded([&] { id = tokenizer->tokenizer.find_added(name).value_or(-1); });
  return id;
}

tw_status tw_token_stream_create(const tw_tokenizer* tokenizer, tw_token_stream** stream) {
  const char* const function = "tw_token_stream_create";
  return guarded([&] {
    require_address(stream, function, "stream");
    *stream = nullptr;
    require_address(tokenizer, function, "tokenizer");
    *stream = new tw_token_stream{TokenStream(tokenizer->tokenizer), {}};
  });
}

void tw_token_stream_destroy(tw_token_stream* stream) {
  delete stream;
}

tw_status tw_token_stream_add(tw_token_stream* stream, std::int32_t id, const char** text,
                              std::size_t* text_bytes) {
  const char* const function = "tw_token_stream_add";
  return guarded([&] {
    require_address(stream, function, "stream");
    require_address(text, function, "text");
    keep(*stream, stream->stream.add(id), text, text_bytes);
  });
}

tw_status tw_token_stream_finish(tw_token_stream* stream, const char** text,
                                 std::size_t* text_bytes) {
  const char* const function = "tw_token_stream_finish";
  return guarded([&] {
    require_address(stream, function, "stream");
    require_address(text, function, "text");
    keep(*stream, stream->stream.finish(), text, text_bytes);
  });
}
