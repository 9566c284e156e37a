// One byte for each byte of a large range of addresses: whether it holds a defined value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tilewright::sim {

/// 1 for a defined byte, 0 for one that was never written. In shared and local memory other even
/// numbers are bytes of undefined values that some instruction has stored.
inline constexpr std::uint8_t kDefinedByte = 1;

/// Whether all of the bytes are defined.
inline bool is_all_defined(const std::uint8_t* shadow, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t all = kOnes;
  for (; bytes >= 8; bytes -= 8, shadow += 8) {
    std::uint64_t word;
    std::memcpy(&word, shadow, sizeof word);
    all &= word;
  }
  for (; bytes != 0; --bytes, ++shadow) all &= kOnes ^ 1 ^ *shadow;
  return all == kOnes;
}

/// How many are not; 0 without a shadow.
inline std::uint64_t count_undefined(const std::uint8_t* shadow, std::uint64_t bytes) noexcept {
  if (shadow == nullptr || is_all_defined(shadow, bytes)) return 0;
  return bytes - static_cast<std::uint64_t>(std::count(shadow, shadow + bytes, kDefinedByte));
}

/// The shadow of global memory. Address space only, until a page of it is written.
/// Thread    as safe as the memory it mirrors
class ByteShadow {
 public:
  /// Errors   OutOfMemory if the address space cannot be reserved
  ByteShadow(std::uint64_t begin, std::uint64_t end);
  ~ByteShadow();
  ByteShadow(const ByteShadow&) = delete;
  ByteShadow& operator=(const ByteShadow&) = delete;

  bool contains(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address >= begin_ && address <= end_ && bytes <= end_ - address;
  }
  /// Of an address inside.
  std::uint8_t* at(std::uint64_t address) noexcept { return shadow_ + (address - begin_); }
  /// Whatever lies outside is none of its business.
  void set(std::uint64_t address, std::uint64_t bytes, bool is_defined) noexcept;
  /// Nothing there is defined any more, and whole pages of the shadow go back to the system.
  void forget(std::uint64_t address, std::uint64_t bytes) noexcept;
  /// What is known of `from` goes for `to`; host memory counts as defined.
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) noexcept;
  /// Host memory counts as defined.
  bool is_defined(std::uint64_t address, std::uint64_t bytes) noexcept {
    return !contains(address, bytes) || is_all_defined(at(address), bytes);
  }

 private:
  std::uint64_t begin_, end_;
  std::uint8_t* shadow_ = nullptr;
};

}  // namespace tilewright::sim
