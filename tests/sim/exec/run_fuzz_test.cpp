// Thousands of damaged programs, loaded and run: they fail in an orderly way.
#include "tests/base/mutator.h"
#include "tests/fuzz/ptx_run.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

constexpr int kNumFiles = 1500;
constexpr std::size_t kMostBytes = 16384;  // the text costs more than what it says

const std::vector<std::string> kWords = {".u8",
                                         ".s64",
                                         ".f16x2",
                                         ".b128",
                                         ".v4",
                                         ".v2",
                                         ".shared",
                                         ".shared::cluster",
                                         ".global",
                                         ".local",
                                         ".const",
                                         ".param",
                                         ".sat",
                                         ".rn",
                                         ".ftz",
                                         ".aligned",
                                         ".sync",
                                         "%r90",
                                         "%d91",
                                         "%d92",
                                         "%h1",
                                         "%p3",
                                         "%tid.x",
                                         "%clock64",
                                         "_",
                                         "{%r1, %r2}",
                                         "[%d91+8]",
                                         "[%r1]",
                                         "|%p1",
                                         "@%p1 ",
                                         "@!%p2 ",
                                         "-1",
                                         "0x7fffffffffffffff",
                                         "0f7f800000",
                                         "ret;\n",
                                         "bar.sync 0;\n",
                                         "bra L;\nL:\n",
                                         "L2: bra L2;\n",
                                         "trap;\n",
                                         "exit;\n"};

std::vector<std::string> programs() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"/tests/ptx", "/tests/ptx/good", "/tests/ptx/bad"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TILEWRIGHT_SOURCE_DIR) + folder)) {
      if (entry.path().extension() == ".ptx" && entry.file_size() <= kMostBytes) {
        paths.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(paths);
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    out.push_back(text.str());
  }
  return out;
}

TEST(PtxRunFuzz, DamagedProgramsAreRefusedOrFail) {
  Mutator mutator(12, kWords);
  const std::vector<std::string> files = programs();
  ASSERT_GT(files.size(), 20u);
  int num_run = 0;
  for (int i = 0; i < kNumFiles; ++i) {
    const std::string file = mutator.mutate(mutator.one_of(files));
    try {
      num_run += fuzz::check_ptx_run(std::as_bytes(std::span(file)));
    } catch (const std::exception& error) {
      FAIL() << "file " << i << ": " << error.what() << "\n" << file;
    }
  }
  EXPECT_GT(num_run, kNumFiles / 20);  // or nothing but the parser is tried
  EXPECT_LT(num_run, kNumFiles);
}

}  // namespace
}  // namespace tilewright::sim
