// Raising errors: formatted text, one call.
#pragma once

#include "tilewright/error.h"

#include <utility>

#include <fmt/format.h>

namespace tilewright {

/// Throws Error of the given kind with a formatted message.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// fail() if the condition does not hold. The message arguments are evaluated either way; keep them
/// cheap.
template <class... Args>
void require(bool condition, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(kind, format, std::forward<Args>(args)...);
}

}  // namespace tilewright
