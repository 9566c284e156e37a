#include "base/error.h"
#include "hardware/probe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewright::hardware {

namespace {

bool is_small_whole(std::uint32_t word) {
  const auto value = std::bit_cast<float>(word);
  // -0 would not survive the way through an integer.
  return value >= -128 && value <= 127 && std::rint(value) == value && word != 0x80000000u;
}

}  // namespace

StoredWords store_words(const std::vector<std::uint32_t>& words) {
  StoredWords out;
  if (std::ranges::all_of(words, is_small_whole)) {
    out.dtype = DType::kI8;
    for (const std::uint32_t word : words) {
      out.bytes.push_back(
          static_cast<std::byte>(static_cast<std::int8_t>(std::bit_cast<float>(word))));
    }
  } else {
    out.bytes.resize(words.size() * sizeof(std::uint32_t));
    std::memcpy(out.bytes.data(), words.data(), out.bytes.size());
  }
  return out;
}

std::vector<std::uint32_t> load_words(const ConstTensorView& stored) {
  require(stored.shape.size() == 1 && (stored.dtype == DType::kI8 || stored.dtype == DType::kU32),
          ErrorKind::kParseError, "recording: expected one dimension of I8 or U32");
  std::vector<std::uint32_t> words(static_cast<std::size_t>(stored.shape[0]));
  if (stored.dtype == DType::kU32) {
    std::memcpy(words.data(), stored.data, words.size() * sizeof(std::uint32_t));
    return words;
  }
  const auto* bytes = static_cast<const std::int8_t*>(stored.data);
  std::transform(bytes, bytes + words.size(), words.begin(), [](std::int8_t value) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  });
  return words;
}

}  // namespace tilewright::hardware
