// Attention and linear layers on Blackwell with asynchronous work done late and at random, and
// under `strict`: some of their tests once more, each in a process of its own. (As they stand, they
// run eagerly.)
#include "tests/device/rerun.h"

#include <string>

#include <fmt/format.h>
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
  expect_pass_again(GetParam().settings, GetParam().test);
}

constexpr const char* kDecode = "SimTest/AttentionDecodeRunTest.EveryTypeAtEveryHeadDim/b200";
constexpr const char* kEmpty = "SimTest/AttentionDecodeRunTest.RaggedLengths/b200";
constexpr const char* kE4m3 = "SimTest/AttentionE4m3Test.WindowSoftcapSinkAndGroups/b200";
constexpr const char* kLinear = "SimTest/LinearRunTest.TensorMemoryKernelsForBf16/b200";
constexpr const char* kBlocks = "SimTest/LinearRunTest.BlockScaledKernels/b200";
constexpr const char* kSwiglu = "BlockScaledLinearTest.SwigluOfGateAndUp";
constexpr const char* kTiles = "SimTest/AttentionE4m3Test.TilesThatAreDrawn/b200";
INSTANTIATE_TEST_SUITE_P(SimTest, BlackwellTimingTest,
                         ::testing::Values(TimingCase{"StrictDecode", kStrictTiming, kDecode},
                                           TimingCase{"LateDecode", kLateTiming, kDecode},
                                           TimingCase{"RandomDecode", kRandomTiming, kDecode},
                                           TimingCase{"StrictEmpty", kStrictTiming, kEmpty},
                                           TimingCase{"StrictE4m3", kStrictTiming, kE4m3},
                                           TimingCase{"LateE4m3", kLateTiming, kE4m3},
                                           TimingCase{"RandomE4m3", kRandomTiming, kE4m3},
                                           TimingCase{"StrictE4m3Tiles", kStrictTiming, kTiles},
                                           TimingCase{"StrictLinear", kStrictTiming, kLinear},
                                           TimingCase{"LateLinear", kLateTiming, kLinear},
                                           TimingCase{"RandomLinear", kRandomTiming, kLinear},
                                           TimingCase{"StrictBlocks", kStrictTiming, kBlocks},
                                           TimingCase{"LateBlocks", kLateTiming, kBlocks},
                                           TimingCase{"RandomBlocks", kRandomTiming, kBlocks},
                                           TimingCase{"StrictSwiglu", kStrictTiming, kSwiglu},
                                           TimingCase{"LateSwiglu", kLateTiming, kSwiglu},
                                           TimingCase{"RandomSwiglu", kRandomTiming, kSwiglu}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tilewright
