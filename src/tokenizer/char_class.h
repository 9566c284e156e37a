// What the patterns of the tokenizer ask of a character.
#pragma once

#include <cstdint>

namespace tilewright::tokenizer {

enum class CharClass : std::uint8_t {
  kOther,
  kLetter,   ///< \p{L}
  kMark,     ///< \p{M}
  kNumber,   ///< \p{N}
  kSymbol,   ///< \p{P} or \p{S}: no pattern tells them apart
  kSpace,    ///< \s without the next
  kNewline,  ///< \r, \n
};

/// Classes of characters by code.
class CharClasses {
 public:
  /// The one table, made when it is first asked for.
  static const CharClasses& get();

  CharClass operator()(std::uint32_t code) const {
    return code < kTableSize ? static_cast<CharClass>(table_[code]) : search(code);
  }

 private:
  CharClasses();
  static CharClass search(std::uint32_t code);

  // The planes that text is of; the others have a few long ranges.
  static constexpr std::uint32_t kTableSize = 0x20000;
  std::uint8_t table_[kTableSize];
};

/// [U+4E00-U+9FA5 U+3040-U+309F U+30A0-U+30FF], the second pattern.
inline bool is_han_or_kana(std::uint32_t code) {
  return code - 0x3040 <= 0x30ff - 0x3040 || code - 0x4e00 <= 0x9fa5 - 0x4e00;
}

}  // namespace tilewright::tokenizer
