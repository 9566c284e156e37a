#include "sim/parse/lexer.h"

#include "base/quote.h"
#include "sim/parse/diagnostic.h"

#include <array>

namespace tilewright::sim {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr auto kIsNamePart = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const char letter = static_cast<char>(c);
    table[static_cast<std::size_t>(c)] =
        is_letter(letter) || is_digit(letter) || letter == '_' || letter == '$';
  }
  return table;
}();

bool is_name_part(char c) {
  return kIsNamePart[static_cast<unsigned char>(c)];
}

constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};

}  // namespace

TokenStream::TokenStream(const Module& module) : module_(module), text_(*module.text) {
  current_ = lex();
  next_ = lex();
}

Token TokenStream::take() {
  const Token taken = current_;
  const auto length = static_cast<std::uint32_t>(taken.text.size());
  end_of_last_ = {taken.pos.line, taken.pos.column + length};
  end_offset_of_last_ = offset_of(taken) + length;
  current_ = next_;
  next_ = lex();
  return taken;
}

bool TokenStream::accept(char symbol) {
  if (!current_.is_symbol(symbol)) return false;
  take();
  return true;
}

bool TokenStream::accept(std::string_view directive) {
  if (!current_.is_directive(directive)) return false;
  take();
  return true;
}

Token TokenStream::expect(char symbol, std::string_view where) {
  if (current_.is_symbol(symbol)) return take();
  fail(end_of_last_, fmt::format("expected '{}' {}, found {}", symbol, where, describe(current_)));
}

Token TokenStream::expect(TokenKind kind, std::string_view what) {
  if (current_.kind == kind) return take();
  fail(current_.pos, fmt::format("expected {}, found {}", what, describe(current_)));
}

void TokenStream::fail(SourcePos pos, std::string_view message) const {
  fail_at(module_, pos, message);
}

std::string TokenStream::describe(const Token& token) {
  return token.kind == TokenKind::kEnd ? "the end of the text" : quote(token.text, 60);
}

SourcePos TokenStream::here() const noexcept {
  return {line_, static_cast<std::uint32_t>(offset_ - line_begin_ + 1)};
}

void TokenStream::skip_line() {
  const std::size_t end = text_.find('\n', offset_);
  offset_ = end == text_.npos ? text_.size() : end;
}

void TokenStream::skip_block_comment() {
  const SourcePos begin = here();
  const std::size_t end = text_.find("*/", offset_ + 2);
  if (end == text_.npos) fail(begin, "this comment has no end; expected \"*/\"");
  for (; offset_ < end; ++offset_) {
    if (text_[offset_] != '\n') continue;
    ++line_;
    line_begin_ = offset_ + 1;
  }
  offset_ = end + 2;
}

void TokenStream::skip_blanks() {
  while (offset_ < text_.size()) {
    const char c = text_[offset_];
    if (c == '\n') {
      ++line_;
      line_begin_ = ++offset_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++offset_;
    } else if (c == '#' || (c == '/' && at(offset_ + 1) == '/')) {
      skip_line();
    } else if (c == '/' && at(offset_ + 1) == '*') {
      skip_block_comment();
    } else {
      return;
    }
  }
}

Token TokenStream::make(TokenKind kind, std::size_t num_bytes) {
  const Token token{kind, text_.substr(offset_, num_bytes), here()};
  offset_ += num_bytes;
  return token;
}

Token TokenStream::lex() {
  skip_blanks();
  if (offset_ == text_.size()) return make(TokenKind::kEnd, 0);
  const char c = text_[offset_];
  const bool is_name_follows = is_name_part(at(offset_ + 1));
  if (is_letter(c) || c == '_' || ((c == '%' || c == '$') && is_name_follows)) {
    std::size_t end = offset_ + 1;
    while (is_name_part(at(end))) ++end;
    return make(TokenKind::kName, end - offset_);
  }
  if (is_digit(c) || begins_with_point()) return make(TokenKind::kNumber, length_of_number());
  if (c == '.' && is_name_follows) return make(TokenKind::kDirective, length_of_directive());
  if (c == '"') return lex_string();
  for (const std::string_view pair : kPairs) {
    if (text_.substr(offset_, 2) == pair) return make(TokenKind::kSymbol, 2);
  }
  if (std::string_view(",;:{}()[]<>@!+-*/%&|^~?=").find(c) != std::string_view::npos) {
    return make(TokenKind::kSymbol, 1);
  }
  fail(here(), fmt::format("unexpected character {}", quote(text_.substr(offset_, 1))));
}

/// .5 where no .modifier can stand.
bool TokenStream::begins_with_point() const noexcept {
  if (text_[offset_] != '.' || (offset_ > 0 && is_name_part(text_[offset_ - 1]))) return false;
  std::size_t end = offset_ + 1;
  while (is_digit(at(end))) ++end;
  const bool has_digits = end > offset_ + 1;
  return has_digits && (!is_name_part(at(end)) || at(end) == 'e' || at(end) == 'E');
}

std::size_t TokenStream::length_of_directive() const noexcept {
  std::size_t end = offset_ + 1;
  while (true) {
    while (is_name_part(at(end))) ++end;
    if (at(end) != ':' || at(end + 1) != ':' || !is_name_part(at(end + 2))) return end - offset_;
    end += 2;
  }
}

/// Everything that looks like one number; whether it is one is seen when it is read.
std::size_t TokenStream::length_of_number() const noexcept {
  const char second = at(offset_ + 1);
  const bool has_prefix =
      text_[offset_] == '0' && is_letter(second) && second != 'e' && second != 'E';
  std::size_t end = offset_ + 1;
  while (true) {
    const char c = at(end);
    const bool is_exponent_sign = (c == '+' || c == '-') && !has_prefix &&
                                  (at(end - 1) == 'e' || at(end - 1) == 'E') &&
                                  is_digit(at(end + 1));
    if (!is_name_part(c) && !is_exponent_sign && (c != '.' || has_prefix)) return end - offset_;
    ++end;
  }
}

Token TokenStream::lex_string() {
  std::size_t end = offset_ + 1;
  while (at(end) != '"') {
    if (end >= text_.size() || text_[end] == '\n')
      fail(here(), "this string has no end on its line");
    end += text_[end] == '\\' && at(end + 1) != '\n' ? 2 : 1;
  }
  return make(TokenKind::kString, end + 1 - offset_);
}

}  // namespace tilewright::sim
