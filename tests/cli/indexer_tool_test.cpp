// `tilewright indexer` and `tilewright bench indexer` as a user runs them.
#include "tests/cli/run_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;

constexpr const char* kSim = "--device sim:h200 ";

TEST(IndexerTool, ChecksDrawnOperands) {
  for (const char* const format : {"fp8", "mxfp4"}) {
    const Outcome run = run_tool(std::string(kSim) +
                                 "--json indexer --heads 9 --keys 80 --topk 20 --page 23 --q-len 2 "
                                 "--row-page 3 --lengths drawn --check --format " +
                                 format);
    ASSERT_EQ(run.status, 0) << run.err << run.out;
    const nlohmann::json report = run.parsed();
    EXPECT_TRUE(report["error"]["ok"].get<bool>()) << report["error"];
    EXPECT_EQ(report["error"]["codes"], 4 * 9 * 128);
    EXPECT_GT(report["counted"]["total"]["warp_instructions"].get<double>(), 1000);
  }
}

// One SM: every ring of Blackwell's kernel goes around several times, whatever comes when.
TEST(IndexerTool, RingsOfBlackwellGoAround) {
  for (const char* const timing : {"eager", "late", "random"}) {
    for (const char* const format : {"fp8", "mxfp4"}) {
      const Outcome run = run_tool(
          "--device sim:b200 --json indexer --heads 64 --keys 600 --topk 20 --batch 2 --q-len 8 "
          "--check --format " +
              std::string(format),
          "TILEWRIGHT_SIM_SMS=1 TILEWRIGHT_SIM_CHECK=all,strict TILEWRIGHT_SIM_ASYNC=" +
              std::string(timing));
      ASSERT_EQ(run.status, 0) << run.err << run.out;
      EXPECT_TRUE(run.parsed()["error"]["ok"].get<bool>()) << run.out;
    }
  }
}

TEST(IndexerTool, SaysWhatItWouldDoAndWhatItRefuses) {
  const Outcome plan = run_tool(std::string(kSim) + "indexer --heads 20 --plan");
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("indexer_logits_fp8_h32"));
  const Outcome refused = run_tool(std::string(kSim) + "indexer --heads 65 --plan");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("heads = 65"));
}

TEST(IndexerTool, BenchWritesALogAndAPage) {
  const ScopedFolder folder;
  const Outcome run =
      run_tool(std::string(kSim) + "bench indexer --out " + (folder / "out").string());
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("right"));
  const nlohmann::json log = read_json(folder / "out/indexer.json");
  EXPECT_EQ(log["kind"], "indexer");
  EXPECT_EQ(log["samples"].size(), 4u);  // decoding and a prompt, two formats
  for (const nlohmann::json& sample : log["samples"])
    EXPECT_TRUE(sample["error"]["ok"].get<bool>()) << sample;
  EXPECT_THAT(std::string(MappedFile(folder / "out/indexer.html").text()),
              HasSubstr("lightning indexer"));
  const Outcome wrong = run_tool(std::string(kSim) + "bench indexer --prompt 12");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("expected TOKENSxKEYS"));
}

}  // namespace
}  // namespace tilewright
