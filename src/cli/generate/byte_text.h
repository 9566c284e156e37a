// Bytes that a model writes, made fit for a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace tilewright::cli {

/// Collects bytes into whole characters of UTF-8; what is none becomes U+FFFD, and control
/// characters but newline and tab become a question mark, so that a model cannot drive the
/// terminal.
class ByteText {
 public:
  /// The characters that the byte completes.
  std::string add(std::uint8_t byte);
  /// What is left of a character that never ended.
  std::string finish();

 private:
  std::string pending_;
  int missing_ = 0;
};

}  // namespace tilewright::cli
