// The few Python literals that the header of an npy file consists of. Nothing is evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewright {

/// Takes one token or literal after the other from a text. Spaces and newlines before each are
/// skipped. Errors are ParseErrors that name source, byte and what was found there.
class PythonLiteralParser {
 public:
  /// Both texts must outlive the parser.
  PythonLiteralParser(std::string_view text, std::string_view source)
      : text_(text), source_(source) {}

  /// Skips the character if it comes next; whether it did.
  bool accept(char c);
  void expect(char c);
  void expect_end();

  /// A string in single or double quotes. Escapes are not interpreted.
  std::string_view string();

  /// True or False.
  bool boolean();

  /// A tuple of non-negative integers: "()", "(3,)", "(2, 3)" or "(2, 3,)"; at most kMaxRank.
  std::vector<std::int64_t> dimensions();

  [[noreturn]] void fail_here(std::string_view message) const;

 private:
  void skip_space();
  std::int64_t dimension();

  std::string_view text_;
  std::string_view source_;
  std::size_t position_ = 0;
};

}  // namespace tilewright
