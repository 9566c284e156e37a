#include "base/python_literal.h"

#include "base/error.h"
#include "base/quote.h"
#include "base/tensor.h"

#include <algorithm>
#include <charconv>

namespace tilewright {

bool PythonLiteralParser::accept(char c) {
  skip_space();
  if (position_ == text_.size() || text_[position_] != c) return false;
  ++position_;
  return true;
}

void PythonLiteralParser::expect(char c) {
  if (!accept(c)) fail_here(fmt::format("expected '{}'", c));
}

void PythonLiteralParser::expect_end() {
  skip_space();
  if (position_ != text_.size()) fail_here("expected the end of the header");
}

std::string_view PythonLiteralParser::string() {
  if (!accept('\'') && !accept('"')) fail_here("expected a string");
  const std::size_t begin = position_;
  const std::size_t end = text_.find(text_[begin - 1], begin);
  if (end == text_.npos) fail_here("the string has no end");
  position_ = end + 1;
  return text_.substr(begin, end - begin);
}

bool PythonLiteralParser::boolean() {
  skip_space();
  for (const bool value : {false, true}) {
    const std::string_view word = value ? "True" : "False";
    if (!text_.substr(position_).starts_with(word)) continue;
    position_ += word.size();
    return value;
  }
  fail_here("expected True or False");
}

std::vector<std::int64_t> PythonLiteralParser::dimensions() {
  std::vector<std::int64_t> dims;
  bool has_comma = true;
  expect('(');
  while (!accept(')')) {
    if (!has_comma) fail_here("expected ',' or ')'");
    if (dims.size() == kMaxRank) {
      fail_here(fmt::format("more than {} dimensions, which are not read", kMaxRank));
    }
    dims.push_back(dimension());
    has_comma = accept(',');
  }
  if (dims.size() == 1 && !has_comma) fail_here("expected ',' after the only dimension");
  return dims;
}

std::int64_t PythonLiteralParser::dimension() {
  skip_space();
  const std::string_view rest = text_.substr(position_);
  const std::size_t num_digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const bool has_leading_zero = num_digits > 1 && rest[0] == '0';
  std::int64_t dim = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + num_digits, dim);
  if (error != std::errc() || has_leading_zero) {
    fail_here("expected a dimension from 0 to 9223372036854775807");
  }
  position_ += num_digits;
  return dim;
}

void PythonLiteralParser::skip_space() {
  position_ = std::min(text_.find_first_not_of(" \n", position_), text_.size());
}

void PythonLiteralParser::fail_here(std::string_view message) const {
  fail(ErrorKind::kParseError, "{}: header byte {}: {}, found {}", source_, position_, message,
       position_ == text_.size() ? "the end" : quote(text_.substr(position_), 20));
}

}  // namespace tilewright
