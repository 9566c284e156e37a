// The PTX parser on thousands of damaged files.
#include "tests/base/mutator.h"
#include "tests/fuzz/ptx_properties.h"
#include "tests/sim/parse/sample.h"

namespace tilewright::sim {
namespace {

constexpr int kNumFiles = 4'000;

const std::vector<std::string> kWords = {"{",
                                         "}",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         ";",
                                         ",",
                                         ":",
                                         "::",
                                         "<9>",
                                         "|",
                                         "!",
                                         "@",
                                         "+",
                                         "-",
                                         "=",
                                         "?",
                                         "/*",
                                         "//",
                                         "\"",
                                         "_",
                                         "%",
                                         ".",
                                         "%r1",
                                         "%tid.x",
                                         ".x",
                                         ".reg ",
                                         ".param ",
                                         ".shared ",
                                         ".b32 ",
                                         ".align 16 ",
                                         ".func ",
                                         ".entry k(",
                                         ".extern ",
                                         "[]",
                                         "[2][3]",
                                         "= {1, 2}",
                                         "0x",
                                         "0f3F800000",
                                         "generic(",
                                         "0xff00(",
                                         "mask(0xff,",
                                         "bra L;",
                                         "L:",
                                         "WARP_SZ",
                                         "(.u64)",
                                         "call f, (",
                                         "t: .branchtargets ",
                                         ".loc 1 2 3",
                                         "#",
                                         "\n",
                                         std::string(1, '\0')};

TEST(PtxFuzz, DamagedFilesAreReadOrRefused) {
  Mutator mutator(11, kWords);
  std::vector<std::string> files;
  for (const char* name : {"declarations.ptx", "instructions.ptx"}) {
    files.push_back(*parse_sample(name).text);
  }
  files.push_back(kHeader + kernel("{ mov.b32 %r1, 1; } L: bra L;"));
  int num_accepted = 0;
  for (int i = 0; i < kNumFiles; ++i) {
    const std::string file = mutator.mutate(mutator.one_of(files));
    try {
      num_accepted += fuzz::check_ptx(std::as_bytes(std::span(file)));
    } catch (const std::exception& error) {
      FAIL() << "file " << i << ": " << error.what() << "\n" << ::testing::PrintToString(file);
    }
  }
  EXPECT_GT(num_accepted, kNumFiles / 100);
  EXPECT_LT(num_accepted, kNumFiles * 9 / 10);
}

TEST(PtxFuzz, FilesThatEndAnywhereAreRefused) {
  const std::string file = *parse_sample("instructions.ptx").text;
  for (std::size_t size = 0; size < file.size(); size += 7) {
    fuzz::check_ptx(std::as_bytes(std::span(file.data(), size)));
  }
}

}  // namespace
}  // namespace tilewright::sim
