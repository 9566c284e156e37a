// Added tokens: names that are found in a text before it is cut into pieces.
#pragma once

#include "tokenizer/hash_table.h"

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright::tokenizer {

/// Finds the first of several names in a text, of those that begin at one place the longest.
class NameFinder {
 public:
  void add(std::string_view name, std::int32_t id);

  struct Found {
    std::size_t begin, end;  ///< both npos if there is none
    std::int32_t id;
  };
  Found find(std::string_view text, std::size_t from) const;

 private:
  std::int32_t longest_at(std::string_view text, std::size_t begin, std::size_t& end) const;
  static std::uint64_t edge(std::uint32_t node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(byte);
  }

  std::bitset<256> first_bytes_;
  // A tree: (node, byte) -> node, and the name that ends at a node.
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<std::int32_t> ids_ = {TokenTable::kNone};
};

struct AddedToken {
  std::int32_t id = 0;
  std::string name;
  bool is_special = false;
  /// Found in a second pass, in what the first one left: after the normalizer, which here is none.
  bool is_normalized = false;
};

class AddedTokenSet {
 public:
  void add(const AddedToken& token);
  std::int32_t find(std::string_view name) const;
  bool is_special(std::int32_t id) const;

  /// Calls token(id) and text(part) for the parts of a text in order.
  template <class Token, class Text>
  void cut(std::string_view text, Token&& token, Text&& part) const {
    cut_with(first_, text, token,
             [&](std::string_view rest) { cut_with(second_, rest, token, part); });
  }

 private:
  template <class Token, class Text>
  static void cut_with(const NameFinder& finder, std::string_view text, Token&& token,
                       Text&& part) {
    for (std::size_t at = 0; at < text.size();) {
      const NameFinder::Found found = finder.find(text, at);
      const std::string_view before = text.substr(at, found.begin - at);
      if (!before.empty()) part(before);
      if (found.begin == text.npos) return;
      token(found.id);
      at = found.end;
    }
  }

  NameFinder first_, second_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, bool> is_special_;
};

}  // namespace tilewright::tokenizer
