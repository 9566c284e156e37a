// `tilewright --time` as a user asks for it: by the option, by the variable, and of a sample.
#include "tests/cli/run_tool.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSmall =
    "--device sim:h200 --json attention --inputs normal --shape 1,1,1,128,128,64 --kernel k5";

json predicted_of(const std::string& arguments, const std::string& variables = "") {
  const Outcome outcome = run_tool(arguments, variables);
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  if (outcome.status != 0) return {};
  return outcome.parsed()["counted"].value("predicted", json());
}

TEST(TimeTool, TheVariableIsTheOption) {
  const json by_option = predicted_of(std::string("--time ") + kSmall);
  ASSERT_TRUE(by_option.is_object());
  EXPECT_GT(by_option["us"].get<double>(), 0);
  EXPECT_EQ(by_option["costs_from"], "machine code");
  EXPECT_EQ(predicted_of(kSmall, "TILEWRIGHT_SIM_TIME=1"), by_option);
  EXPECT_TRUE(predicted_of(kSmall, "TILEWRIGHT_SIM_TIME=0").is_null());
  EXPECT_TRUE(predicted_of(kSmall).is_null());
  const Outcome wrong = run_tool(kSmall, "TILEWRIGHT_SIM_TIME=yes");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("TILEWRIGHT_SIM_TIME = \"yes\"; expected 0 or 1"));
}

// A program that knows nothing of a report has a table of its kernels at its end.
TEST(TimeTool, TheVariableIsOfAnyProgram) {
  const std::string attention = std::string("sim exec -- ") + TILEWRIGHT_TOOL +
                                " attention --inputs normal --shape 1,1,1,128,128,64 --device cuda";
  const Outcome timed = run_tool(attention, "TILEWRIGHT_SIM_TIME=1 TILEWRIGHT_SIM_REPORT=-");
  ASSERT_EQ(timed.status, 0) << timed.err;
  EXPECT_THAT(timed.err, HasSubstr("predicted     "));
  const Outcome plain = run_tool(attention, "TILEWRIGHT_SIM_REPORT=-");
  EXPECT_THAT(plain.err, AllOf(HasSubstr("occupancy"), Not(HasSubstr("predicted"))));
}

struct SampledCommand {
  const char* name;
  std::string arguments;
  double most;  ///< part by which the prediction of a sample may lie away from the whole one's
};

class TimeSample : public testing::TestWithParam<SampledCommand> {};

// What a sample costs: CTAs that are alike give the whole launch's time to 2 %; causal tiles, of
// which each is as long as it has keys, to 10 %.
TEST_P(TimeSample, IsNearTheWhole) {
  const std::string command = "--time --device sim:h200 --json " + GetParam().arguments;
  const json whole = predicted_of(command + " --time-sample all");
  const json sampled = predicted_of(command + " --time-sample 12");
  EXPECT_EQ(whole["ctas_left_out"], 0);
  EXPECT_GT(sampled["ctas_left_out"].get<double>(), sampled["ctas"].get<double>() / 2);
  EXPECT_NEAR(sampled["us"].get<double>() / whole["us"].get<double>(), 1, GetParam().most);
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, TimeSample,
    testing::Values(
        SampledCommand{"Attention",
                       "attention --inputs normal --shape 1,8,8,1024,1024,128 --kernel k5", 0.02},
        SampledCommand{"Causal",
                       "attention --inputs normal --shape 1,8,8,1024,1024,128 --kernel k6 --causal",
                       0.1},
        SampledCommand{"Linear", "linear --m 256 --n 4096 --k 1024", 0.02}),
    [](const auto& test) { return std::string(test.param.name); });

// 1.1 TFLOP: two minutes of a core, if all ran.
TEST(TimeTool, LargeProblemsAreSampledAndSaySo) {
  const std::string large =
      "--time --device sim:h200 attention --inputs normal --shape 1,16,16,16384,16384,128 --causal "
      "--kernel k6";
  const Outcome outcome = run_tool(large);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("predicted  "), HasSubstr("CTAs ran: there are no"),
                                 HasSubstr("--time-sample all")));
  EXPECT_THAT(run_tool("--time " + std::string(kSmall)).out, HasSubstr("\"ctas_left_out\": 0"));
}

TEST(TimeTool, ASampleHasNoResults) {
  for (const std::string rest : {" --check", " --out /tmp/none.npy"}) {
    const Outcome outcome = run_tool("--time-sample 3 " + std::string(kSmall) + rest);
    EXPECT_EQ(outcome.status, 1) << rest;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("--time-sample 3"), HasSubstr("--time-sample all")));
  }
  EXPECT_EQ(run_tool("--time-sample all " + std::string(kSmall) + " --check").status, 0);
  const Outcome ladder = run_tool("--time-sample 3 --device sim:h200 ladder --lengths 128");
  EXPECT_EQ(ladder.status, 1);
  EXPECT_THAT(ladder.err, HasSubstr("ladder checks the results of all CTAs"));
  for (const char* const wrong : {"0", "some", "1025", "''"}) {
    const Outcome outcome = run_tool(std::string("--time-sample ") + wrong + " " + kSmall);
    EXPECT_EQ(outcome.status, 2) << wrong;
    EXPECT_THAT(outcome.out, HasSubstr("1 to 1024")) << wrong;
  }
}

// Commands of many launches: what is predicted of all of them, in the member that operators have.
TEST(TimeTool, QuantizeSumsUpItsKernels) {
  const ScopedFolder folder;
  const std::string command = "--device sim:h200 --json quantize " TILEWRIGHT_TEST_DATA
                              "/quantize/tiny_dsv4_rows.safetensors " +
                              (folder / "out.safetensors").string() + " --no-errors";
  const auto counted = [&](const std::string& option) {
    std::filesystem::remove(folder / "out.safetensors");
    const Outcome outcome = run_tool(command + option);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.parsed().value("counted", json());
  };
  const json of_all = counted(" --time");
  ASSERT_TRUE(of_all.contains("predicted")) << of_all;
  const json& predicted = of_all["predicted"];
  EXPECT_EQ(predicted["launches"], 3);  // a tensor each
  EXPECT_EQ(of_all["kernels"].size(), 3U);
  EXPECT_GT(predicted["us"].get<double>(), predicted["launch_us"].get<double>());
  EXPECT_GT(predicted["launch_us"].get<double>(), 0);
  EXPECT_TRUE(counted("").is_null());
}

TEST(TimeTool, GenerateSumsUpItsSteps) {
  const auto run = [](const std::string& options) {
    const Outcome outcome =
        run_tool("--device sim:h200 --json " + options + " generate -p a --max-tokens 1");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.parsed();
  };
  const json timed = run("--time"), plain = run("");
  EXPECT_EQ(timed["sequences"], plain["sequences"]);
  EXPECT_FALSE(plain.contains("counted"));
  const json& predicted = timed["counted"]["predicted"];
  ASSERT_TRUE(predicted.contains("us")) << predicted;
  // One step of six layers, from its tokens to the one that is drawn.
  EXPECT_GT(predicted["launches"].get<double>(), 6 * 10);
  EXPECT_GT(predicted["us"].get<double>(), predicted["launch_us"].get<double>());
  const std::vector<std::string> kernels = timed["counted"]["kernels"];
  EXPECT_THAT(kernels, testing::IsSupersetOf({"hyper_embed", "sample_rows"}));
}

}  // namespace
}  // namespace tilewright
