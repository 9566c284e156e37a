// What holds for whatever a tokenizer is given, as a file and as a text: for the libFuzzer target
// and the mutation test.
#pragma once

#include "tilewright/tokenizer.h"

#include "base/utf8.h"
#include "tests/fuzz/properties.h"

namespace tilewright::fuzz {

/// Whether the text has the name of an added token that decodes to other bytes than its name: a
/// character that stands for a byte, such as U+00EF, does so in names, too, as in the library.
inline bool has_name_of_bytes(const Tokenizer& tokenizer, std::string_view file,
                              std::string_view text) {
  for (const auto& added : nlohmann::json::parse(file).at("added_tokens")) {
    const auto name = added.at("content").get<std::string>();
    if (text.find(name) != text.npos &&
        tokenizer.token_bytes(tokenizer.find_added(name).value()) != name)
      return true;
  }
  return false;
}

/// Decoding gives the text back, whether added tokens are looked for or not.
/// `file`: what the tokenizer was read from.
inline void check_round_trip(const Tokenizer& tokenizer, std::string_view file,
                             std::string_view text) {
  for (const AddedTokens added : {AddedTokens::kMatch, AddedTokens::kAsText}) {
    const auto ids = tokenizer.encode(text, added);
    check(ids.size() <= text.size(), "more tokens than bytes");
    for (const std::int32_t id : ids)
      check(id >= 0 && id < tokenizer.vocab_size(), "a token that is not in the vocabulary");
    check(tokenizer.decode(ids) == text ||
              (added == AddedTokens::kMatch && has_name_of_bytes(tokenizer, file, text)),
          "tokens that are not the text");
  }
}

/// A file is refused for what is in it, or what is read of it encodes and decodes.
inline int check_tokenizer_file(std::string_view text) {
  std::string message;
  const auto tokenizer = parse_or_message([&] { return Tokenizer::parse(text, "input"); }, message);
  if (!tokenizer) return 0;
  check_round_trip(*tokenizer, text,
                   "A kernel reads 1234 lines\r\n\n  of na\xc3\xafve text, once.");
  return 1;
}

/// 256 byte tokens and some merges among them; added tokens of both passes, all named by bytes that
/// they decode to.
inline const Tokenizer& tokenizer_for_texts() {
  static const Tokenizer tokenizer = Tokenizer::open(TILEWRIGHT_FUZZ_TOKENIZER);
  return tokenizer;
}

/// A text that is UTF-8 comes back from its tokens; another is refused.
inline void check_tokenizer_text(std::string_view text) {
  if (find_invalid_utf8(text) == text.npos) {
    check_round_trip(tokenizer_for_texts(), R"({"added_tokens": []})", text);
    return;
  }
  try {
    tokenizer_for_texts().encode(text);
  } catch (const Error& error) {
    check(error.kind() == ErrorKind::kInvalidArgument, "a text refused for another reason");
    return;
  }
  check(false, "a text that is not UTF-8 was taken");
}

}  // namespace tilewright::fuzz
