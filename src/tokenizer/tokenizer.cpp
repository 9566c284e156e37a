#include "tilewright/tokenizer.h"

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "tokenizer/split.h"
#include "tokenizer/state.h"

#include <limits>

namespace tilewright {

namespace {

void check_text(std::string_view text) {
  // Places in a piece are counted in 32 bits.
  require(text.size() < std::numeric_limits<std::uint32_t>::max(), ErrorKind::kInvalidArgument,
          "Tokenizer::encode: a text of {} bytes; expected less than 4 GiB: divide it",
          text.size());
  const std::size_t invalid = find_invalid_utf8(text);
  require(invalid == text.npos, ErrorKind::kInvalidArgument,
          "Tokenizer::encode: the text is not UTF-8 at byte {} (0x{:02x}); convert it to UTF-8",
          invalid, invalid == text.npos ? 0 : static_cast<std::uint8_t>(text[invalid]));
}

void encode_text(const tokenizer::Vocabulary& vocabulary, std::string_view text,
                 std::vector<std::int32_t>& ids) {
  tokenizer::Splitter splitter(text);
  for (std::string_view piece = splitter.next(); !piece.empty(); piece = splitter.next())
    vocabulary.encode(piece, ids);
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(const Tokenizer& other) = default;
Tokenizer& Tokenizer::operator=(const Tokenizer& other) = default;

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  std::error_code unreadable;  // which MappedFile tells better
  const bool is_folder = std::filesystem::is_directory(path, unreadable);
  const auto file_path = is_folder ? path / "tokenizer.json" : path;
  const MappedFile file(file_path);
  return parse(file.text(), file_path.string());
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& source) {
  return Tokenizer(tokenizer::parse_file(json, source));
}

Tokenizer Tokenizer::of_bytes() {
  return Tokenizer(tokenizer::byte_state());
}

std::int64_t Tokenizer::vocab_size() const {
  return state_->vocabulary.size();
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, AddedTokens added) const {
  std::vector<std::int32_t> ids;
  if (state_->is_of_bytes) {
    for (const char byte : text) ids.push_back(static_cast<std::uint8_t>(byte));
    return ids;
  }
  check_text(text);
  const tokenizer::Vocabulary& vocabulary = state_->vocabulary;
  if (added == AddedTokens::kAsText) {
    encode_text(vocabulary, text, ids);
    return ids;
  }
  state_->added.cut(
      text, [&](std::int32_t id) { ids.push_back(id); },
      [&](std::string_view part) { encode_text(vocabulary, part, ids); });
  return ids;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  require(id >= 0 && id < state_->vocabulary.size(), ErrorKind::kInvalidArgument,
          "Tokenizer: token {}; expected 0 to {}, the vocabulary of {}", id,
          state_->vocabulary.size() - 1, state_->source);
  return state_->vocabulary.bytes_of(id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  TokenStream stream(*this);
  std::string text;
  for (const std::int32_t id : ids) text += stream.add(id);
  return text + stream.finish();
}

bool Tokenizer::is_special(std::int32_t id) const {
  return state_->added.is_special(id);
}

std::optional<std::int32_t> Tokenizer::find_added(std::string_view name) const {
  const std::int32_t id = state_->added.find(name);
  return id == tokenizer::Vocabulary::kNone ? std::nullopt : std::optional(id);
}

struct TokenStream::State {
  Tokenizer tokenizer;
  Utf8Stream characters;
};

TokenStream::TokenStream(Tokenizer tokenizer) : state_(new State{std::move(tokenizer), {}}) {}
TokenStream::~TokenStream() = default;
TokenStream::TokenStream(TokenStream&& other) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&& other) noexcept = default;

std::string TokenStream::add(std::int32_t id) {
  std::string text;
  for (const char byte : state_->tokenizer.token_bytes(id))
    state_->characters.add(static_cast<std::uint8_t>(byte), text);
  return text;
}

std::string TokenStream::finish() {
  std::string text;
  state_->characters.finish(text);
  return text;
}

}  // namespace tilewright
