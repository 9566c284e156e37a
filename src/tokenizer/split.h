// A text into the pieces that are tokenized each by itself: the three patterns of DeepSeek-V3.
#pragma once

#include <cstddef>
#include <string_view>

namespace tilewright::tokenizer {

/// The patterns, as tokenizer.json has them. Each cuts the pieces of the one before, so that the
/// ends of those are ends of the text to it.
extern const std::string_view kSplitPatterns[3];

/// Finds the pieces of a text one after the other; they are all of it, in order.
class Splitter {
 public:
  /// `text`: UTF-8 that was checked; it must outlive this.
  explicit Splitter(std::string_view text);

  /// The next piece, empty at the end of the text.
  std::string_view next();

 private:
  struct Char;
  Char char_at(std::size_t at) const;
  std::size_t match(std::size_t at, const Char& first) const;
  template <class Predicate>
  std::size_t run(std::size_t at, bool is_han, Predicate&& is_in) const;
  std::size_t number_end(std::size_t at) const;
  std::size_t space_end(std::size_t at, bool is_han) const;

  std::string_view text_;
  const class CharClasses& classes_;
  std::size_t at_ = 0;
};

}  // namespace tilewright::tokenizer
