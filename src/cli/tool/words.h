// Words that an option takes: the same for one notion in all commands.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace tilewright::cli {

/// One of `words`. A former spelling is refused with the word that took its place.
CLI::Validator one_of(std::vector<std::string> words,
                      std::map<std::string, std::string> former = {});

}  // namespace tilewright::cli
