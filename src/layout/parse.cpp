#include "layout/parse.h"

#include "base/error.h"

#include <algorithm>
#include <string>

namespace tilewright {

void bad_layout_text(std::string_view text, std::size_t at, const char* expected) {
  // A part of a long text, and one column a byte: the caret stays in place and the terminal safe.
  constexpr std::size_t kShown = 96;
  const std::size_t begin = at < kShown * 2 / 3 ? 0 : at - kShown / 2;
  std::string part(text.substr(std::min(begin, text.size()), kShown));
  std::ranges::replace_if(
      part, [](char c) { return c < ' ' || c > '~'; }, '?');
  const std::string_view before = begin == 0 ? "" : "...";
  const std::string_view behind = text.size() > begin + kShown ? "..." : "";
  fail(ErrorKind::kParseError, "layout text, column {}: expected {}\n  {}{}{}\n  {}^", at + 1,
       expected, before, part, behind, std::string(before.size() + at - begin, ' '));
}

}  // namespace tilewright
