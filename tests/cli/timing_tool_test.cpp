// bench timing: how predictions are judged, and a few of them against what an H200 took.
#include "base/error.h"
#include "base/json.h"
#include "bench/timing/blackwell.h"
#include "bench/timing/blackwell_points.h"
#include "bench/timing/calibration.h"
#include "bench/timing/ranges.h"
#include "bench/timing/timing.h"
#include "tests/cli/run_tool.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

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
  EXPECT_NEAR(summary["worst_regret"].get<double>(), 0.2, 1e-12);
  ASSERT_EQ(summary["choices"].size(), 3U);
  const json& choice = summary["choices"][1];
  EXPECT_EQ(choice["shape"], "b");
  EXPECT_EQ(choice["kernels"], 2);
  EXPECT_EQ(choice["chosen"], "x");
  EXPECT_EQ(choice["fastest"], "y");
  EXPECT_NEAR(choice["cost"].get<double>(), 0.2, 1e-12);
}

TEST(TimingSummaryTest, WithoutPointsSaysSo) {
  EXPECT_EQ(timing_summary(json::array())["points"], 0);
}

// A time that is predicted too short by `low` was predicted / (1 + low) in truth.
TEST(RangesTest, AreThoseOfTheRecordedErrorsOfTheFamily) {
  const RecordedErrors& errors = recorded_errors(TimedOperator::kIndexer);
  EXPECT_STREQ(errors.family, "indexer");
  EXPECT_LT(errors.low, errors.high);
  json row = {{"predicted_us", 50.0}};
  add_range(row, TimedOperator::kIndexer);
  EXPECT_DOUBLE_EQ(row["range_us"][0].get<double>(), 50 / (1 + errors.high));
  EXPECT_DOUBLE_EQ(row["range_us"][1].get<double>(), 50 / (1 + errors.low));
  EXPECT_EQ(row["range_from"], "indexer");
  EXPECT_EQ(range_text({{"range_us", {82.04, 101.26}}}), "82.0 to 101.3");
  EXPECT_EQ(range_text({{"range_us", {820.4, 1012.6}}}), "820 to 1013");
  EXPECT_EQ(range_text(json::object()), "");
  // Those that no log has: errors of all that there are.
  EXPECT_STREQ(recorded_errors(TimedOperator::kQuantize).family, "all");
  EXPECT_STREQ(recorded_errors(TimedOperator::kBlockScaled).family, "linear");
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
  EXPECT_EQ(points[0].timed, TimedOperator::kLinear);
  EXPECT_EQ(points[0].shape, "w4a16 m64 n4096 k4096");
  EXPECT_EQ(points[0].measured_us, 2);
}

TEST(TimingPointsTest, TakesCallsInGraphsAtTheHighestClock) {
  const json row = {{"source", "tilewright"},
                    {"kernel", "r16"},
                    {"samples_us", {9, 7, 8}},
                    {"problem",
                     {{"batch", 8},
                      {"head_dim", 128},
                      {"heads", 32},
                      {"kv_heads", 4},
                      {"keys", 1024},
                      {"page", 16},
                      {"kv", "BF16"},
                      {"q_len", 1}}}};
  json peer = row, shorter = row;
  peer["source"] = "flashinfer";
  shorter["problem"]["keys"] = 256;
  const json log = {{"kind", "decode"},
                    {"tool", "tilewright bench decode 0.1.0"},
                    {"clocks_after", {{"sm_mhz", 1845}}},  // of the longest ones, which came last
                    {"samples", {row, peer, shorter}}};
  TimingChoice choice;
  choice.lengths = {1024};
  const std::vector<TimingPoint> points = timing_points(log, choice);
  ASSERT_EQ(points.size(), 1);
  EXPECT_EQ(points[0].timed, TimedOperator::kDecode);
  EXPECT_EQ(points[0].shape, "BF16 h32/4 d128 b8 n1024 pages of 16");
  EXPECT_EQ(points[0].measured_us, 8);
  EXPECT_EQ(points[0].clock_mhz, 1980);
}

TEST(TimingPointsTest, TakesTheClockThatSmsCounted) {
  const json row = {{"source", "tilewright"},
                    {"kernel", "r16"},
                    {"samples_us", {9, 7, 8}},
                    {"samples_mhz", {1700, 1720, 1790}},
                    {"problem",
                     {{"batch", 8},
                      {"head_dim", 128},
                      {"heads", 32},
                      {"kv_heads", 4},
                      {"keys", 1024},
                      {"page", 0},
                      {"kv", "BF16"},
                      {"q_len", 1}}}};
  const json log = {{"kind", "decode"}, {"tool", "tilewright bench decode"}, {"samples", {row}}};
  const std::vector<TimingPoint> points = timing_points(log, {});
  ASSERT_EQ(points.size(), 1);
  EXPECT_EQ(points[0].clock_mhz, 1720);
  EXPECT_TRUE(points[0].is_clock_counted);
}

/// The row of a log that a row of the list names.
json row_of(const json& known, json& log) {
  log = read_json(std::string(TILEWRIGHT_SOURCE_DIR "/") + known["log"].get<std::string>());
  for (const json& row : log["samples"]) {
    if (constants_from(log, row).empty() || row["kernel"] != known["kernel"]) continue;
    if (row["problem"]["keys"] == known["problem"]["keys"]) return row;
  }
  return {};
}

TEST(CalibrationTest, RowsAreThoseOfTheirLogs) {
  ASSERT_FALSE(calibration_list()["rows"].empty());
  EXPECT_LE(calibration_list()["rows"].size(), 30U);  // what may be fixed by kernels at most
  for (const json& known : calibration_list()["rows"]) {
    json log;
    const json row = row_of(known, log);
    ASSERT_TRUE(row.is_object()) << known;
    std::vector<double> us = row["samples_us"];
    std::ranges::sort(us);
    EXPECT_NEAR(us[us.size() / 2], known["median_us"].get<double>(), 0.1);
    // Of all rows of the log this is the only one.
    int count = 0;
    for (const json& other : log["samples"]) count += !constants_from(log, other).empty();
    EXPECT_EQ(count, 1) << known;
    // The same row of another log is none that a constant comes from.
    log["started"] = "2026-11-30 00:00:00 UTC";
    EXPECT_EQ(constants_from(log, row), "");
  }
}

// Each probe that is named is in its recording, which says the device.
TEST(CalibrationTest, ProbesAreThoseOfTheirRecordings) {
  for (const json& known : calibration_list()["probes"]) {
    const json recording =
        read_json(std::string(TILEWRIGHT_SOURCE_DIR "/") + known["recording"].get<std::string>());
    EXPECT_EQ(recording["device"], known["device"]);
    for (const std::string pattern : known["names"]) {
      const bool is_launch = pattern.starts_with("launches: ");
      const std::string name = is_launch ? pattern.substr(10) : pattern;
      const std::string begin = name.substr(0, name.find('*'));
      const auto is_it = [&](const json& probe) {
        const std::string text = probe["name"];
        return name.ends_with('*') ? text.starts_with(begin) : text == name;
      };
      const json& all = recording[is_launch ? "launches" : "probes"];
      EXPECT_TRUE(std::ranges::any_of(all, is_it)) << pattern;
    }
  }
}

TEST(TimingPointsTest, TellsRowsThatConstantsComeFrom) {
  json log;
  const json row = row_of(calibration_list()["rows"][0], log);
  json other = row;
  other["problem"]["batch"] = 8;
  log["samples"] = {row, other};
  TimingChoice choice;
  choice.most_us = 1e6;
  const std::vector<TimingPoint> points = timing_points(log, choice);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].calibrates, "hbm_bytes_per_clock");
  EXPECT_EQ(points[1].calibrates, "");
  // By the tool: it sets variables of the process.
  log["samples"] = {row};
  const std::string file = testing::TempDir() + "row_of_a_constant.json";
  std::ofstream(file) << log;
  const Outcome outcome = run_tool("bench timing " + file + " --most-us 10000");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("no point has a prediction"));
  EXPECT_THAT(outcome.out, HasSubstr("1 row is not scored: constants of the model come from it\n"
                                     "  BF16 h32/8 d128 b64 n65536 r16: hbm_bytes_per_clock\n"));
}

TEST(TimingPointsTest, RefusesOtherLogs) {
  EXPECT_THROW(timing_points({{"kind", "decode"}, {"tool", "bench/decode_peers.py"}}, {}), Error);
  EXPECT_THROW(timing_points(json::array(), {}), Error);
}

constexpr const char* kLadderLog =
    TILEWRIGHT_SOURCE_DIR "/bench/results/2026-11-23-attention-ladder-all-lengths.json";

// Two bars of the picture in docs/12-predicted-times.md, 0 % and -3 %: the mean of both with a
// margin of five percent points, and their order.
TEST(TimingToolTest, PredictsAttentionAsWellAsThePageSays) {
  const Outcome outcome = run_tool(std::string("--json bench timing ") + kLadderLog +
                                   " --kernels k5,k6 --lengths 512 --head-dims 128 --mask full "
                                   "--sample 3");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json summary = outcome.parsed()["summary"];
  EXPECT_EQ(summary["points"], 2);
  EXPECT_LT(summary["mean_absolute_error"].get<double>(), 0.07);
  EXPECT_EQ(summary["pairs_in_order"], 1);
}

/// The error of a kernel at a shape in the newest log of that name, which the page's tables show.
double logged_error(const std::string& name, const json& point) {
  std::string newest;
  for (const auto& entry :
       std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/bench/results")) {
    const std::string path = entry.path().string();
    if (path.ends_with("-predicted-" + name + ".json")) newest = std::max(newest, path);
  }
  const json log = read_json(newest);
  for (const json& logged : log["points"]) {
    if (logged["shape"] == point["shape"] && logged["kernel"] == point["kernel"])
      return logged["error"];
  }
  ADD_FAILURE() << newest << " has no " << point["kernel"] << " at " << point["shape"];
  return 0;
}

// Rows of a log that no constant was looked up for, each by itself: two CTAs that share tokens, and
// two that share a tile, of which the model does not know all that dividing k costs. Nothing in a
// prediction is drawn, and these two are the same for any sample: what the newest log says of them
// is what must come out, or less. A percent point is for changes of the model that are too small
// for a new log. New logs may not make it worse for ever: no row's bound may pass what it was
// when the model learned of fences, and the two together stay below 12 %.
TEST(TimingToolTest, PredictsLinearLayers) {
  const Outcome outcome =
      run_tool("--json bench timing " TILEWRIGHT_SOURCE_DIR
               "/bench/results/2026-11-22-linear-rates.json"
               " --kernels w4a16:wide_bf16_t128_s2 w4a16:wide_bf16_t128_r2 --rows 64 "
               "--features 4096 --sample 2");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json result = outcome.parsed();
  EXPECT_EQ(result["summary"]["points"], 2);
  EXPECT_EQ(result["summary"]["pairs_in_order"], 1);
  EXPECT_LT(result["summary"]["mean_absolute_error"].get<double>(), 0.12);
  for (const json& point : result["points"]) {
    const bool is_divided = point["kernel"] == "w4a16:wide_bf16_t128_s2";
    const double most =
        std::min(is_divided ? 0.13 : 0.05, std::abs(logged_error("linear", point)) + 0.01);
    EXPECT_LT(std::abs(point["error"].get<double>()), most) << point;
  }
}

// Calls that stand in a graph: 5.1 us for 5.1, most of them launches. With launches from the host
// it would be 8.3 us.
TEST(TimingToolTest, PredictsDecodeAttention) {
  const Outcome outcome = run_tool("--json bench timing " TILEWRIGHT_SOURCE_DIR
                                   "/bench/results/2026-11-23-decode.json"
                                   " --rows 1 --lengths 256 --sample 4");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.parsed()["summary"]["points"], 2);
  EXPECT_LT(outcome.parsed()["summary"]["mean_absolute_error"].get<double>(), 0.15);
}

struct LoggedRows {
  const char *name, *log, *choice;
  int points, pairs;
  double most;  ///< mean error that is allowed: that of the family in the page's table, and a third
};

class TimingRows : public testing::TestWithParam<LoggedRows> {};

// Some rows of the logs of the other families, as the page's tables have them.
TEST_P(TimingRows, ArePredictedAsWellAsThePageSays) {
  const LoggedRows& rows = GetParam();
  const Outcome outcome = run_tool(std::string("--json bench timing ") + TILEWRIGHT_SOURCE_DIR +
                                   "/bench/results/" + rows.log + " " + rows.choice);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json summary = outcome.parsed()["summary"];
  EXPECT_EQ(summary["points"], rows.points);
  EXPECT_LT(summary["mean_absolute_error"].get<double>(), rows.most) << summary;
  EXPECT_EQ(summary["pairs"], rows.pairs);
  EXPECT_EQ(summary["pairs_in_order"], rows.pairs);
}

INSTANTIATE_TEST_SUITE_P(Families, TimingRows,
                         testing::Values(LoggedRows{"Sparse", "2026-11-22-sparse-attention.json",
                                                    "--kernels few_heads --rows 2", 3, 0, 0.12},
                                         LoggedRows{"Indexer", "2026-11-28-indexer-timed-h200.json",
                                                    "--rows 128 --most-us 30", 7, 0, 0.08},
                                         LoggedRows{"Experts",
                                                    "2026-11-27-moe-few-tokens-h200.json",
                                                    "--rows 8", 2, 1, 0.25}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(TimingPointsTest, TakesExpertsWithTheOneBeside) {
  const json row = {{"shape", "16/2/512/256"},
                    {"source", "tilewright"},
                    {"kernel", "direct"},
                    {"format", "mxfp4"},
                    {"single", {{"kernel", "direct"}}},
                    {"samples_us", {30, 31, 32}},
                    {"samples_mhz", {1830, 1831, 1832}},
                    {"problem", {{"tokens", 2}, {"topk", 2}, {"shared", false}}}};
  json other = row;
  other["problem"]["tokens"] = 4;
  TimingChoice choice;
  choice.rows = {2};
  const json log = {
      {"kind", "moe"}, {"tool", "tilewright bench moe 0.1.0"}, {"samples", {row, other}}};
  const std::vector<TimingPoint> points = timing_points(log, choice);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_TRUE(points[0].has_single);
  EXPECT_EQ(points[0].clock_mhz, 1831);
  // One cooperative launch; that its CTAs wait for each other is a test of the model. By the tool:
  // it sets variables of the process.
  const std::string file = testing::TempDir() + "experts_with_the_one_beside.json";
  std::ofstream(file) << log;
  const Outcome outcome = run_tool("bench timing " + file + " --rows 2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json result = json::parse(outcome.out)["points"][0];
  ASSERT_FALSE(result.contains("problem")) << result;
  EXPECT_EQ(result["shape"], "16/2/512/256 mxfp4 and FP8 m2");
  EXPECT_EQ(result["launches"], 1);
  EXPECT_EQ(result["kernels"], json({"moe_direct_mxfp4_braided"}));
}

TEST(TimingToolTest, SaysWhichLogAndWhichRows) {
  const Outcome none = run_tool(std::string("bench timing ") + kLadderLog + " --kernels k99");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("no measured row"));
  const std::string other = TILEWRIGHT_SOURCE_DIR "/bench/results/2026-11-23-decode.json";
  const Outcome two =
      run_tool(std::string("bench timing ") + kLadderLog + " " + other + " --kernels k99");
  EXPECT_THAT(two.err, HasSubstr(std::string(kLadderLog) + ", " + other + " has no measured row"));
  const std::string wrong = TILEWRIGHT_SOURCE_DIR "/bench/results/2026-11-26-tokenizer-peers.json";
  EXPECT_THAT(run_tool(std::string("bench timing ") + kLadderLog + " " + wrong).err,
              HasSubstr("2026-11-26-tokenizer-peers.json: bench timing: a log of `tilewright"));
}

// Kernels of one shape may be in logs of their own.
TEST(TimingToolTest, RowsOfSeveralLogsAreOneTable) {
  json row = json::parse(
      std::ifstream(TILEWRIGHT_SOURCE_DIR "/bench/results/2026-11-23-decode.json"))["samples"][0];
  row["samples_us"] = {5.0};
  std::string files;
  for (const char* const kernel : {"r16", "r64"}) {
    row["kernel"] = kernel;
    const json log = {{"kind", "decode"},
                      {"tool", "tilewright bench decode 0.1.0"},
                      {"clocks_after", {{"sm_mhz", 1980}}},
                      {"samples", {row}}};
    const std::string file = testing::TempDir() + "rows_of_" + kernel + ".json";
    std::ofstream(file) << log;
    files += " " + file;
  }
  // The first ones once more: they count once.
  const Outcome outcome = run_tool("bench timing" + files + files + " --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json summary = json::parse(outcome.out)["summary"];
  EXPECT_EQ(summary["points"], 2);
  ASSERT_EQ(summary["choices"].size(), 1U);
  EXPECT_EQ(summary["choices"][0]["kernels"], 2);
}

TEST(TimingToolTest, TakesALogOrBlackwell) {
  for (const std::string& rest : {std::string(), std::string(" --b200 ") + kLadderLog}) {
    const Outcome outcome = run_tool("bench timing" + rest);
    EXPECT_EQ(outcome.status, 1) << rest;
    EXPECT_THAT(outcome.err, HasSubstr("a log of an H200 or --b200 is expected"));
  }
}

// Of a pair of CTAs each copies its half of the operands, though the barrier of one counts the
// bytes of both: 32 us, 1083 TFLOP/s, where published kernels reach 1359 at four times the k. With
// all bytes going to one SM it would be 55 us.
TEST(TimingToolTest, ACtaOfAPairGetsItsOwnBytes) {
  const Outcome outcome = run_tool(
      "--device sim:b200 --time linear --format bf16 --m 4096 --n 4096 --k 1024 "
      "--kernel tensor_bf16_2cta_n256");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::size_t at = outcome.out.find("predicted  ");
  ASSERT_NE(at, std::string::npos) << outcome.out;
  const double us = std::stod(outcome.out.substr(at + 11));
  EXPECT_GT(us, 2.0 * 4096 * 4096 * 1024 / 2.4e15 * 1e6);  // less than the tensor cores need
  EXPECT_LT(us, 40);
}

// One point of a part: by MXFP4 weights, of which an mbarrier counts half of the bytes of shared
// memory (see TimeTest.AnMbarrierCountsTheBytesThatACopyReads).
TEST(TimingToolTest, PredictsPartsOfBlackwell) {
  const Outcome outcome = run_tool(
      "--json bench timing --b200 --parts linear --kernels "
      "\"mxfp8 mxfp4:tensor_blocks_few\" --sample 1");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json points = outcome.parsed()["points"];
  ASSERT_EQ(points.size(), 1U);
  EXPECT_FALSE(points[0].contains("problem")) << points;
  EXPECT_EQ(points[0]["part"], "linear");
  EXPECT_EQ(points[0]["range_from"], "linear");
  // x is quantised first. Half a byte a weight at 8 TB/s, less than 30 times as long.
  EXPECT_EQ(points[0]["kernels"].size(), 2U) << points;
  EXPECT_GT(points[0]["predicted_us"].get<double>(), 1.0);
  EXPECT_LT(points[0]["predicted_us"].get<double>(), 30.0);
  const Outcome none = run_tool("bench timing --b200 --parts attention --kernels t16");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("there is no point of --kernels t16 in --parts attention"));
}

TEST(TimingTableTest, TellsTheOrderOfKernelsWhereThereAreSeveral) {
  json points = {{{"shape", "a"},
                  {"kernel", "k5"},
                  {"predicted_us", 9.0},
                  {"measured_us", 10.0},
                  {"error", -0.1}}};
  const auto table = [&] {
    const json result = {
        {"points", points}, {"calibration", json::array()}, {"summary", timing_summary(points)}};
    return timing_table(result, Style(TextColor::kNone));
  };
  EXPECT_THAT(table(), HasSubstr("\n1 point: mean error 10.0 %"));
  EXPECT_THAT(table(), testing::Not(HasSubstr("kernels at a shape")));
  EXPECT_THAT(table(), testing::Not(HasSubstr("not scored")));
  points.push_back(points[0]);
  points[1]["kernel"] = "k6", points[1]["measured_us"] = 8.0;
  EXPECT_THAT(table(), HasSubstr("kernels at a shape: of 1 pairs more than 3 % apart"));
}

TEST(BlackwellTableTest, EveryRowIsToldFromTheOthers) {
  std::set<std::pair<std::string, std::string>> rows;
  for (const BlackwellPoint& point : blackwell_points()) {
    const auto row = std::pair(title_of(point.timing), point.timing.kernel);
    EXPECT_TRUE(rows.insert(row).second) << row.first << " " << row.second;
  }
  EXPECT_TRUE(rows.contains({"64/6/4096/1024 nvfp4 m16", "few"}));
}

TEST(BlackwellTableTest, HasRatesAndReasons) {
  const json result = {{"points",
                        {{{"shape", "decode b8"},
                          {"kernel", "t16"},
                          {"predicted_us", 20.0},
                          {"range_us", {19.0, 24.5}},
                          {"tflops", 30.4},
                          {"tb_per_s", 5.125},
                          {"busiest", "HBM 75 %"},
                          {"longest_wait", "mbarrier 40 %"}},
                         {{"shape", "decode b9"}, {"kernel", "t99"}, {"problem", "no such"}}}}};
  const std::string text = blackwell_table(result, Style(TextColor::kNone));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "decode b8 +t16 +20\\.0 +19\\.0 to 24\\.5 +30 +5\\.1[23] +HBM 75 % +mbar"));
  EXPECT_THAT(text, HasSubstr("decode b9 t99: no such"));
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
