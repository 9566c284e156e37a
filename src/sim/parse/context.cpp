#include "sim/parse/context.h"

#include "base/quote.h"
#include "base/similar.h"
#include "sim/parse/special_register.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

/// Sorting more names than that by similarity takes longer than a reader of the message would wait.
constexpr std::size_t kMaxCandidates = 20'000;

/// Whether the beginning and the end that the names share are at least half of the longer one.
bool is_similar(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  const std::size_t longer = b.size();
  const auto prefix = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  a.remove_prefix(prefix);
  b.remove_prefix(prefix);
  const auto suffix = static_cast<std::size_t>(
      std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
  return 2 * (prefix + suffix) >= longer;
}

}  // namespace

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::vector<std::string_view> similar;
  std::ranges::copy_if(candidates, std::back_inserter(similar),
                       [name](std::string_view other) { return is_similar(name, other); });
  if (similar.empty()) return "";
  return "; " + similar_names(name, std::move(similar));
}

void ParseContext::declare(std::string_view name, Symbol symbol) {
  if (const auto* entry = names.declare(name, symbol)) {
    fail_declared(name, symbol.pos, entry->value.pos);
  }
}

void ParseContext::fail_declared(std::string_view name, SourcePos pos, SourcePos first) const {
  tokens.fail(pos, fmt::format("{} is already declared in this scope, in line {}", quote(name),
                               first.line));
}

std::vector<std::string_view> ParseContext::names_of(
    std::initializer_list<Symbol::Kind> kinds) const {
  std::vector<std::string_view> found;
  for (const auto& entry : names.entries()) {
    if (found.size() == kMaxCandidates) break;
    if (std::ranges::count(kinds, entry.value.kind) != 0) found.push_back(entry.name);
  }
  return found;
}

void ParseContext::fail_unknown(const Token& name, std::string_view what,
                                std::initializer_list<Symbol::Kind> kinds) const {
  tokens.fail(name.pos, fmt::format("unknown {} {}{}", what, quote(name.text),
                                    suggestion(name.text, names_of(kinds))));
}

void ParseContext::fail_unknown_register(const Token& name) const {
  auto candidates = names_of({Symbol::Kind::kRegister});
  std::ranges::copy(special_register_names(), std::back_inserter(candidates));
  tokens.fail(name.pos, fmt::format("unknown register {}{}{}", quote(name.text),
                                    suggestion(name.text, candidates), module.version_note()));
}

}  // namespace tilewright::sim
