// The kernels of sm_100f do also what only the manual demands, the fences of tcgen05 above all:
// some of their tests once more, in a process of their own whose simulator checks with `strict`.
#include "device/kernel_registry.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

class Sm100Strict : public ::testing::TestWithParam<const char*> {};

TEST_P(Sm100Strict, HasNothingToSay) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT "
      "TILEWRIGHT_SIM_CHECK=all,strict '" +
      program + "' '--gtest_filter=SimTest/" + GetParam() + "/b200' 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    output.append(part.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << output;
  EXPECT_THAT(output, ::testing::HasSubstr("[  PASSED  ] 1 test")) << output;
}

INSTANTIATE_TEST_SUITE_P(
    SimTest, Sm100Strict,
    ::testing::Values("Sm100StageA.ScoresThroughTensorMemory",
                      "Sm100StageB.ScoresBecomeTheNextOperand",
                      "Sm100StageC.RescalesWhenTheMaximumGrows", "Sm100StageD.DeepSeekPages",
                      "Sm100StageE.TwoTilesInFlight",
                      "Sm100BlockScaledGemm.QuantisedNormalNumbersStayWithinTheBound"),
    [](const auto& test) {
      const std::string name = test.param;
      return name.substr(0, name.find('.'));
    });

}  // namespace
}  // namespace tilewright
