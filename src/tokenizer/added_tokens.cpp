#include "tokenizer/added_tokens.h"

namespace tilewright::tokenizer {

void NameFinder::add(std::string_view name, std::int32_t id) {
  first_bytes_.set(static_cast<std::uint8_t>(name.front()));
  std::uint32_t node = 0;
  for (const char byte : name) {
    const auto [next, is_new] =
        edges_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(TokenTable::kNone);
    node = next->second;
  }
  ids_[node] = id;
}

std::int32_t NameFinder::longest_at(std::string_view text, std::size_t begin,
                                    std::size_t& end) const {
  std::int32_t id = TokenTable::kNone;
  std::uint32_t node = 0;
  for (std::size_t at = begin; at < text.size();) {
    const auto next = edges_.find(edge(node, text[at]));
    if (next == edges_.end()) break;
    node = next->second;
    ++at;
    if (ids_[node] == TokenTable::kNone) continue;
    id = ids_[node];
    end = at;
  }
  return id;
}

NameFinder::Found NameFinder::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!first_bytes_[static_cast<std::uint8_t>(text[at])]) continue;
    std::size_t end = at;
    const std::int32_t id = longest_at(text, at, end);
    if (id != TokenTable::kNone) return {at, end, id};
  }
  return {text.npos, text.npos, TokenTable::kNone};
}

void AddedTokenSet::add(const AddedToken& token) {
  (token.is_normalized ? second_ : first_).add(token.name, token.id);
  ids_.emplace(token.name, token.id);
  is_special_.emplace(token.id, token.is_special);
}

std::int32_t AddedTokenSet::find(std::string_view name) const {
  const auto found = ids_.find(std::string(name));
  return found == ids_.end() ? TokenTable::kNone : found->second;
}

bool AddedTokenSet::is_special(std::int32_t id) const {
  const auto found = is_special_.find(id);
  return found != is_special_.end() && found->second;
}

}  // namespace tilewright::tokenizer
