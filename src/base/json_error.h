// The error of a place in a JSON text, for all who read such texts.
#pragma once

#include <cstddef>
#include <string_view>

namespace tilewright {

/// A ParseError in the form that parse_json has: source:line:column, the line and a caret.
[[noreturn]] void fail_json(std::string_view text, std::size_t offset, std::string_view source,
                            std::string_view message);

}  // namespace tilewright
