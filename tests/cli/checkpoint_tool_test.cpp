// tilewright make-checkpoint, info --checkpoint and generate on what was made.
#include "tests/base/scoped_folder.h"
#include "tests/cli/run_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(CheckpointTool, MakesOneThatGenerateReads) {
  const ScopedFolder folder;
  const std::string path = folder / "small";
  const auto made = run_tool("--json make-checkpoint " + path + " --layers 3 --format nvfp4");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.parsed()["files"], 6);
  const auto run = run_tool(
      "--json generate --device reference --kv exact -p abc --max-tokens 2 "
      "--model " +
      path);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.parsed()["sequences"][0]["tokens"].size(), 2u);
  const auto info = run_tool("--json info --ranks 1,2 --checkpoint " + path);
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(info.parsed()["tensors"], made.parsed()["tensors"]);
  EXPECT_EQ(info.parsed()["ranks"].size(), 3u);
  const auto again = run_tool("make-checkpoint " + path);
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("expected a name that is free, or an empty folder"));
}

TEST(CheckpointTool, MemoryOfTheReleasedModels) {
  const auto run = run_tool("info --checkpoint flash --ranks 1,2 --context 131072");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("69187 tensors, 159.61 GB, experts in mxfp4"));
  EXPECT_THAT(run.out, HasSubstr("tensor parallel"));
  const auto three = run_tool("info --checkpoint pro --ranks 3");
  EXPECT_EQ(three.status, 0) << three.err;
  EXPECT_THAT(three.out, HasSubstr("expert parallel"));
  EXPECT_THAT(three.out, HasSubstr("3 ranks cannot split the tensors of this model"));
  EXPECT_EQ(run_tool("info --ranks 3").status, 2) << "of no checkpoint";
}

// Nothing is drawn or loaded before it is known to fit.
TEST(CheckpointTool, ModelsThatDoNotFitAreRefusedWithWhatWould) {
  const auto run = run_tool("generate --device sim:h200 --synthetic-weights flash -p a");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("GB of weights, "));
  EXPECT_THAT(run.err, HasSubstr("What would fit: 2 ranks, expert parallel"));
  const auto layers = run_tool("generate --synthetic-weights flash --layers 44 -p a");
  EXPECT_EQ(layers.status, 1);
  EXPECT_THAT(layers.err, HasSubstr("44 layers of flash; expected 1 to 43"));
}

}  // namespace
}  // namespace tilewright
