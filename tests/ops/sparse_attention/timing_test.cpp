// Sparse and latent attention on Blackwell with asynchronous work done at once, late and at random,
// under `strict`, on a device of two SMs, where one pair of CTAs does all: some of its tests once
// more, each in a process of its own.
#include "tests/device/rerun.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

struct TimingCase {
  const char* timing;
  const char* test;
  const char* suite = "SparseAttentionRunTest";
};

class SparseTimingTest : public ::testing::TestWithParam<TimingCase> {};

TEST_P(SparseTimingTest, HasNoFindings) {
  const auto& [timing, test, suite] = GetParam();
  expect_pass_again(fmt::format("TILEWRIGHT_SIM_SMS=2 TILEWRIGHT_SIM_CHECK=all,strict "
                                "TILEWRIGHT_SIM_ASYNC={} TILEWRIGHT_SIM_SEED=5",
                                timing),
                    fmt::format("SimTest/{}.{}/b200", suite, test));
}

INSTANTIATE_TEST_SUITE_P(
    SimTest, SparseTimingTest,
    ::testing::Values(
        TimingCase{"eager", "EveryCacheFormat"}, TimingCase{"late", "EveryCacheFormat"},
        TimingCase{"random", "EveryCacheFormat"}, TimingCase{"eager", "ALongListIsSplit"},
        TimingCase{"late", "ALongListIsSplit"}, TimingCase{"random", "ALongListIsSplit"},
        TimingCase{"late", "NeighboursShareEntries"},
        TimingCase{"random", "NeighboursShareEntries"}, TimingCase{"random", "TilesOfManyQueries"},
        TimingCase{"late", "ScalesFarApart"}, TimingCase{"random", "RowsOf576"},
        TimingCase{"late", "ScalesOfRowsOf576FarApart"},
        TimingCase{"late", "RowsOf576", "LatentAttentionTest"},
        TimingCase{"random", "RowsOf576", "LatentAttentionTest"},
        TimingCase{"late", "OtherFormsInParts", "LatentAttentionTest"},
        TimingCase{"random", "OtherFormsInParts", "LatentAttentionTest"}),
    [](const auto& test) {
      return fmt::format("{}_{}_{}", test.param.suite, test.param.test, test.param.timing);
    });

}  // namespace
}  // namespace tilewright
