// Damaged tokenizer.json files and damaged texts: refused or read, never taken wrongly.
#include "base/file.h"
#include "tests/base/mutator.h"

#define TILEWRIGHT_FUZZ_TOKENIZER TILEWRIGHT_TEST_DATA "/tokenizer"
#include "tests/fuzz/tokenizer_properties.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(TokenizerFuzz, ReadsOrRefusesDamagedFiles) {
  Mutator mutator(11, {"{", "}", "[", "]", ",", ":", "\"", "\\u0120", "null", "\"a b\"",
                       "[\"a\",\"b\"]", "\"id\":", "\xff", "\"vocab\":{}"});
  const std::string folder = TILEWRIGHT_FUZZ_TOKENIZER;
  const std::vector<std::string> files = {
      std::string(MappedFile(folder + "/tokenizer.json").text()),
      std::string(
          MappedFile(TILEWRIGHT_SOURCE_DIR "/examples/models/tiny-dsv4/tokenizer.json").text())};
  int num_read = 0;
  constexpr int kNumFiles = 3000;
  for (int i = 0; i < kNumFiles; ++i)
    num_read += fuzz::check_tokenizer_file(mutator.mutate(mutator.one_of(files)));
  // Neither side may be so rare that it is not tested.
  EXPECT_GT(num_read, kNumFiles / 500);
  EXPECT_LT(num_read, kNumFiles / 2);
}

TEST(TokenizerFuzz, EncodesOrRefusesDamagedTexts) {
  Mutator mutator(12, {"<think>", "<th", "\xef\xbd\x9c", " ", "\r\n", "1234", "\xe4\xb8\xad",
                       "\xe3\x83\xbc", "\xf0\x9f\x99\x82", "it's", std::string(1, '\0')});
  const std::string text = "The kernel reads 1,000 lines\n  of the \xe5\x86\x85\xe6\xa0\xb8 once.";
  for (int i = 0; i < 20'000; ++i) fuzz::check_tokenizer_text(mutator.mutate(text));
}

}  // namespace
}  // namespace tilewright
