// PTX text -> tokens.
#pragma once

#include "sim/parse/ast.h"

#include <cstddef>
#include <string_view>

namespace tilewright::sim {

enum class TokenKind : std::uint8_t {
  kEnd,
  kName,       ///< add, %r1, $L__BB0_1, _
  kDirective,  ///< with its dot: .reg, .shared::cluster, .3d
  kNumber,
  kString,  ///< with its quotes
  kSymbol,  ///< one character, or one of << >> <= >= == != && ||
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  SourcePos pos;

  bool is_symbol(char c) const noexcept {
    return kind == TokenKind::kSymbol && text.size() == 1 && text[0] == c;
  }
  bool is_directive(std::string_view name) const noexcept {
    return kind == TokenKind::kDirective && text == name;
  }
};

/// Reads the tokens of Module::text one after the other. Comments and # lines are no tokens. All
/// its errors are those of fail_at().
class TokenStream {
 public:
  /// Keeps a reference to the module, whose text and name must be set.
  explicit TokenStream(const Module& module);

  const Token& peek() const noexcept { return current_; }
  const Token& peek_second() const noexcept { return next_; }
  Token take();

  /// Takes the token if it is that symbol or directive.
  bool accept(char symbol);
  bool accept(std::string_view directive);

  /// Takes a token that must be there; `where` ends the sentence "expected ';' ...". The error
  /// points behind the token before, where the missing one belongs.
  Token expect(char symbol, std::string_view where);
  Token expect(TokenKind kind, std::string_view what);

  [[noreturn]] void fail(SourcePos pos, std::string_view message) const;

  /// The token in words, for messages: `"foo"`, `the end of the text`.
  static std::string describe(const Token& token);

  /// Behind the token that was taken last.
  SourcePos end_of_last() const noexcept { return end_of_last_; }
  std::size_t end_offset_of_last() const noexcept { return end_offset_of_last_; }
  std::size_t offset_of(const Token& token) const noexcept {
    return static_cast<std::size_t>(token.text.data() - text_.data());
  }
  const Module& module() const noexcept { return module_; }

 private:
  Token lex();
  void skip_blanks();
  void skip_line();
  void skip_block_comment();
  Token make(TokenKind kind, std::size_t num_bytes);
  Token lex_string();
  bool begins_with_point() const noexcept;
  std::size_t length_of_directive() const noexcept;
  std::size_t length_of_number() const noexcept;
  SourcePos here() const noexcept;
  char at(std::size_t offset) const noexcept {
    return offset < text_.size() ? text_[offset] : '\0';
  }

  const Module& module_;
  std::string_view text_;
  std::size_t offset_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
  Token current_, next_;
  SourcePos end_of_last_{1, 1};
  std::size_t end_offset_of_last_ = 0;
};

}  // namespace tilewright::sim
