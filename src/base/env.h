// Settings from the environment: the only place that reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tilewright {

/// The text that an environment variable holds; "" if it is not set.
std::string env_text(const char* name);

/// The integer that an environment variable holds; nothing if it is unset or empty.
/// Errors   InvalidArgument unless it is a decimal number from min to max; the message names the
///          variable, its value and the range
std::optional<std::int64_t> env_int(const char* name, std::int64_t min, std::int64_t max);

}  // namespace tilewright
