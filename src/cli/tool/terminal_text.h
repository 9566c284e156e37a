// What a model writes, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::cli {

/// The characters with a question mark for control characters but newline and tab, so that a model
/// cannot drive the terminal. `text`: UTF-8, whole characters.
std::string for_terminal(std::string_view text);

}  // namespace tilewright::cli
