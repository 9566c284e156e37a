// Every parser on tens of thousands of damaged files: it accepts or refuses, keeps its promises
// (tests/fuzz/properties.h) and asks for no more memory than the size of the file justifies.
#include "base/file.h"
#include "tests/base/allocation_meter.h"
#include "tests/base/golden_io.h"
#include "tests/base/mutator.h"
#include "tests/base/safetensors_bytes.h"
#include "tests/fuzz/properties.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using fuzz::text_of;

constexpr int kNumFiles = 30'000;

// The greediest legal text is one of empty arrays: "[]," becomes an element of 16 bytes, in a
// vector that has up to three times that while it grows, and a vector object on the heap.
constexpr std::size_t kBytesPerFileByte = 64;
constexpr std::size_t kBytesPerFile = 65536;

std::string read_golden(const std::string& name) {
  const MappedFile file(golden_io_path(name));
  return std::string(file.text());
}

std::vector<std::string> golden_files(std::string_view extension) {
  std::vector<std::string> files;
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden_io_path("."))) {
    if (entry.path().extension() == extension) paths.insert(entry.path());
  }
  for (const auto& path : paths) files.emplace_back(MappedFile(path).text());
  return files;
}

/// Makes files with `make` and gives them to `parse_and_check`.
template <class Make, class Check>
void fuzz_parser(Make&& make, Check&& parse_and_check) {
  int num_accepted = 0;
  for (int i = 0; i < kNumFiles; ++i) {
    const std::string file = make();
    const AllocationMeter meter;
    try {
      num_accepted += parse_and_check(std::as_bytes(std::span(file)));
    } catch (const std::exception& error) {
      FAIL() << "file " << i << ": " << error.what() << "\n" << ::testing::PrintToString(file);
    }
    ASSERT_LE(meter.peak_bytes(), kBytesPerFile + kBytesPerFileByte * file.size())
        << "file " << i << ": " << ::testing::PrintToString(file);
  }
  // Neither side may be so rare that it is not tested.
  EXPECT_GT(num_accepted, kNumFiles / 100);
  EXPECT_LT(num_accepted, kNumFiles * 9 / 10);
}

/// Damages one of several files.
auto make_from(Mutator& mutator, const std::vector<std::string>& files) {
  return [&] { return mutator.mutate(mutator.one_of(files)); };
}

const std::vector<std::string> kJsonWords = {"{",        "}",       "[",     "]",
                                             ":",        ",",       "\"",    "\\",
                                             "null",     "true",    "\"a\"", "\"a\":1,",
                                             "[[[[[[[[", "\\ud800", "\xff",  "\xef\xbb\xbf",
                                             "1e999",    "-0",      "NaN",   std::string(1, '\0')};

std::vector<std::string> safetensors_words() {
  auto words = kJsonWords;
  for (const char* word : {"\"F32\"", "\"F4\"", "\"shape\":[", "\"dtype\":", "\"data_offsets\":[0,",
                           "\"__metadata__\":{", "0,0,0,0,0,0,0,0,"}) {
    words.push_back(word);
  }
  return words;
}

TEST(ParserFuzz, Json) {
  Mutator mutator(1, kJsonWords);
  std::vector<std::string> files = {
      R"({"a": [1, -2.5e3, true, null, {}], "b\u00e4\n": {"c": "text", "d": [[], [[]]]}})",
      "[18446744073709551615, -9223372036854775808, 1e-320, 0.1]", "\"text\"", " 1 "};
  files.push_back(read_golden("expected.json").substr(0, 600));
  fuzz_parser(make_from(mutator, files), fuzz::check_json);
}

TEST(ParserFuzz, SafetensorsIndex) {
  Mutator mutator(2, kJsonWords);
  const std::vector<std::string> files = {read_golden("model/model.safetensors.index.json"),
                                          R"({"weight_map": {"a": "../f", "b": "f"}})"};
  fuzz_parser(make_from(mutator, files), fuzz::check_safetensors_index);
}

TEST(ParserFuzz, Npy) {
  Mutator mutator(3, {"(", ")", ",", "'", "\"", "True", "False", "'descr': ", "'shape': (", "'<f4'",
                      "'>f4'", "[", "{", "}", "\n", "1, ", "\x93NUMPY", std::string(1, '\0')});
  const auto files = golden_files(".npy");
  ASSERT_EQ(files.size(), 28u);
  fuzz_parser(make_from(mutator, files), fuzz::check_npy);
}

TEST(ParserFuzz, Safetensors) {
  Mutator mutator(4, safetensors_words());
  const auto files = golden_files(".safetensors");
  ASSERT_EQ(files.size(), 5u);
  fuzz_parser(make_from(mutator, files), fuzz::check_safetensors);
}

TEST(ParserFuzz, SafetensorsHeaderOfTheRightLength) {
  Mutator mutator(5, safetensors_words());
  const auto files = golden_files(".safetensors");
  const auto make = [&] {
    const std::string file = mutator.one_of(files);
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    const std::string header = mutator.mutate(file.substr(8, length));
    return safetensors_file(header, file.substr(8 + length));
  };
  fuzz_parser(make, fuzz::check_safetensors);
}

/// Texts that are as greedy as the format allows, not found by chance.
TEST(ParserFuzz, GreedyTextsStayWithinTheBound) {
  constexpr std::size_t kNumRepeats = 50'000;
  for (const std::string piece : {"[],", "{},", "\"\",", "1,", "[[1]],", "{\"a\":1},"}) {
    std::string text = "[";
    for (std::size_t i = 0; i < kNumRepeats; ++i) text += piece;
    text.back() = ']';
    const AllocationMeter meter;
    EXPECT_EQ(parse_json(text, "input").size(), kNumRepeats) << piece;
    EXPECT_LE(meter.peak_bytes(), kBytesPerFile + kBytesPerFileByte * text.size()) << piece;
  }
}

TEST(ParserFuzz, LongNamesAreNotCopiedForEveryValueBelow) {
  std::string header = "{\"" + std::string(1'000'000, 'n') +
                       R"(": {"dtype": "U8", "data_offsets": [0, 0], "shape": [0)";
  for (int i = 0; i < 10'000; ++i) header += ",0";
  header += "]}}";
  const std::string file = safetensors_file(header, "");
  const AllocationMeter meter;
  EXPECT_FALSE(fuzz::check_safetensors(std::as_bytes(std::span(file))));
  EXPECT_LE(meter.peak_bytes(), kBytesPerFile + kBytesPerFileByte * file.size());
}

}  // namespace
}  // namespace tilewright
