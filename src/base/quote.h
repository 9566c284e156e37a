// Text from files, made fit for an error message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilewright {

/// The text with everything but printable ASCII, backslash and double quote escaped (\n, \x1b,
/// ...), so that a file cannot send control sequences to a terminal; cut after max_bytes, with
/// "..." then.
std::string escape(std::string_view text, std::size_t max_bytes = 100);

/// The same in double quotes. If it is cut, its size follows: "layers.0.a..." (5000 bytes).
std::string quote(std::string_view text, std::size_t max_bytes = 100);

}  // namespace tilewright
