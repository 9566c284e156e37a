// `tilewright sparse-attention` and `tilewright bench sparse` as a user runs them.
#include "base/safetensors_writer.h"
#include "formats/minifloat.h"
#include "tests/cli/run_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;

constexpr const char* kSim = "--device sim:h200 ";

TEST(SparseTool, ChecksDrawnOperands) {
  const Outcome run = run_tool(std::string(kSim) +
                               "--json sparse-attention --heads 3 --window 70 --compressed 9 "
                               "--window-page 61 --lengths per_query --format nvfp4 --check");
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  const nlohmann::json report = run.parsed();
  EXPECT_TRUE(report["error"]["ok"].get<bool>());
  EXPECT_EQ(report["plan"]["kernel"], "few_heads");
  EXPECT_GT(report["counted"]["total"]["warp_instructions"].get<double>(), 1000);
}

TEST(SparseTool, RunsOnBlackwell) {
  const Outcome run = run_tool(
      "--device sim:b200 --json sparse-attention --heads 64 --batch 1 --q-len 2 --window 70 "
      "--compressed 9 --lengths per_query --kernel pair_tiles --check");
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  const nlohmann::json report = run.parsed();
  EXPECT_TRUE(report["error"]["ok"].get<bool>());
  EXPECT_EQ(report["plan"]["kernel"], "pair_tiles");
}

TEST(SparseTool, RowsOf576) {
  for (const char* options : {"h200 --json sparse-attention --heads 20 --format fp8",
                              "b200 --json sparse-attention --heads 70 --format bf16"}) {
    const Outcome run = run_tool(std::string("--device sim:") + options +
                                 " --head-dim 576 --batch 1 --window 70 --compressed 9 --check");
    ASSERT_EQ(run.status, 0) << run.err << run.out;
    EXPECT_TRUE(run.parsed()["error"]["ok"].get<bool>()) << run.out;
    EXPECT_NE(run.parsed()["plan"]["kernel"], "naive");
  }
  const Outcome refused =
      run_tool(std::string(kSim) + "sparse-attention --head-dim 576 --format nvfp4 --plan");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("bf16 or fp8 for rows of 576"));
}

TEST(SparseTool, SaysWhatItWouldDoAndWhatItRefuses) {
  const Outcome plan = run_tool(std::string(kSim) + "sparse-attention --heads 20 --plan");
  EXPECT_EQ(plan.status, 0);
  EXPECT_THAT(plan.out, HasSubstr("padded to 32"));
  const Outcome refused = run_tool(std::string(kSim) + "sparse-attention --heads 200 --plan");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("heads = 200"));
}

TEST(SparseTool, BenchWritesALogAndAPage) {
  const ScopedFolder folder;
  const Outcome run =
      run_tool(std::string(kSim) + "bench sparse --batch 1 --out " + (folder / "out").string());
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("right"));
  const nlohmann::json log = read_json(folder / "out/sparse.json");
  EXPECT_EQ(log["kind"], "sparse");
  EXPECT_TRUE(log["samples"][0]["error"]["ok"].get<bool>());
  EXPECT_THAT(std::string(MappedFile(folder / "out/sparse.html").text()), HasSubstr("small"));
}

}  // namespace
}  // namespace tilewright
