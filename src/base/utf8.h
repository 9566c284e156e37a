// UTF-8: characters out of bytes, whole ones out of bytes that come one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// Offset of the first byte that begins no character of UTF-8 (RFC 3629: no overlong form, no
/// surrogate, nothing beyond U+10FFFF, nothing cut), npos if there is none.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

struct Utf8Char {
  std::uint32_t code = 0;
  std::uint32_t bytes = 0;
};

/// The character at an offset of a text that find_invalid_utf8 found to be valid.
inline Utf8Char utf8_char_at(const char* text) noexcept {
  const auto byte = [text](int i) {
    return static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[i]));
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (first < 0xf0) return {(first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f),
          4};
}

void append_utf8(std::string& text, std::uint32_t code);

/// Whole characters out of bytes that come one by one. What is none becomes U+FFFD, one for each
/// longest part that could have begun a character: as from_utf8_lossy of Rust and the decoders of
/// browsers have it.
class Utf8Stream {
 public:
  /// Appends the characters that the byte completes.
  void add(std::uint8_t byte, std::string& text);
  /// Appends what is left of a character that never ended.
  void finish(std::string& text);

 private:
  std::string pending_;
  int missing_ = 0;
};

}  // namespace tilewright
