#include "cli/generate/byte_text.h"

namespace tilewright::cli {

namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

// Bytes that follow a first byte of UTF-8, -1: it is none.
int followers(std::uint8_t byte) {
  if (byte < 0x80) return 0;
  if (byte >= 0xc2 && byte <= 0xdf) return 1;
  if (byte >= 0xe0 && byte <= 0xef) return 2;
  if (byte >= 0xf0 && byte <= 0xf4) return 3;
  return -1;
}

// Neither an overlong form, a surrogate, nor beyond U+10FFFF: the second byte tells.
bool is_valid_second(std::uint8_t first, std::uint8_t second) {
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second <= 0x9f;
  if (first == 0xf0) return second >= 0x90;
  if (first == 0xf4) return second <= 0x8f;
  return true;
}

bool is_control(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (text.size() == 1) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return first == 0xc2 && static_cast<std::uint8_t>(text[1]) < 0xa0;  // U+0080 to U+009F
}

}  // namespace

std::string ByteText::finish() {
  const std::string left = pending_.empty() ? "" : kReplacement;
  pending_.clear();
  missing_ = 0;
  return left;
}

std::string ByteText::add(std::uint8_t byte) {
  const bool is_follower =
      byte >= 0x80 && byte <= 0xbf && missing_ > 0 &&
      (pending_.size() > 1 || is_valid_second(static_cast<std::uint8_t>(pending_[0]), byte));
  std::string text;
  if (!is_follower) {
    text = finish();
    missing_ = followers(byte);
    if (missing_ < 0) {
      missing_ = 0;
      return text + kReplacement;
    }
  } else {
    --missing_;
  }
  pending_ += static_cast<char>(byte);
  if (missing_ > 0) return text;
  text += is_control(pending_) ? "?" : pending_;
  pending_.clear();
  return text;
}

}  // namespace tilewright::cli
