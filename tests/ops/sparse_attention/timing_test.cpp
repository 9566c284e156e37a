// Sparse attention on Blackwell with asynchronous work done at once, late and at random, under
// `strict`, on a device of two SMs, where one pair of CTAs does all: some of its tests once more,
// each in a process of its own.
#include "device/kernel_registry.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

struct TimingCase {
  const char* timing;
  const char* test;
};

class SparseTimingTest : public ::testing::TestWithParam<TimingCase> {};

TEST_P(SparseTimingTest, HasNoFindings) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT TILEWRIGHT_SIM_SMS=2 "
      "TILEWRIGHT_SIM_CHECK=all,strict TILEWRIGHT_SIM_ASYNC={} TILEWRIGHT_SIM_SEED=5 '{}' "
      "'--gtest_filter=SimTest/SparseAttentionRunTest.{}/b200' 2>&1",
      GetParam().timing, program, GetParam().test);
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe))
    output.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << output;
  EXPECT_THAT(output, ::testing::HasSubstr("[  PASSED  ] 1 test")) << output;
}

INSTANTIATE_TEST_SUITE_P(SimTest, SparseTimingTest,
                         ::testing::Values(TimingCase{"eager", "EveryCacheFormat"},
                                           TimingCase{"late", "EveryCacheFormat"},
                                           TimingCase{"random", "EveryCacheFormat"},
                                           TimingCase{"eager", "ALongListIsSplit"},
                                           TimingCase{"late", "ALongListIsSplit"},
                                           TimingCase{"random", "ALongListIsSplit"},
                                           TimingCase{"late", "NeighboursShareEntries"},
                                           TimingCase{"random", "NeighboursShareEntries"},
                                           TimingCase{"random", "TilesOfManyQueries"},
                                           TimingCase{"late", "ScalesFarApart"}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", test.param.test, test.param.timing);
                         });

}  // namespace
}  // namespace tilewright
