#include "base/utf8.h"

#include <cstring>

namespace tilewright {

namespace {

// Bytes that follow a first byte of UTF-8, -1: it is none.
int followers(std::uint8_t byte) {
  if (byte < 0x80) return 0;
  if (byte >= 0xc2 && byte <= 0xdf) return 1;
  if (byte >= 0xe0 && byte <= 0xef) return 2;
  if (byte >= 0xf0 && byte <= 0xf4) return 3;
  return -1;
}

bool is_follower(std::uint8_t byte) {
  return byte >= 0x80 && byte <= 0xbf;
}

// Neither an overlong form, a surrogate, nor beyond U+10FFFF: the second byte tells.
bool is_valid_second(std::uint8_t first, std::uint8_t second) {
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second <= 0x9f;
  if (first == 0xf0) return second >= 0x90;
  if (first == 0xf4) return second <= 0x8f;
  return true;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size()) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080) == 0) {
        at += 8;
        continue;
      }
    }
    const int more = followers(byte(at));
    if (more < 0 || text.size() - at <= static_cast<std::size_t>(more)) return at;
    for (int i = 1; i <= more; ++i)
      if (!is_follower(byte(at + static_cast<std::size_t>(i)))) return at;
    if (more > 0 && !is_valid_second(byte(at), byte(at + 1))) return at;
    at += static_cast<std::size_t>(more) + 1;
  }
  return std::string_view::npos;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

void Utf8Stream::finish(std::string& text) {
  if (!pending_.empty()) append_utf8(text, 0xfffd);
  pending_.clear();
  missing_ = 0;
}

void Utf8Stream::add(std::uint8_t byte, std::string& text) {
  const bool goes_on =
      missing_ > 0 && is_follower(byte) &&
      (pending_.size() > 1 || is_valid_second(static_cast<std::uint8_t>(pending_[0]), byte));
  if (goes_on) {
    --missing_;
  } else {
    finish(text);
    const int more = followers(byte);
    if (more < 0) {
      append_utf8(text, 0xfffd);
      return;
    }
    missing_ = more;
  }
  pending_ += static_cast<char>(byte);
  if (missing_ > 0) return;
  text += pending_;
  pending_.clear();
}

}  // namespace tilewright
