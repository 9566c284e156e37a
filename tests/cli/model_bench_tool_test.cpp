// bench model and bench exchange on the simulator: no times there, but steps, launches and floors.
#include "base/file.h"
#include "bench/model.h"
#include "tests/cli/run_tool.h"
#include "tests/model/random_checkpoint.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Outcome bench_tiny_model(const std::string& options) {
  const model::RandomCheckpoint checkpoint({.heads = 4, .experts = 4, .ratios = {0, 4}});
  const ScopedFolder out;
  return run_tool("--device sim:h200 --json bench model --model " + checkpoint.folder().string() +
                  " --context 6 --batch 2 --prefill-chunk 4 --samples 3 --out " +
                  out.path().string() + " " + options);
}

// A prompt in two steps, then a step of decoding.
void expect_steps(const Outcome& outcome, int ranks) {
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json log = outcome.parsed();
  EXPECT_EQ(log["kind"], "model");
  EXPECT_EQ(log["ranks"]["count"], ranks);
  ASSERT_EQ(log["samples"].size(), 2U);
  const json& prompt = log["samples"][0];
  const json& decode = log["samples"][1];
  EXPECT_EQ(prompt["phase"], "prefill");
  EXPECT_EQ(prompt["tokens"], 6);
  EXPECT_GT(prompt["floor_us"].get<double>(), 0);
  EXPECT_TRUE(decode["ok"].get<bool>());
  EXPECT_TRUE(decode["samples_us"].empty());
  EXPECT_GT(decode["floor_us"].get<double>(), 0);
  std::int64_t launches = 0;
  for (const json& entry : decode["launched"]) launches += entry["count"].get<std::int64_t>();
  EXPECT_EQ(launches, decode["launches"].get<std::int64_t>());
  EXPECT_THAT(decode["launched"].dump(),
              AllOf(HasSubstr("linear_slab_bf16"), HasSubstr("moe_direct")));
  EXPECT_THAT(model_report({log}), AllOf(HasSubstr("batch 2, context 6"), HasSubstr("moe_direct")));
}

TEST(ModelBenchToolTest, OneRank) {
  expect_steps(bench_tiny_model(""), 1);
}

TEST(ModelBenchToolTest, TwoRanksThatDivideTheHeads) {
  expect_steps(bench_tiny_model("--gpus 2 --parallel tensor"), 2);
}

TEST(ModelBenchToolTest, TwoRanksThatDivideTheExperts) {
  expect_steps(bench_tiny_model("--gpus 2 --parallel expert"), 2);
}

// Then ranks exchange sums alone, as those that divide the heads do.
TEST(ModelBenchToolTest, OneTokenOfEachRankTakesNoMoreLaunches) {
  const model::RandomCheckpoint checkpoint({.heads = 4, .experts = 4, .ratios = {0}});
  std::vector<std::int64_t> launches;
  for (const std::string scheme : {"tensor", "expert"}) {
    const ScopedFolder out;
    const Outcome outcome =
        run_tool("--device sim:h200 --json bench model --model " + checkpoint.folder().string() +
                 " --gpus 2 --parallel " + scheme + " --context 6 --prompt 0 --samples 3 --out " +
                 out.path().string());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json log = outcome.parsed();
    const json& decode = log["samples"].at(0);
    EXPECT_TRUE(decode["ok"].get<bool>());
    launches.push_back(decode["launches"].get<std::int64_t>());
  }
  EXPECT_LE(launches[1], launches[0]);
}

// Two requests of each rank end while they are counted; as many prompts are read.
TEST(ModelBenchToolTest, Serves) {
  const model::RandomCheckpoint checkpoint({.ratios = {4}});
  const ScopedFolder out;
  const Outcome outcome = run_tool(
      "--device sim:h200 --json bench model --model " + checkpoint.folder().string() +
      " --gpus 2 --parallel expert --serve 2 --input 6 --output 4 --requests 2 --prefill-chunk 8"
      " --out " +
      out.path().string());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json log = outcome.parsed();
  ASSERT_EQ(log["samples"].size(), 1U);
  const json& sample = log["samples"][0];
  EXPECT_EQ(sample["phase"], "serve");
  EXPECT_EQ(sample["prompt_tokens"], 12);
  EXPECT_GE(sample["new_tokens"].get<int>(), 6);
  EXPECT_LE(sample["new_tokens"].get<int>(), 10);
  EXPECT_GT(sample["floor_us"].get<double>(), 0);
  EXPECT_FALSE(sample.contains("seconds"));
  EXPECT_THAT(model_report({log}), HasSubstr("mix of 6 in, 4 out, 2 sequences"));
  EXPECT_THAT(run_tool("--device sim:h200 bench model --serve 2 --batch 2").err,
              AllOf(HasSubstr("--serve"), HasSubstr("--batch")));
}

// Nothing is loaded that could not be timed.
TEST(ModelBenchToolTest, WhatDoesNotFitIsRefusedWithWhatWould) {
  const model::RandomCheckpoint checkpoint({.heads = 4, .experts = 4, .ratios = {4}});
  const auto bench = [&](const std::string& options) {
    const ScopedFolder out;
    return run_tool("--device sim:h200 --json bench model --model " + checkpoint.folder().string() +
                    " --out " + out.path().string() + " " + options);
  };
  for (const std::string options :
       {"--serve 60000 --input 524288 --output 524288",
        "--serve 60000 --input 524288 --output 524288 --gpus 2 --parallel tensor",
        "--batch 65000 --batch 60000 --context 1048576 --prompt 0",
        "--batch 60000 --context 1048576 --prompt 0 --gpus 2 --parallel expert"}) {
    const Outcome outcome = bench(options);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("60000 sequences of 1048576 tokens"),
                                   HasSubstr("What would fit: ")));
  }
  const Outcome some = bench("--batch 60000 --context 1048576 --prompt 6");
  ASSERT_EQ(some.status, 0) << some.err;
  const json samples = some.parsed()["samples"];
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_FALSE(samples[0].contains("refused"));
  EXPECT_THAT(samples[1]["refused"].get<std::string>(),
              AllOf(HasSubstr("60000 sequences of 1048576 tokens"), HasSubstr("What would fit: ")));
}

TEST(ModelBenchToolTest, SaysWhatCannotBe) {
  EXPECT_THAT(run_tool("--device sim:h200 bench model --kv exact").err,
              HasSubstr("--kv exact: is for the float64 model"));
  EXPECT_THAT(run_tool("--device sim:h200 bench model --context 0").err, HasSubstr("--context"));
}

const std::filesystem::path kRoot = TILEWRIGHT_SOURCE_DIR;

std::string read_text(const std::filesystem::path& path) {
  return std::string(MappedFile(path).text());
}

// The command is the page's own.
TEST(ModelBenchToolTest, PictureInTheDocumentsIsOfTheCommittedLogs) {
  const std::string page = read_text(kRoot / "docs/11-running-v4.md");
  const std::string begin = "    tilewright bench model --from ",
                    image = "docs/images/v4-steps.svg";
  const std::size_t first = page.find(begin), last = page.find(image, first);
  ASSERT_NE(last, page.npos);
  std::string options;
  for (const char c : page.substr(first, last - first)) options += c == '\\' || c == '\n' ? ' ' : c;
  options = options.substr(options.find("bench"));
  const ScopedFolder out;
  const Outcome outcome =
      run_tool(options + (out / "steps.svg").string() + " --out " + out.path().string(),
               "cd " + kRoot.string() + ";");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string svg = read_text(out.path() / "steps.svg");
  EXPECT_EQ(svg, read_text(kRoot / image)) << image << " is stale; " << page.substr(first, last);
  EXPECT_THAT(svg, AllOf(HasSubstr(">1 GPU, 22 layers<"), HasSubstr(">2 GPUs, experts, 43 layers<"),
                         HasSubstr(">2 GPUs, tensors, 43 layers<"), Not(HasSubstr("var("))));
  EXPECT_THAT(read_text(out.path() / "model.html"),
              AllOf(HasSubstr("Decode steps, context 8192"), HasSubstr("expert parallel"),
                    HasSubstr("tensor parallel")));
  EXPECT_THAT(page, HasSubstr("](images/v4-steps.svg)"));
}

// Before anything is run.
TEST(ModelBenchToolTest, AFolderThatCannotBeIsRefusedFirst) {
  const ScopedFolder folder;
  std::ofstream(folder / "file") << "text";
  for (const std::string bench : {"model", "moe", "sparse", "indexer"}) {
    const Outcome outcome = run_tool("--device sim:none bench " + bench + " --out " +
                                     (folder / "file").string() + "/below");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("expected a folder that can be made and written to"));
  }
}

// A step whose logits are no numbers shows.
TEST(ModelBenchToolTest, WrongStepsAreSaid) {
  json log = {{"model", {{"name", "m"}, {"config", "c"}}},
              {"ranks", {{"count", 1}, {"scheme", ""}}},
              {"samples",
               {{{"phase", "decode"}, {"batch", 1}, {"context", 2}, {"floor_us", 1}, {"ok", false}},
                {{"phase", "decode"}, {"batch", 9}, {"context", 2}, {"refused", "no room"}}}}};
  EXPECT_FALSE(is_model_log_correct(log));
  EXPECT_THAT(model_table(log, Style(TextColor::kNone)),
              AllOf(HasSubstr("WRONG"), HasSubstr("no room")));
  log["samples"][0]["ok"] = true;
  EXPECT_TRUE(is_model_log_correct(log));
}

// One context: the batch is along the axis. A single point is no plot.
TEST(ModelBenchToolTest, PlotsWhatThereIsMoreThanOneOf) {
  json log = {{"model", {{"name", "m"}, {"config", "c"}}},
              {"ranks", {{"count", 1}, {"scheme", ""}}},
              {"device", {{"name", "a device"}}},
              {"samples", json::array()}};
  const auto add = [&](int batch, int context) {
    log["samples"].push_back({{"phase", "decode"},
                              {"batch", batch},
                              {"context", context},
                              {"floor_us", 100.0 * batch},
                              {"samples_us", {200.0 * batch + context}},
                              {"launches", 7}});
  };
  add(1, 8192);
  EXPECT_THAT(model_report({log}), Not(HasSubstr("<svg")));
  add(64, 8192);
  EXPECT_THAT(model_report({log}), AllOf(HasSubstr("floor, context 8192"), HasSubstr("by batch")));
  add(64, 1024);
  EXPECT_THAT(model_report({log}), AllOf(HasSubstr("floor, batch 64"), HasSubstr("by context")));
}

// Ranks that divide the heads have one batch together: half of its tokens are a GPU's.
TEST(ModelBenchToolTest, TokensOfAGpu) {
  json log = {{"model", {{"name", "m"}, {"config", "c"}}},
              {"ranks", {{"count", 2}, {"scheme", "tensor parallel"}}},
              {"samples",
               {{{"phase", "decode"},
                 {"batch", 1},
                 {"context", 2},
                 {"floor_us", 500.0},
                 {"samples_us", {1000.0, 1000.0, 1000.0}},
                 {"launches", 7}}}}};
  EXPECT_THAT(model_table(log, Style(TextColor::kNone)),
              HasSubstr("1.000     0.500    50.0         500"));
  log["ranks"]["scheme"] = "expert parallel";
  EXPECT_THAT(model_table(log, Style(TextColor::kNone)), HasSubstr("1000         7"));
}

TEST(ExchangeBenchToolTest, SumsOfSimulatedRanks) {
  const ScopedFolder out;
  const Outcome outcome = run_tool(
      "--device sim:h200 --json bench exchange --gpus 3 --bytes 64 --bytes 4096 "
      "--samples 3 --out " +
      out.path().string());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json log = outcome.parsed();
  EXPECT_EQ(log["ranks"]["count"], 3);
  EXPECT_FALSE(log["ranks"]["has_peers"].get<bool>());
  ASSERT_EQ(log["samples"].size(), 2U);
  for (const json& sample : log["samples"]) EXPECT_TRUE(sample["ok"].get<bool>());
  EXPECT_THAT(run_tool("--device sim:h200 bench exchange").err, HasSubstr("expected --gpus 2"));
  EXPECT_THAT(run_tool("--device sim:h200 bench exchange --gpus 2 --bytes 24").err,
              HasSubstr("expected a multiple of 16"));
}

}  // namespace
}  // namespace tilewright::cli
