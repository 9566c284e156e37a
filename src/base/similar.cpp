#include "base/similar.h"

#include "base/quote.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace tilewright {
namespace {

/// Bytes that two names have in common at the beginning and, apart from those, at the end.
std::ptrdiff_t similarity(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  const auto prefix = std::ranges::mismatch(a, b).in1 - a.begin();
  a.remove_prefix(static_cast<std::size_t>(prefix));
  b.remove_prefix(static_cast<std::size_t>(prefix));
  const auto suffix = std::mismatch(a.rbegin(), a.rend(), b.rbegin()).first - a.rbegin();
  return prefix + suffix;
}

}  // namespace

std::string similar_names(std::string_view name, std::vector<std::string_view> names) {
  constexpr std::size_t kMaxNames = 3;
  if (names.empty()) return "there are no names";
  const auto is_better = [name](std::string_view a, std::string_view b) {
    return similarity(name, a) > similarity(name, b);
  };
  std::ranges::stable_sort(names, is_better);
  names.resize(std::min(names.size(), kMaxNames));
  std::vector<std::string> listed;
  std::ranges::transform(names, std::back_inserter(listed),
                         [](std::string_view text) { return quote(text); });
  return fmt::format("similar names: {}", fmt::join(listed, ", "));
}

}  // namespace tilewright
