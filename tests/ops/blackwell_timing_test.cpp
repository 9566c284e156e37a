// Operators on Blackwell with asynchronous work done late and at random, and under `strict`: some
// of their tests once more, each in a process of its own. (As they stand, they run eagerly.)
#include "tests/device/rerun.h"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

struct Timing {
  const char* name;
  const char* settings;
};
struct Test {
  const char* name;
  const char* filter;
};

class BlackwellTimingTest : public ::testing::TestWithParam<std::tuple<Timing, Test>> {};

TEST_P(BlackwellTimingTest, HasNoFindings) {
  const auto& [timing, test] = GetParam();
  expect_pass_again(timing.settings, test.filter);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Timing, Test>>& info) {
  const auto& [timing, test] = info.param;
  return std::string(timing.name) + test.name;
}

constexpr Timing kStrict = {"Strict", kStrictTiming};
constexpr Timing kTimings[] = {kStrict, {"Late", kLateTiming}, {"Random", kRandomTiming}};
constexpr Test kTests[] = {
    {"Decode", "SimTest/AttentionDecodeRunTest.EveryTypeAtEveryHeadDim/b200"},
    {"E4m3", "SimTest/AttentionE4m3Test.WindowSoftcapSinkAndGroups/b200"},
    {"Linear", "SimTest/LinearRunTest.TensorMemoryKernelsForBf16/b200"},
    {"Blocks", "SimTest/LinearRunTest.BlockScaledKernels/b200"},
    {"Swiglu", "BlockScaledLinearTest.SwigluOfGateAndUp"},
    {"Experts", "MoeBlockScaledTest.EveryFormatByEveryTile"},
    {"GroupedExperts", "MoeGroupedTest.EveryFormatByEveryTile"},
    {"ContiguousExperts", "SimTest/MoeContiguousTest.EveryFormatByEveryKernel/b200"},
};
constexpr Test kStrictAlone[] = {
    {"Empty", "SimTest/AttentionDecodeRunTest.RaggedLengths/b200"},
    {"E4m3Tiles", "SimTest/AttentionE4m3Test.TilesThatAreDrawn/b200"},
};
// CTAs that do one tile after another, which small problems leave to as many SMs.
const std::string kTwoSms = "TILEWRIGHT_SIM_SMS=2 ";
const std::string kOnTwoSms[] = {kTwoSms + kStrictTiming, kTwoSms + kLateTiming,
                                 kTwoSms + kRandomTiming};
const Timing kTwoSmsTimings[] = {{"StrictTwoSms", kOnTwoSms[0].c_str()},
                                 {"LateTwoSms", kOnTwoSms[1].c_str()},
                                 {"RandomTwoSms", kOnTwoSms[2].c_str()}};
constexpr Test kSeveralTiles[] = {
    {"Experts", "MoeBlockScaledTest.RaggedAndEmptyExperts"},
    {"LinearE4m3", "SimTest/LinearRunTest.TensorMemoryKernelsForE4m3/b200"}};
INSTANTIATE_TEST_SUITE_P(SimTestTwoSms, BlackwellTimingTest,
                         ::testing::Combine(::testing::ValuesIn(kTwoSmsTimings),
                                            ::testing::ValuesIn(kSeveralTiles)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(SimTest, BlackwellTimingTest,
                         ::testing::Combine(::testing::ValuesIn(kTimings),
                                            ::testing::ValuesIn(kTests)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(SimTestStrict, BlackwellTimingTest,
                         ::testing::Combine(::testing::Values(kStrict),
                                            ::testing::ValuesIn(kStrictAlone)),
                         name_of);

}  // namespace
}  // namespace tilewright
