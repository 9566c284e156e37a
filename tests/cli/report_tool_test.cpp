// `tilewright --report` as a user runs it: what kernels cost on a simulated device.
#include "tests/base/scoped_folder.h"
#include "tests/cli/run_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;

struct ReportingCommand {
  std::string arguments, kernel;
};
class ReportTool : public testing::TestWithParam<ReportingCommand> {};

// --report is an option of every command that runs kernels.
TEST_P(ReportTool, WritesWhatKernelsCost) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const ScopedFolder folder;
  const std::string file = folder / "report.json";
  const Outcome run = run_tool("--device sim:h200 " + GetParam().arguments + " --report " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const MappedFile text(file);
  const nlohmann::json report = parse_json(std::string(text.text()), "report");
  std::string names;
  for (const nlohmann::json& kernel : report["kernels"]) {
    names += kernel["kernel"].get<std::string>() + ' ';
    EXPECT_GT(kernel["total"]["warp_instructions"].get<double>(), 0);
  }
  EXPECT_THAT(names, HasSubstr(GetParam().kernel));
}

INSTANTIATE_TEST_SUITE_P(
    Commands, ReportTool,
    testing::Values(
        ReportingCommand{"attention --inputs normal --shape 1,1,1,20,30,64 --dtype bf16",
                         "attention_k"},
        ReportingCommand{"decode --batch 1 --keys 40 --heads 4 --kv-heads 1", "decode"},
        ReportingCommand{"linear --m 2 --n 64 --k 128", "linear"},
        ReportingCommand{"moe --shape 8/2/64/64 --tokens 2", "moe"},
        ReportingCommand{"sparse-attention --batch 1 --compressed 0 --window 20", "sparse"},
        ReportingCommand{"indexer --batch 1", "indexer"}));

TEST(ReportTool, PrintsATable) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const Outcome run = run_tool("--device sim:h200 --report - linear --m 2 --n 64 --k 128");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("simulator report for NVIDIA H200"));
}

}  // namespace
}  // namespace tilewright
