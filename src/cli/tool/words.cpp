#include "cli/tool/words.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

CLI::Validator one_of(std::vector<std::string> words, std::map<std::string, std::string> former) {
  const auto check = [words = std::move(words),
                      former = std::move(former)](const std::string& given) -> std::string {
    if (std::ranges::find(words, given) != words.end()) return {};
    const auto right = former.find(given);
    if (right != former.end()) return fmt::format("{} is called {}", given, right->second);
    return fmt::format("{} not in {{{}}}", given, fmt::join(words, ","));
  };
  return CLI::Validator(check, "");
}

}  // namespace tilewright::cli
