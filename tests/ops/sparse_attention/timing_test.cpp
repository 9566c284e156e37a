// Sparse attention on Blackwell with asynchronous work done at once, late and at random, and under
// `strict`: some of its tests once more, each in a process of its own.
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
  const char* name;
  const char* settings;
  const char* test;
};

class SparseTimingTest : public ::testing::TestWithParam<TimingCase> {};

TEST_P(SparseTimingTest, HasNoFindings) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT {} '{}' "
      "'--gtest_filter=SimTest/SparseAttentionRunTest.{}/b200' 2>&1",
      GetParam().settings, program, GetParam().test);
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe))
    output.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << output;
  EXPECT_THAT(output, ::testing::HasSubstr("[  PASSED  ] 1 test")) << output;
}

constexpr const char* kStrict = "TILEWRIGHT_SIM_CHECK=all,strict";
constexpr const char* kLate = "TILEWRIGHT_SIM_CHECK=all TILEWRIGHT_SIM_ASYNC=late";
constexpr const char* kRandom =
    "TILEWRIGHT_SIM_CHECK=all TILEWRIGHT_SIM_ASYNC=random TILEWRIGHT_SIM_SEED=5";
INSTANTIATE_TEST_SUITE_P(SimTest, SparseTimingTest,
                         ::testing::Values(TimingCase{"StrictFormats", kStrict, "EveryCacheFormat"},
                                           TimingCase{"LateFormats", kLate, "EveryCacheFormat"},
                                           TimingCase{"RandomFormats", kRandom, "EveryCacheFormat"},
                                           TimingCase{"StrictSplit", kStrict, "ALongListIsSplit"},
                                           TimingCase{"LateSplit", kLate, "ALongListIsSplit"},
                                           TimingCase{"RandomSplit", kRandom, "ALongListIsSplit"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tilewright
