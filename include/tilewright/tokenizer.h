// Text to tokens and back: byte-level BPE as DeepSeek-V3's and V4's tokenizer.json has it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// What becomes of a text that contains the name of an added token, such as "<think>".
enum class AddedTokens {
  kMatch,   ///< it is that token, as the library `tokenizers` has it
  kAsText,  ///< it is text like any other: for text from outside, which must not open a turn
};

/// Who says something in a conversation.
enum class ChatRole { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;
  std::string reasoning;  ///< an assistant's, before its answer; thinking mode alone shows it
};

/// Whether the model is to think before it answers.
enum class ChatMode { kChat, kThinking };

/// A tokenizer, immutable and shared by its copies; all functions may be called by several threads
/// at once. Tokens are the same, id by id, as those of the library `tokenizers` (0.23, Unicode
/// 16.0) for the same file.
///
/// A text is first cut at added tokens, then into pieces: at most three digits; runs of Chinese and
/// Japanese characters; words with the blank before them, punctuation, white space (the three
/// patterns of DeepSeek-V3). The bytes of each piece are tokens at first, of which the two
/// neighbours that stand first in the list of merges become one until no merge is left.
class Tokenizer {
 public:
  /// A tokenizer.json, or the one in a folder.
  /// Errors   InvalidArgument if the file cannot be read; ParseError with the place for a file that
  ///          is cut or contradicts itself; Unsupported for a tokenizer of another kind (other
  ///          patterns, normalizers, models than byte-level BPE)
  static Tokenizer open(const std::filesystem::path& path);
  /// The same from text; `source` stands for it in messages.
  static Tokenizer parse(std::string_view json, const std::string& source);
  /// 256 tokens, each the byte of its number, no added ones: for models of bytes.
  static Tokenizer of_bytes();

  ~Tokenizer();
  Tokenizer(const Tokenizer& other);
  Tokenizer& operator=(const Tokenizer& other);

  /// Number of tokens with the added ones; ids are below it.
  std::int64_t vocab_size() const;

  /// Nothing is put before or behind the text; for that see chat().
  /// Errors   InvalidArgument if the text is not UTF-8, with the offset; 256 byte tokens without
  ///          merges take any bytes
  std::vector<std::int32_t> encode(std::string_view text,
                                   AddedTokens added = AddedTokens::kMatch) const;

  /// The conversation as DeepSeek-V4 reads it, with what opens the assistant's turn behind the last
  /// message of the user:
  ///
  ///   BOS system <|User|>content<|Assistant|> (<think> | </think>) [reasoning </think>] content
  ///   EOS ...
  ///
  /// Messages of the user that follow each other are joined by an empty line. In thinking mode the
  /// reasoning before the last message of the user is left out. Contents are AddedTokens::kAsText.
  /// Texts between which no token stands, as of two system messages, are cut into pieces as one.
  /// Errors   Unsupported if the tokenizer lacks one of these tokens; InvalidArgument for no
  ///          messages; as encode()
  std::vector<std::int32_t> chat(std::span<const ChatMessage> messages, ChatMode mode) const;

  /// The text of the tokens; what is not UTF-8 becomes U+FFFD.
  /// Errors   InvalidArgument for an id that is none
  std::string decode(std::span<const std::int32_t> ids) const;

  /// The bytes of a token, which need not be whole characters. Errors as decode().
  std::string_view token_bytes(std::int32_t id) const;

  /// Whether the file calls the token special: that it is no text, but marks places in it.
  bool is_special(std::int32_t id) const;

  /// The token of an added token's name ("<think>"), nothing if there is none.
  std::optional<std::int32_t> find_added(std::string_view name) const;

  struct State;  ///< of the library's own

 private:
  explicit Tokenizer(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// Tokens to text as they come: a character is given out when its last byte is there, never a part
/// of one. All that it gave out together is decode() of all tokens.
class TokenStream {
 public:
  explicit TokenStream(Tokenizer tokenizer);
  ~TokenStream();
  TokenStream(TokenStream&& other) noexcept;
  TokenStream& operator=(TokenStream&& other) noexcept;

  /// The characters that the token completes, perhaps none. Errors as Tokenizer::decode().
  std::string add(std::int32_t id);
  /// What is left of a character that never ended: U+FFFD, or nothing.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
