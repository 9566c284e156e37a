// Edited PTX under an unchanged program, a smaller device, and the report of what ran.
#include "tests/cli/run_tool.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kEntry = "attention_k5_bf16_d64";
constexpr const char* kRun =
    "--device sim:h200 attention --inputs normal --kernel k5 --shape 1,1,1,30,300,64 --check";

class SimReplace : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_tool("info --json").parsed()["kernels"].empty())
      GTEST_SKIP() << "built without kernels";
  }
  /// Runs it with a file in the place of the kernel's module.
  Outcome run_with(const std::string& text) const {
    write_file(file_, text);
    return run_tool(kRun, "TILEWRIGHT_SIM_CHECK=all TILEWRIGHT_SIM_REPLACE=" + std::string(kEntry) +
                              "=" + file_);
  }
  static std::string shipped() { return run_tool("kernels --ptx " + std::string(kEntry)).out; }

  ScopedFolder folder_;
  std::string file_ = (folder_ / "edited.ptx").string();
};

TEST_F(SimReplace, RunsAnEditedKernel) {
  std::string ptx = shipped();
  const Outcome same = run_with(ptx);
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.err,
              HasSubstr("edited.ptx\" stands in for the module of attention_k5_bf16_d64"));
  EXPECT_THAT(same.out, HasSubstr("check      correct"));

  // The copies of this kernel expect 16 bytes too few.
  constexpr std::string_view kExpect = "mbarrier.arrive.expect_tx";
  const std::size_t entry = ptx.find(".entry " + std::string(kEntry) + "(");
  const std::size_t at = ptx.find(kExpect, entry);
  ASSERT_NE(at, std::string::npos);
  const std::size_t bytes = ptx.rfind("mov.u32", at), end = ptx.find(';', bytes);
  const std::size_t comma = ptx.find(',', bytes);
  const int count = std::stoi(ptx.substr(comma + 1, end - comma - 1));
  ptx.replace(comma + 1, end - comma - 1, std::to_string(count - 16));
  const Outcome edited = run_with(ptx);
  EXPECT_EQ(edited.status, 1);
  EXPECT_THAT(edited.err, AllOf(HasSubstr("[sync]"), HasSubstr("edited.ptx:")));
}

TEST_F(SimReplace, SaysWhatIsWrongWithTheFile) {
  EXPECT_THAT(run_with("// nothing\n").err,
              HasSubstr("has no .entry attention_k5_bf16_d64; expected the whole module"));
  // Names are compared whole.
  EXPECT_THAT(run_with(".visible .entry attention_k5_bf16_d640()").err, HasSubstr("has no .entry"));
  const Outcome missing = run_tool(
      kRun, "TILEWRIGHT_SIM_REPLACE=" + std::string(kEntry) + "=" + (folder_ / "none").string());
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("none\" cannot be read; expected a PTX text"));
  const Outcome endless =
      run_tool(kRun, "TILEWRIGHT_SIM_REPLACE=" + std::string(kEntry) + "=/dev/zero");
  EXPECT_EQ(endless.status, 1);
  EXPECT_THAT(endless.err, HasSubstr("is not a regular file"));
}

TEST_F(SimReplace, LeavesOtherModulesAlone) {
  const Outcome run = run_tool(kRun, "TILEWRIGHT_SIM_REPLACE=attention_k5_bf16=/nowhere.ptx");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
}

TEST_F(SimReplace, ReportsWhatTheToolCountedToo) {
  const std::string report = (folder_ / "report.json").string();
  const Outcome run = run_tool(kRun, "TILEWRIGHT_SIM_REPORT=" + report);
  EXPECT_THAT(run.out, HasSubstr("counted "));
  const nlohmann::json kernels = parse_json(MappedFile(report).text(), report)["kernels"];
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0]["kernel"], kEntry);
}

TEST_F(SimReplace, ADeviceOfFewSms) {
  const std::string plan =
      "--device sim:h200 attention --inputs normal --kernel k6 --shape 1,8,8,300,300,128 --plan";
  EXPECT_THAT(run_tool(plan).out, HasSubstr("grid 24,"));
  EXPECT_THAT(run_tool(plan, "TILEWRIGHT_SIM_SMS=2").out, HasSubstr("grid 2,"));
  // Clusters still fit.
  const Outcome run = run_tool("--device sim:h200 linear --kernel wide_bf16_t128_s2 --check",
                               "TILEWRIGHT_SIM_SMS=4 TILEWRIGHT_SIM_CHECK=all");
  EXPECT_EQ(run.status, 0) << run.err;
}

}  // namespace
}  // namespace tilewright
