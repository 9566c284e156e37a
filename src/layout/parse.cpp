#include "layout/parse.h"

#include "base/error.h"

#include <string>

namespace tilewright {

void bad_layout_text(std::string_view text, std::size_t at, const char* expected) {
  fail(ErrorKind::kParseError, "layout text, column {}: expected {}\n  {}\n  {}^", at + 1, expected,
       text, std::string(at, ' '));
}

}  // namespace tilewright
