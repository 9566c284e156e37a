#include "tokenizer/char_class.h"

#include "tokenizer/unicode_ranges.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tilewright::tokenizer {

namespace {

// A range: its first code above, its class in the low three bits; it ends where the next begins.
constexpr std::uint32_t first_of(std::uint32_t range) {
  return range >> 3;
}

constexpr std::uint8_t class_of(std::uint32_t range) {
  return static_cast<std::uint8_t>(range & 7);
}

}  // namespace

const CharClasses& CharClasses::get() {
  static const CharClasses classes;
  return classes;
}

CharClasses::CharClasses() {
  for (std::size_t i = 0; i < std::size(kUnicodeRanges); ++i) {
    const std::uint32_t first = first_of(kUnicodeRanges[i]);
    const std::uint32_t end =
        i + 1 < std::size(kUnicodeRanges) ? first_of(kUnicodeRanges[i + 1]) : 0x110000;
    if (first >= kTableSize) break;
    std::memset(table_ + first, class_of(kUnicodeRanges[i]), std::min(end, kTableSize) - first);
  }
}

CharClass CharClasses::search(std::uint32_t code) {
  const auto* const after = std::upper_bound(
      std::begin(kUnicodeRanges), std::end(kUnicodeRanges), code,
      [](std::uint32_t value, std::uint32_t range) { return value < first_of(range); });
  return static_cast<CharClass>(class_of(after[-1]));
}

}  // namespace tilewright::tokenizer
