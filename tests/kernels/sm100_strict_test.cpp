// The kernels of sm_100f do also what only the manual demands, the fences of tcgen05 above all:
// some of their tests once more, in a process of their own whose simulator checks with `strict`.
#include "tests/device/rerun.h"

#include <string>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

class Sm100Strict : public ::testing::TestWithParam<const char*> {};

TEST_P(Sm100Strict, HasNothingToSay) {
  expect_pass_again(kStrictTiming, std::string("SimTest/") + GetParam() + "/b200");
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
