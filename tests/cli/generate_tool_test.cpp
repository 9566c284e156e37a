// tilewright generate and eval, on the float64 model: what the tool adds to src/model.
#include "base/json.h"
#include "tests/base/scoped_folder.h"
#include "tests/cli/run_tool.h"
#include "tests/model/random_checkpoint.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kModel = std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4";
const std::string kGolden = std::string(TILEWRIGHT_TEST_DATA) + "/dsv4/tiny.safetensors";

TEST(GenerateTool, StreamsOnePromptAndSaysHowFast) {
  const auto run = run_tool("generate --device reference -p 'The kernel ' --max-tokens 4");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("The kernel ")) << run.out;
  EXPECT_THAT(run.out, HasSubstr("prefill 11 tokens in "));
  EXPECT_THAT(run.out, HasSubstr("decode 3 tokens in "));
  EXPECT_THAT(run.out, HasSubstr("float64 on "));
}

// Layers on the device, of all.
TEST(GenerateTool, ATerminalShowsHowFarLoadingIs) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    GTEST_SKIP() << "no pseudo terminal can be opened here";
  const std::string name = ::ptsname(terminal);
  const int open_end = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // what was written stays readable
  const auto run = run_tool("generate --device sim:h200 --max-tokens 1 -p a 2>" + name + " && true",
                            "TERM=xterm");
  EXPECT_EQ(run.status, 0);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(terminal, text.data(), 4096))));
  EXPECT_THAT(text, HasSubstr("load  6 layers in "));
  ::close(open_end);
  ::close(terminal);
}

TEST(GenerateTool, ABatchAsJson) {
  const auto run = run_tool(
      "--json generate --device reference -p 'int main' -p '# ' --max-tokens 3 --temperature 0.8 "
      "--top-p 0.9 --seed 5 --kv nvfp4 --experts mxfp4 --prefill-chunk 3");
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = run.parsed();
  ASSERT_EQ(report["sequences"].size(), 2u);
  for (const json& sequence : report["sequences"]) EXPECT_EQ(sequence["tokens"].size(), 3u);
  EXPECT_EQ(report["sequences"][0]["prompt"], "int main");
  EXPECT_EQ(report["prefill"]["tokens"], 10);
  // The short one is continued while the other is read: only two steps are without a prompt.
  EXPECT_EQ(report["decode"]["tokens"], 2);
  EXPECT_EQ(report["total"]["tokens"], 16);
  EXPECT_EQ(report["steps"], 5);
  EXPECT_THAT(report["runner"].get<std::string>(), HasSubstr("nvfp4 cache, mxfp4 experts"));
}

// Few sequences, small steps, caches for two: every prompt gets what it gets alone.
TEST(GenerateTool, AListOfPromptsWaitsForRoom) {
  const ScopedFolder folder;
  std::ofstream(folder / "list.txt") << "int main\n\n# \r\nfor (\nThe kernel \n";
  write_json(folder / "list.json", {"int main", "# ", "for (", "The kernel "});
  const auto tokens = [&](const std::string& options) {
    const auto run = run_tool("--json generate --device reference --max-tokens 3 " + options);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.parsed()["sequences"];
  };
  const std::string list = "--prompts " + (folder / "list.").string();
  const json together = tokens(list + "txt --sequences 3 --cache-tokens 512 --step-tokens 8");
  ASSERT_EQ(together.size(), 4u);
  EXPECT_EQ(tokens(list + "json"), together);
  json alone = tokens("-p '# '")[0];
  alone["name"] = "prompt 2";
  EXPECT_EQ(alone, together[1]);
  write_json(folder / "bad.json", {1, 2});
  EXPECT_THAT(
      run_tool("generate --device reference --prompts " + (folder / "bad.json").string()).err,
      HasSubstr("expected a JSON array of texts"));
}

// The prompt ends within a character, which the model completes.
TEST(GenerateTool, StreamsACharacterThatThePromptBegins) {
  const auto run =
      run_tool("generate --device reference --max-tokens 1 -q -p \"$(printf 'caf\\303')\"");
  EXPECT_EQ(run.out, "caf\xc3\xa9\n") << run.err;
}

// The bundled model behind a config.json of another value: the option that names it.
std::string changed_model(const ScopedFolder& folder, const char* name, const json& value) {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::directory_iterator(kModel))
    if (entry.path().filename() != "config.json")
      fs::create_symlink(entry.path(), folder / entry.path().filename().string());
  json config = read_json(kModel + "/config.json");
  config[name] = value;
  write_json(folder / "config.json", config);
  return " --model " + folder.path().string();
}

// A model for 16 tokens: a prompt of eleven has six new ones at most, for no step reads the last
// one.
TEST(GenerateTool, MoreTokensThanTheContextEndWithIt) {
  const ScopedFolder folder;
  const std::string changed = changed_model(folder, "max_position_embeddings", 16);
  const std::string command = "--json generate --device reference -p 'The kernel '" + changed;
  const auto within = run_tool(command + " --max-tokens 6");
  EXPECT_EQ(within.parsed()["sequences"][0]["tokens"].size(), 6u);
  EXPECT_EQ(within.err, "");
  for (const char* asked : {"7", "100000", "9223372036854775807"}) {
    const auto run = run_tool(command + " --max-tokens " + asked);
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.parsed()["sequences"][0], within.parsed()["sequences"][0]);
    EXPECT_EQ(run.err, std::string("generate: --max-tokens ") + asked +
                           ": the model's context is 16 tokens, 11 of them a prompt; that text "
                           "ends after 6 new ones at the latest\n");
  }
  const auto longer = run_tool(command.substr(7) + " -p 'a text of 18 bytes' --max-tokens 1");
  EXPECT_EQ(longer.status, 1);
  EXPECT_THAT(longer.err, HasSubstr("generate: prompt 2 has 18 tokens; expected at most 16, the "
                                    "model's context"));
}

// Caches for a million tokens of each of 4096 prompts: there is no such device.
TEST(GenerateTool, TokensThatDoNotFitAreRefusedBeforeTheModelIsLoaded) {
  const ScopedFolder folder;
  std::ofstream list(folder / "list.txt");
  for (int i = 0; i < 4096; ++i) list << "a\n";
  list.close();
  const auto run = run_tool("generate --device sim:h200 --max-tokens 1000000 --prompts " +
                            (folder / "list.txt").string());
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("4096 sequences of 1000001 tokens"));
  EXPECT_THAT(run.err, HasSubstr("What would fit: "));
  EXPECT_THAT(run.err, HasSubstr("those of the longest prompt and of --max-tokens 1000000"));
}

// Simulated ranks as much as one.
TEST(GenerateTool, TokensThatDoNotFitOnRanksAreRefused) {
  const ScopedFolder folder;
  std::ofstream list(folder / "list.txt");
  for (int i = 0; i < 8192; ++i) list << "a\n";
  list.close();
  for (const std::string scheme : {"tensor", "expert"}) {
    const auto run = run_tool("generate --device sim:h200 --gpus 2 --parallel " + scheme +
                              " --max-tokens 1000000 --prompts " + (folder / "list.txt").string());
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr(scheme == "tensor" ? "8192 sequences of 1000001 tokens"
                                                      : "4096 sequences of 1000001 tokens"));
    EXPECT_THAT(run.err, HasSubstr("on each of 2 ranks; the device has 150.1 GB. What would fit"));
  }
}

// The bundled model says of no byte that it ends a text; a copy of its config.json does.
TEST(GenerateTool, EndsAtTheTokenOfTheConfig) {
  const std::string command = "--json generate --device reference --max-tokens 5 -p 'The kernel '";
  const json whole = run_tool(command).parsed()["sequences"][0];
  EXPECT_EQ(whole["has_ended"], false);
  const auto tokens = whole["tokens"].get<std::vector<int>>();
  const int end = tokens[3];
  const auto place = static_cast<std::size_t>(std::ranges::find(tokens, end) - tokens.begin());
  const ScopedFolder folder;
  const std::string changed = changed_model(folder, "eos_token_id", end);
  const json ended = run_tool(command + changed).parsed()["sequences"][0];
  EXPECT_EQ(ended["has_ended"], true);
  EXPECT_EQ(ended["tokens"], std::vector(tokens.begin(), tokens.begin() + place + 1));
  const std::string text = whole["text"].get<std::string>().substr(0, place);
  EXPECT_EQ(ended["text"], text);
  EXPECT_EQ(run_tool(command.substr(7) + changed + " -q").out, "The kernel " + text + "\n");
  EXPECT_EQ(run_tool(command + changed + " --ignore-eos").parsed()["sequences"][0], whole);
}

TEST(GenerateTool, WhatATerminalCannotTakeIsReplaced) {
  const auto run = run_tool(
      "--json generate --device reference --max-tokens 0 "
      "-p \"$(printf 'a\\033[2J\\303\\244\\377\\302')\"");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.parsed()["sequences"][0]["prompt"], "a?[2J\u00e4\ufffd\ufffd");
}

TEST(GenerateTool, TraceFindsTheFirstDifference) {
  const std::string trace = "--device reference --trace " + kGolden;
  const auto run = run_tool("--json generate --kv bf16 --trace-run p144.quant " + trace);
  EXPECT_EQ(run.status, 1);
  const json report = run.parsed()["runs"][0];
  EXPECT_EQ(report["first"]["stage"], "layers.0.lse");
  EXPECT_THAT(report["first"]["where"].get<std::string>(), HasSubstr("position "));
  EXPECT_THAT(report["missing"].dump(), HasSubstr("layers.0.kv_fp8"));
}

TEST(GenerateTool, Errors) {
  const auto none = run_tool("generate --device reference");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("no prompt; expected --prompt TEXT or --prompt-file FILE"));
  const auto run = run_tool("generate --device reference --trace-run p9.exact --trace " + kGolden);
  EXPECT_THAT(run.err, HasSubstr("no run \"p9.exact\"; it has p144.exact, p144.quant"));
  EXPECT_EQ(run_tool("generate -p a --kv int8").status, 2);
  EXPECT_THAT(run_tool("generate -p a --model /nonexistent --device reference").err,
              HasSubstr("/nonexistent/config.json"));
  EXPECT_THAT(run_tool("generate -p a --top-p 0 --device reference").err, HasSubstr("top_p = 0"));
}

TEST(GenerateTool, SimulatedRanksWriteWhatOneWrites) {
  const auto tokens = [](const std::string& ranks) {
    const auto run =
        run_tool("--json --device sim:h200 generate -p a -p '#' --max-tokens 2" + ranks);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.parsed()["sequences"];
  };
  const json alone = tokens("");
  EXPECT_EQ(tokens(" --gpus 2 --parallel expert"), alone);
  EXPECT_EQ(tokens(" --gpus 2"), alone);
}

// Processes that all fail, as they find no such GPU: within seconds, with their reason.
// Ranks open the draft layer, too. Every token has all experts: last bits of sums decide nothing.
TEST(GenerateTool, DraftsOnRanks) {
  const model::RandomCheckpoint checkpoint({.heads = 4, .vocab = 256, .ratios = {4}, .drafts = 1});
  const auto tokens = [&](const std::string& ranks) {
    const Outcome outcome = run_tool(
        "--device sim:h200 --json generate --model " + checkpoint.folder().string() +
        " -p ab -p xyz --max-tokens 3 --draft --cache-tokens 512 --temperature 1 " + ranks);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<std::vector<int>> all;
    for (const auto& sequence : outcome.parsed()["sequences"]) all.push_back(sequence["tokens"]);
    return all;
  };
  const auto one = tokens("");
  EXPECT_EQ(tokens("--gpus 2 --parallel expert"), one);
  EXPECT_EQ(tokens("--gpus 2 --parallel tensor"), one);
}

TEST(GenerateTool, RanksThatFailEndAll) {
  const auto begin = std::chrono::steady_clock::now();
  const auto run = run_tool("generate -p a --gpus 3 --device cuda", "CUDA_VISIBLE_DEVICES=''");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("no usable GPU"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(GenerateTool, RanksThatCannotBe) {
  const auto err = [](const std::string& arguments, const std::string& variables = "") {
    const auto run = run_tool("generate -p a " + arguments, variables);
    EXPECT_NE(run.status, 0);
    return run.err;
  };
  EXPECT_THAT(err("--gpus 2 --device reference"), HasSubstr("runs on one rank; leave it out"));
  EXPECT_THAT(err("--gpus 2 --device cuda:0"), HasSubstr("say --device cuda"));
  EXPECT_THAT(err("--gpus 4 --device sim:h200"),
              HasSubstr("4 ranks cannot split the tensors of this model (o_groups 2,"));
  EXPECT_THAT(err("--gpus 9 --parallel expert --device sim:h200"),
              HasSubstr("9 ranks share 8 experts; expected at most as many"));
  EXPECT_THAT(err("--gpus 2", "RANK=0 WORLD_SIZE=4"),
              HasSubstr("--gpus 2: torchrun has started 4 processes"));
  EXPECT_THAT(err("--parallel expert", "RANK=7 WORLD_SIZE=4"),
              HasSubstr("expected a rank from 0 to 3"));
  EXPECT_THAT(err("--gpus 2 --device sim:h200 --trace " + kGolden),
              HasSubstr("--trace compares the stages of one rank"));
}

TEST(EvalTool, BitsPerByteOfEveryChunk) {
  const auto run = run_tool(
      "--json eval --device reference --chunk 48 --chunks 2 --batch 2 "
      "--first-chunk 1 --kl " +
      kModel + "/heldout.txt");
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = run.parsed();
  ASSERT_EQ(report["chunks"].size(), 2u);
  EXPECT_EQ(report["chunks"][0]["chunk"], 1);
  EXPECT_EQ(report["chunks"][0]["tokens"], 48);
  EXPECT_EQ(report["chunks"][0]["bytes"], 48);
  EXPECT_EQ(report["chunks_in_file"], 341);
  const double bits = report["bits_per_byte"];
  EXPECT_GT(bits, 0.2);
  EXPECT_LT(bits, 6);
  EXPECT_NEAR(bits,
              (report["chunks"][0]["bits_per_byte"].get<double>() +
               report["chunks"][1]["bits_per_byte"].get<double>()) /
                  2,
              1e-12);
  EXPECT_GT(report["kl_nats"].get<double>(), 0);
  EXPECT_LT(report["kl_nats"].get<double>(), 0.01);
  const auto text = run_tool("eval --device reference --chunk 16 --chunks 1 --kv exact " + kModel +
                             "/prompt.txt");
  EXPECT_THAT(text.out, HasSubstr("bits per byte"));
  EXPECT_THAT(text.out, HasSubstr("1 of 12 chunks"));
}

TEST(EvalTool, SimulatedRanksScoreAsOne) {
  const auto chunks = [](const std::string& ranks) {
    const auto run = run_tool("--json --device sim:h200 eval --chunk 3 --chunks 2 --batch 2 " +
                              kModel + "/prompt.txt" + ranks);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.parsed()["chunks"];
  };
  EXPECT_EQ(chunks(" --gpus 2 --parallel expert"), chunks(""));
}

TEST(EvalTool, Errors) {
  EXPECT_THAT(run_tool("eval --kl --gpus 2 --device sim:h200 " + kModel + "/prompt.txt").err,
              HasSubstr("--kl: the float64 model takes longer than ranks wait for each other"));
  EXPECT_THAT(run_tool("eval --device reference --chunk 4096 " + kModel + "/prompt.txt").err,
              HasSubstr("has 200 tokens, 0 whole chunks of 4096"));
}

}  // namespace
}  // namespace tilewright
