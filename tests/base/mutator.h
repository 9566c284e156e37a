// Damages files at random, the same way in every run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

/// Makes wrong files out of right ones.
class Mutator {
 public:
  /// `words` are pieces of the format, likely to get deeper into a parser than random bytes.
  Mutator(std::uint64_t seed, std::vector<std::string> words)
      : random_(seed), words_(std::move(words)) {}

  /// A number from 0 to count - 1. (What std::uniform_int_distribution gives depends on the
  /// library.)
  std::size_t below(std::size_t count) { return random_() % count; }

  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  /// One to four random changes.
  std::string mutate(std::string file) {
    const std::size_t num_changes = 1 + below(4);
    for (std::size_t i = 0; i < num_changes; ++i) change(file);
    return file;
  }

 private:
  void change(std::string& file) {
    switch (below(8)) {
      case 0:
        return flip_bit(file);
      case 1:
        return set_byte(file);
      case 2:
        return file.resize(below(file.size() + 1));
      case 3:
        return erase(file);
      case 4:
        return splice(file);
      case 5:
        return insert_word(file);
      case 6:
        return replace_number(file);
      default:
        return set_integer(file);
    }
  }

  void flip_bit(std::string& file) {
    if (!file.empty()) file[below(file.size())] ^= static_cast<char>(1 << below(8));
  }

  void set_byte(std::string& file) {
    if (!file.empty()) file[below(file.size())] = static_cast<char>(below(256));
  }

  void erase(std::string& file) {
    const std::size_t begin = below(file.size() + 1);
    file.erase(begin, below(std::min<std::size_t>(file.size() - begin, 40) + 1));
  }

  /// Copies a piece of the file to another place.
  void splice(std::string& file) {
    const std::size_t begin = below(file.size() + 1);
    const std::string piece = file.substr(begin, below(60));
    file.insert(below(file.size() + 1), piece);
  }

  void insert_word(std::string& file) { file.insert(below(file.size() + 1), one_of(words_)); }

  /// Replaces a run of digits by a number that is likely to hurt.
  void replace_number(std::string& file) {
    constexpr std::string_view kDigits = "0123456789";
    const std::size_t begin = file.find_first_of(kDigits, below(file.size() + 1));
    if (begin == file.npos) return;
    const std::size_t end = std::min(file.find_first_not_of(kDigits, begin), file.size());
    static const std::vector<std::string> numbers = {"0",
                                                     "1",
                                                     "-1",
                                                     "7",
                                                     "65",
                                                     "4294967296",
                                                     "9223372036854775807",
                                                     "9223372036854775808",
                                                     "18446744073709551615",
                                                     "18446744073709551616",
                                                     "1e3",
                                                     "1.5",
                                                     "007"};
    file.replace(begin, end - begin, one_of(numbers));
  }

  /// Overwrites 1, 2, 4 or 8 bytes, often those where a format has its lengths.
  void set_integer(std::string& file) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    const std::vector<std::uint64_t> values = {
        0,           1,     kMax,  kMax - 7,    kMax / 2,        kMax / 2 + 1,    100'000'000,
        100'000'001, 65535, 65536, file.size(), file.size() - 8, file.size() - 7, file.size() - 9};
    const std::uint64_t value = one_of(values);
    const std::size_t width = std::size_t{1} << below(4);
    const std::size_t begin =
        std::array{std::size_t{0}, std::size_t{8}, below(file.size() + 1)}[below(3)];
    for (std::size_t i = 0; i < width && begin + i < file.size(); ++i) {
      file[begin + i] = static_cast<char>(value >> 8 * i);
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

}  // namespace tilewright
