// Attention over keys in pages with copies done at once, late and at random, under `strict`: some
// of its tests once more, each in a process of its own.
#include "tests/device/rerun.h"

#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

struct PagedTiming {
  const char* copies;
  int sms;  ///< few: a CTA takes one tile after another
};

class PagedTimingTest
    : public ::testing::TestWithParam<std::tuple<PagedTiming, const char*, const char*>> {
 protected:
  static void run_again(const char* suite) {
    const auto& [timing, test, chip] = GetParam();
    expect_pass_again(fmt::format("TILEWRIGHT_SIM_SMS={} TILEWRIGHT_SIM_CHECK=all,strict "
                                  "TILEWRIGHT_SIM_ASYNC={} TILEWRIGHT_SIM_SEED=5",
                                  timing.sms, timing.copies),
                      fmt::format("SimTest/{}.{}/{}", suite, test, chip));
  }
};

TEST_P(PagedTimingTest, HasNoFindings) {
  run_again("AttentionPagedTest");
}

// The same over caches of e4m3.
using PagedTimingE4m3Test = PagedTimingTest;
TEST_P(PagedTimingE4m3Test, HasNoFindings) {
  run_again("AttentionPagedE4m3Test");
}

using PagedTimingCase = std::tuple<PagedTiming, const char*, const char*>;

std::string paged_timing_name(const ::testing::TestParamInfo<PagedTimingCase>& info) {
  const auto& [timing, test, chip] = info.param;
  return fmt::format("{}_{}_{}_{}", test, timing.copies, timing.sms, chip);
}

INSTANTIATE_TEST_SUITE_P(
    SimTest, PagedTimingTest,
    ::testing::Combine(
        ::testing::Values(PagedTiming{"eager", 2}, PagedTiming{"late", 2},
                          PagedTiming{"random", 2}),
        // Rows gathered, parts copied by warps and by one thread; lengths and pages of no sense.
        ::testing::Values("GatheredAndCopiedByWarpsAndByOneThread", "LengthsOfQueries",
                          "PagesThatAreNotThereAreZeros", "SeveralTilesBesideSingleOnes"),
        ::testing::Values("h200", "b200")),
    paged_timing_name);

INSTANTIATE_TEST_SUITE_P(
    SimTest, PagedTimingE4m3Test,
    ::testing::Combine(
        ::testing::Values(PagedTiming{"late", 2}, PagedTiming{"random", 2}),
        // Every form of both kinds of queries; rows gathered; lengths and pages of no sense.
        ::testing::Values("EveryFormOfE4m3Queries", "EveryFormOfWideQueries",
                          "LengthsOfQueriesWithAndWithoutPages",
                          "PagesThatAreNotThereAreZerosAndPagesApart"),
        ::testing::Values("h200", "b200")),
    paged_timing_name);

}  // namespace
}  // namespace tilewright
