// Attention and linear layers on Blackwell with asynchronous work done late and at random, and
// under `strict`: some of their tests once more, each in a process of its own. (As they stand, they
// run eagerly.)
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

class BlackwellTimingTest : public ::testing::TestWithParam<TimingCase> {};

TEST_P(BlackwellTimingTest, HasNoFindings) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT {} '{}' "
      "'--gtest_filter=SimTest/{}/b200' 2>&1",
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
constexpr const char* kDecode = "AttentionDecodeRunTest.EveryTypeAtEveryHeadDim";
constexpr const char* kEmpty = "AttentionDecodeRunTest.RaggedLengths";
constexpr const char* kE4m3 = "AttentionE4m3Test.WindowSoftcapSinkAndGroups";
constexpr const char* kLinear = "LinearRunTest.TensorMemoryKernelsForBf16";
constexpr const char* kTiles = "AttentionE4m3Test.TilesThatAreDrawn";
INSTANTIATE_TEST_SUITE_P(SimTest, BlackwellTimingTest,
                         ::testing::Values(TimingCase{"StrictDecode", kStrict, kDecode},
                                           TimingCase{"LateDecode", kLate, kDecode},
                                           TimingCase{"RandomDecode", kRandom, kDecode},
                                           TimingCase{"StrictEmpty", kStrict, kEmpty},
                                           TimingCase{"StrictE4m3", kStrict, kE4m3},
                                           TimingCase{"LateE4m3", kLate, kE4m3},
                                           TimingCase{"RandomE4m3", kRandom, kE4m3},
                                           TimingCase{"StrictE4m3Tiles", kStrict, kTiles},
                                           TimingCase{"StrictLinear", kStrict, kLinear},
                                           TimingCase{"LateLinear", kLate, kLinear},
                                           TimingCase{"RandomLinear", kRandom, kLinear}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tilewright
