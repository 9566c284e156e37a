// Tokens with their bytes, and the merges that make tokens of bytes.
#pragma once

#include "tokenizer/hash_table.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright::tokenizer {

/// tokenizer.json writes bytes as characters that can be seen: printable ones of Latin-1 stand for
/// themselves, the other 68 bytes are U+0100 to U+0143. Appends the bytes; false, and nothing
/// appended, if a character is none of the 256.
bool append_bytes_of(std::string_view visible, std::string& bytes);

/// How tokenizer.json writes the byte.
std::string visible_byte(std::uint8_t byte);

class Vocabulary {
 public:
  static constexpr std::int32_t kNone = TokenTable::kNone;

  /// No more tokens will be added, of all together so many bytes as tokenizer.json writes them.
  void reserve(std::size_t tokens, std::size_t bytes);

  /// The next token, as tokenizer.json writes it; its id is size(). False if there is one like it.
  bool add(std::string_view visible);

  enum class AddResult { kAdded, kUnknownLeft, kUnknownRight, kUnknownBoth, kTwice };
  /// The next merge. kUnknownBoth: both are tokens, what they become is none.
  AddResult add_merge(std::string_view visible_left, std::string_view visible_right);

  /// A token that stands for its whole name and takes no part in merges; its id is size().
  void add_token(std::string_view visible);

  std::int32_t size() const { return static_cast<std::int32_t>(begin_.size()) - 1; }
  std::string_view bytes_of(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(begin_[i], begin_[i + 1] - begin_[i]);
  }
  std::int32_t find(std::string_view visible) const;

  /// A byte that no token stands for; such a vocabulary cannot encode.
  std::optional<std::uint8_t> missing_byte() const;
  bool has_merges() const { return num_merges_ > 0; }

  /// Call once when all is added.
  void finish();

  /// Appends the tokens of a piece: its bytes, of which the two neighbours with the first merge in
  /// the list, the leftmost ones of several, become one until there is none.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  std::int32_t find_bytes(std::string_view bytes) const {
    return table_.find(bytes, [this](std::int32_t id) { return bytes_of(id); });
  }
  void merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::string bytes_;
  std::vector<std::size_t> begin_ = {0};
  TokenTable table_;  // of tokens that are bytes
  // Tokens with other characters than those that stand for bytes, by name: no text becomes them.
  std::unordered_map<std::string, std::int32_t> names_;
  std::array<std::int32_t, 256> byte_ids_{};
  MergeTable merges_;
  std::uint32_t num_merges_ = 0;
  std::string scratch_;
  std::int32_t last_whole_ = kNone;

  // Most pieces are a token as a whole. Not every such piece becomes that token (its merges may
  // lead elsewhere), so what the merges gave is remembered the first time.
  enum Whole : std::uint8_t { kUnknown, kIsToken, kIsNot };
  std::unique_ptr<std::atomic<std::uint8_t>[]> whole_;
};

}  // namespace tilewright::tokenizer
