// bench timing: how predictions are judged, and a few of them against what an H200 took.
#include "base/error.h"
#include "bench/timing.h"
#include "tests/cli/run_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json timing_point(const char* shape, const char* kernel, double predicted, double measured) {
  return {
      {"shape", shape}, {"kernel", kernel}, {"predicted_us", predicted}, {"measured_us", measured}};
}

TEST(TimingSummaryTest, JudgesErrorsAndOrder) {
  // At "a" two of three pairs are in order, at "b" the only one is not, at "c" they are too close.
  const json summary = timing_summary({timing_point("a", "x", 110, 100),
                                       timing_point("a", "y", 190, 200),
                                       timing_point("a", "z", 180, 300),
                                       timing_point("b", "x", 100, 120),
                                       timing_point("b", "y", 120, 100),
                                       timing_point("c", "x", 100, 100),
                                       timing_point("c", "y", 90, 101),
                                       {{"shape", "c"}, {"kernel", "z"}, {"problem", "none"}}});
  EXPECT_EQ(summary["points"], 7);
  EXPECT_EQ(summary["pairs"], 4);
  EXPECT_EQ(summary["pairs_in_order"], 2);
  EXPECT_DOUBLE_EQ(summary["worst_error"].get<double>(), 180.0 / 300 - 1);
  EXPECT_DOUBLE_EQ(summary["rank_correlation"].get<double>(), 0.5);
  EXPECT_NEAR(summary["regret"].get<double>(), (0 + 0.2 + 0.01) / 3, 1e-12);
}

TEST(TimingSummaryTest, WithoutPointsSaysSo) {
  EXPECT_EQ(timing_summary(json::array())["points"], 0);
}

TEST(TimingPointsTest, TakesOurKernelsOfLinearLayers) {
  const json row = {{"case", "flash_gate_up m64"},
                    {"source", "tilewright"},
                    {"kernel", "w4a16:band"},
                    {"samples_us", {3, 1, 2}},
                    {"clocks_after", {{"sm_mhz", 1980}}},
                    {"problem", {{"m", 64}, {"n", 4096}, {"k", 4096}}}};
  json other = row, larger = row, chosen = row;
  other["source"] = "marlin";
  larger["problem"]["m"] = 128;
  chosen["kernel"] = "w8a8";
  const json log = {{"kind", "linear"},
                    {"tool", "bench/linear_peers.py"},
                    {"samples", {row, other, larger, chosen}}};
  TimingChoice choice;
  choice.rows = {64};
  choice.kernels = {"band"};
  const std::vector<TimingPoint> points = timing_points(log, choice);
  ASSERT_EQ(points.size(), 1);
  EXPECT_TRUE(points[0].is_linear);
  EXPECT_EQ(points[0].shape, "w4a16 m64 n4096 k4096");
  EXPECT_EQ(points[0].measured_us, 2);
}

TEST(TimingPointsTest, RefusesOtherLogs) {
  EXPECT_THROW(timing_points({{"kind", "decode"}}, {}), Error);
  EXPECT_THROW(timing_points(json::array(), {}), Error);
}

constexpr const char* kLadderLog =
    TILEWRIGHT_SOURCE_DIR "/bench/results/2026-11-23-attention-ladder-all-lengths.json";

// Two rows of the table in docs/03-simulator.md, -10 % and -19 %: the mean of both with a margin of
// three percent points, and their order.
TEST(TimingToolTest, PredictsAttentionAsWellAsTheDocumentationSays) {
  const Outcome outcome = run_tool(std::string("--json bench timing ") + kLadderLog +
                                   " --kernels k5,k6 --lengths 512 --head-dims 128 --mask full "
                                   "--sample 3");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json summary = outcome.parsed()["summary"];
  EXPECT_EQ(summary["points"], 2);
  EXPECT_LT(summary["mean_absolute_error"].get<double>(), 0.17);
  EXPECT_EQ(summary["pairs_in_order"], 1);
}

// A row of a log that no constant was looked up for: 0 % in docs/03-simulator.md, +-15 points.
TEST(TimingToolTest, PredictsALinearLayer) {
  const Outcome outcome =
      run_tool("--json bench timing " TILEWRIGHT_SOURCE_DIR
               "/bench/results/2026-11-22-linear-rates.json"
               " --kernels w4a16:wide_bf16_t128_s2 --rows 64 --features 4096 --sample 2");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.parsed()["summary"]["points"], 1);
  EXPECT_LT(outcome.parsed()["summary"]["mean_absolute_error"].get<double>(), 0.15);
}

TEST(TimingToolTest, SaysWhichLogAndWhichRows) {
  const Outcome none = run_tool(std::string("bench timing ") + kLadderLog + " --kernels k99");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("no measured row"));
}

TEST(TimingToolTest, OperatorsPrintAPrediction) {
  const Outcome outcome = run_tool(
      "--device sim:h200 --time attention --inputs normal --shape 1,1,1,64,64,64 --kernel k5");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("predicted  "));
  const Outcome wrong = run_tool("--device sim:h200 --time-ideal tensr info");
  EXPECT_NE(wrong.status, 0);
  EXPECT_THAT(wrong.err, HasSubstr("there is no such unit"));
}

}  // namespace
}  // namespace tilewright::cli
