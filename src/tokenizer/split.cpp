#include "tokenizer/split.h"

#include "base/utf8.h"
#include "tokenizer/char_class.h"

namespace tilewright::tokenizer {

const std::string_view kSplitPatterns[3] = {
    R"(\p{N}{1,3})",
    "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
};

namespace {

constexpr std::size_t kNoMatch = 0;

bool is_ascii_letter(char c) {
  return static_cast<unsigned>((c | 0x20) - 'a') < 26;
}

bool is_word(CharClass type) {
  return type == CharClass::kLetter || type == CharClass::kMark;
}

bool is_symbol(CharClass type) {
  return type == CharClass::kSymbol;
}

bool is_newline(CharClass type) {
  return type == CharClass::kNewline;
}

}  // namespace

struct Splitter::Char {
  std::uint32_t code;
  std::size_t end;
  CharClass type;

  bool is_number() const { return type == CharClass::kNumber; }
  bool is_han() const { return is_han_or_kana(code); }
};

Splitter::Splitter(std::string_view text) : text_(text), classes_(CharClasses::get()) {}

Splitter::Char Splitter::char_at(std::size_t at) const {
  const Utf8Char c = utf8_char_at(text_.data() + at);
  return {c.code, at + c.bytes, classes_(c.code)};
}

// Pattern 3 sees one segment: what lies between numbers, Han and kana (patterns 1 and 2), or a run
// of the latter. A function that runs over characters ends where the segment ends.
template <class Predicate>
std::size_t Splitter::run(std::size_t at, bool is_han, Predicate&& is_in) const {
  while (at < text_.size()) {
    const Char c = char_at(at);
    if (!is_in(c.type) || c.is_han() != is_han) break;
    at = c.end;
  }
  return at;
}

std::size_t Splitter::number_end(std::size_t at) const {
  for (int count = 0; count < 3 && at < text_.size(); ++count) {
    const Char c = char_at(at);
    if (!c.is_number()) break;
    at = c.end;
  }
  return at;
}

// \s*[\r\n]+ , else \s+(?!\S) , else \s+ : up to the last line end of the white space; without one
// all of it if the segment ends there, else all but its last character, which is left for the word
// that follows, unless it is the only one.
std::size_t Splitter::space_end(std::size_t at, bool is_han) const {
  std::size_t last = at, line_end = kNoMatch, end = at;
  bool is_followed = false;
  while (end < text_.size()) {
    const Char c = char_at(end);
    if (c.is_number() || c.is_han() != is_han) break;
    is_followed = c.type != CharClass::kSpace && c.type != CharClass::kNewline;
    if (is_followed) break;
    last = end;
    end = c.end;
    if (is_newline(c.type)) line_end = end;
  }
  if (line_end != kNoMatch) return line_end;
  return is_followed && last > at ? last : end;
}

// Where pattern 3 ends if it begins with `first` at `at`; kNoMatch if it does not.
std::size_t Splitter::match(std::size_t at, const Char& first) const {
  const bool is_han = first.is_han();
  const std::size_t next = first.end;
  if (is_word(first.type)) return run(next, is_han, is_word);
  if (first.type == CharClass::kSymbol) {
    if (first.code < 0x80 && next < text_.size() && is_ascii_letter(text_[next])) {
      std::size_t end = next + 1;
      while (end < text_.size() && is_ascii_letter(text_[end])) ++end;
      return end;
    }
    return run(run(next, is_han, is_symbol), is_han, is_newline);
  }
  if (!is_newline(first.type)) {
    const std::size_t word_end = run(next, is_han, is_word);
    if (word_end > next) return word_end;
  }
  if (first.code == ' ') {
    const std::size_t symbols_end = run(next, is_han, is_symbol);
    if (symbols_end > next) return run(symbols_end, is_han, is_newline);
  }
  return first.type == CharClass::kOther ? kNoMatch : space_end(at, is_han);
}

std::string_view Splitter::next() {
  const std::size_t begin = at_;
  // Characters that nothing matches are a piece up to where something does or the segment ends.
  while (at_ < text_.size()) {
    const Char first = char_at(at_);
    const bool is_unmatched_before = at_ > begin;
    if (first.is_number()) {
      if (!is_unmatched_before) at_ = number_end(at_);
      break;
    }
    // Both may be of class kOther: three codes among Han and kana have no meaning yet, U+3040,
    // U+3097 and U+3098.
    if (is_unmatched_before && first.is_han() != char_at(begin).is_han()) break;
    const std::size_t end = match(at_, first);
    if (end != kNoMatch) {
      if (!is_unmatched_before) at_ = end;
      break;
    }
    at_ = first.end;
  }
  return text_.substr(begin, at_ - begin);
}

}  // namespace tilewright::tokenizer
