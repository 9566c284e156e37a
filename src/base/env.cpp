#include "base/env.h"

#include "base/error.h"
#include "base/quote.h"

#include <charconv>
#include <cstdlib>

namespace tilewright {

std::string env_text(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? text : "";
}

std::optional<std::int64_t> env_int(const char* name, std::int64_t min, std::int64_t max) {
  const std::string digits = env_text(name);
  if (digits.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || value < min || value > max) {
    fail(
        ErrorKind::kInvalidArgument,
        "environment variable {} is {}; expected a whole number from {} to {}. Correct or unset it",
        name, quote(digits), min, max);
  }
  return value;
}

}  // namespace tilewright
