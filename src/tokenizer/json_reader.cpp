#include "tokenizer/json_reader.h"

#include "base/json_error.h"
#include "base/utf8.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tilewright {

namespace {

constexpr std::size_t kMaxDepth = 100;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

JsonReader::JsonReader(std::string_view text, std::string source)
    : text_(text), source_(std::move(source)) {
  if (const std::size_t bad = find_invalid_utf8(text); bad != text.npos)
    fail_at(bad, "a byte that is not UTF-8");
}

void JsonReader::fail_at(std::size_t place, std::string_view message) const {
  fail_json(text_, place, source_, message);
}

void JsonReader::fail(std::string_view message) const {
  fail_at(value_at_, message);
}

void JsonReader::fail_expected(std::string_view what) {
  const char next = peek();
  fail_at(at_, at_ == text_.size() ? fmt::format("the text ends; expected {}", what)
                                   : fmt::format("found '{}'; expected {}",
                                                 next >= 0x20 && next < 0x7f ? next : '?', what));
}

// The next character that is no white space; zero at the end.
char JsonReader::peek() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
    ++at_;
  }
  return '\0';
}

void JsonReader::begin_object() {
  if (peek() != '{') fail_expected("an object");
  value_at_ = at_++;
  is_first_ = true;
}

void JsonReader::begin_array() {
  if (peek() != '[') fail_expected("an array");
  value_at_ = at_++;
  is_first_ = true;
}

bool JsonReader::next_of(char close) {
  const bool is_first = is_first_;
  is_first_ = false;
  const char c = peek();
  if (c == close && at_ < text_.size()) {
    ++at_;
    return false;
  }
  if (is_first) return true;
  if (c != ',') fail_expected(close == '}' ? "a comma or }" : "a comma or ]");
  ++at_;
  return true;
}

bool JsonReader::next_elem() {
  return next_of(']');
}

bool JsonReader::next_member() {
  if (!next_of('}')) return false;
  const std::string_view name = string();
  name_in_text_ = name.data() == scratch_.data() ? std::string_view() : name;
  name_ = name;
  if (peek() != ':') fail_expected("a colon");
  ++at_;
  return true;
}

JsonReader::Kind JsonReader::next_kind() {
  switch (peek()) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    default:
      return Kind::kOther;
  }
}

std::string_view JsonReader::string() {
  if (peek() != '"') fail_expected("a string");
  value_at_ = at_++;
  const std::size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') return text_.substr(begin, at_++ - begin);
    if (c == '\\') return escaped_string(begin);
    if (static_cast<std::uint8_t>(c) < 0x20)
      fail_at(at_, "a control character in a string; expected an escape such as \\n");
  }
  fail_at(at_, "the text ends in a string");
}

std::uint32_t JsonReader::read_hex() {
  std::uint32_t code = 0;
  const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc() || end != digits.data() + 4 || digits[0] == '-')
    fail_at(at_, "expected four hexadecimal digits after \\u");
  at_ += 4;
  return code;
}

// The rest of a string from its first escape on; what stands before it begins at `begin`.
std::string_view JsonReader::escaped_string(std::size_t begin) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  scratch_.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return scratch_;
    if (static_cast<std::uint8_t>(c) < 0x20)
      fail_at(at_ - 1, "a control character in a string; expected an escape such as \\n");
    if (c != '\\') {
      scratch_ += c;
      continue;
    }
    const char name = at_ < text_.size() ? text_[at_++] : '\0';
    if (name != 'u') {
      const std::size_t which = kNames.find(name);
      if (name == '\0' || which == kNames.npos)
        fail_at(at_ - 1,
                "an unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
      scratch_ += kMeanings[which];
      continue;
    }
    const std::size_t escape_at = at_;
    std::uint32_t code = read_hex();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const std::uint32_t low = read_hex();
      code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                                           : 0xd800;
    }
    if (code >= 0xd800 && code < 0xe000) fail_at(escape_at, "half of a surrogate pair");
    append_utf8(scratch_, code);
  }
  fail_at(at_, "the text ends in a string");
}

std::int64_t JsonReader::integer(std::int64_t min, std::int64_t max) {
  const char first = peek();
  if (!is_digit(first) && first != '-') fail_expected("a whole number");
  value_at_ = at_;
  skip_number();
  const std::string_view digits = text_.substr(value_at_, at_ - value_at_);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < min || value > max)
    fail(fmt::format("expected a whole number from {} to {}", min, max));
  return value;
}

bool JsonReader::boolean() {
  const char first = peek();
  if (first != 't' && first != 'f') fail_expected("true or false");
  value_at_ = at_;
  expect_word(first == 't' ? "true" : "false");
  return first == 't';
}

void JsonReader::expect_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) fail_expected("a value");
  at_ += word.size();
}

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
void JsonReader::skip_number() {
  const auto at_char = [this] { return at_ < text_.size() ? text_[at_] : '\0'; };
  const auto digits = [&] {
    if (!is_digit(at_char())) fail_at(at_, "expected a digit");
    while (is_digit(at_char())) ++at_;
  };
  if (at_char() == '-') ++at_;
  if (at_char() == '0') {
    ++at_;
  } else {
    digits();
  }
  if (at_char() == '.') {
    ++at_;
    digits();
  }
  if (at_char() == 'e' || at_char() == 'E') {
    ++at_;
    if (at_char() == '+' || at_char() == '-') ++at_;
    digits();
  }
}

std::string_view JsonReader::skip() {
  peek();
  const std::size_t begin = at_;
  std::string open;  // what closes the objects and arrays that are not closed, outermost first
  do {
    const char first = peek();
    if (first == '{' || first == '[') {
      if (open.size() == kMaxDepth)
        fail_at(at_, fmt::format("arrays and objects are nested more than {} deep", kMaxDepth));
      open += first == '{' ? '}' : ']';
      first == '{' ? begin_object() : begin_array();
    } else if (first == '"') {
      string();
    } else if (is_digit(first) || first == '-') {
      skip_number();
    } else if (first == 't' || first == 'f') {
      boolean();
    } else {
      if (first != 'n') fail_expected("a value");
      expect_word("null");
    }
    while (!open.empty()) {
      if (open.back() == '}' ? next_member() : next_elem()) break;
      open.pop_back();
    }
  } while (!open.empty());
  is_first_ = false;
  value_at_ = begin;
  return text_.substr(begin, at_ - begin);
}

void JsonReader::end() {
  peek();
  if (at_ != text_.size()) fail_expected("nothing more");
}

}  // namespace tilewright
