// Llm on one rank and on several, and what ranks that are programs of their own agree on.
#include "tilewright/llm.h"

#include "base/error.h"
#include "comm/thread_group.h"
#include "model/kernel_runner/make.h"
#include "model/text/ranked_batch.h"
#include "tests/base/scoped_env.h"
#include "tests/model/random_checkpoint.h"
#include "tests/model/tiny.h"
#include "tests/ops/operator_test.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <latch>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tilewright {
namespace {

using Tokens = std::vector<std::int32_t>;

class LlmTest : public HopperTest<LlmTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, LlmTest, ::testing::Values("sim:h200"));

// Every token has all experts, so that last bits of sums decide nothing.
const model::CheckpointSizes kSizes = {.heads = 4, .vocab = 48, .ratios = {4}};

LlmOptions small_options(std::int64_t gpus = 0, const std::string& parallel = "") {
  return {.device = "sim:h200",
          .max_tokens = 32,
          .sequences = 2,
          .cache_tokens = 512,
          .gpus = gpus,
          .parallel = parallel};
}

struct Text {
  Tokens tokens = {};
  LlmFinish finish = LlmFinish::kNone;
  bool operator==(const Text&) const = default;
};
void PrintTo(const Text& text, std::ostream* out) {
  *out << ::testing::PrintToString(text.tokens) << " " << static_cast<int>(text.finish);
}
using Texts = std::map<std::int64_t, Text>;

// A prompt that comes while others run, one that is cancelled, two sequences for four prompts.
Texts arrivals_and_a_cancellation(Llm& llm) {
  const LlmSampling sampling = {.temperature = 1, .top_p = 0.9, .seed = 5, .max_tokens = 3};
  llm.add(Tokens{1, 2, 3, 4, 5}, sampling);
  llm.add(Tokens{7, 8}, {.max_tokens = 12});
  llm.add(Tokens{9}, sampling);
  Texts texts;
  for (std::int64_t count = 0; const auto next = llm.next(); ++count) {
    Text& text = texts[next->request];
    if (next->token >= 0) text.tokens.push_back(next->token);
    text.finish = next->finish;
    if (count == 2) llm.add(Tokens{11, 12, 13}, {.max_tokens = 2});
    if (count != 3) continue;
    EXPECT_TRUE(llm.cancel(1));
    EXPECT_FALSE(llm.cancel(1));
  }
  EXPECT_LT(texts[1].tokens.size(), 12U);
  EXPECT_EQ(texts[1].finish, LlmFinish::kNone);
  return texts;
}

TEST_P(LlmTest, RanksGiveTheTextsOfOne) {
  const model::RandomCheckpoint checkpoint(kSizes);
  Llm one = Llm::open(checkpoint.folder(), small_options());
  const Texts want = arrivals_and_a_cancellation(one);
  EXPECT_EQ(want.at(0).finish, LlmFinish::kLength);
  EXPECT_EQ(want.at(3).tokens.size(), 2U);
  for (const char* parallel : {"tensor", "expert", ""}) {
    Llm ranks = Llm::open(checkpoint.folder(), small_options(2, parallel));
    EXPECT_THAT(ranks.description(), ::testing::HasSubstr("rank 0 of 2 in one process"));
    EXPECT_THAT(ranks.description(),
                ::testing::HasSubstr(*parallel == 'e' ? "expert parallel" : "tensor parallel"));
    EXPECT_EQ(arrivals_and_a_cancellation(ranks), want) << parallel;
    EXPECT_EQ(ranks.counts().new_tokens, one.counts().new_tokens);
  }
}

// Drawn so hot that the likeliest token is one of 48; of min_p = 1 nothing else is left.
TEST_P(LlmTest, MinPLeavesTheLikeliest) {
  const model::RandomCheckpoint checkpoint(kSizes);
  for (const std::string& device : {std::string("reference"), device_->spec()}) {
    LlmOptions options = small_options();
    options.device = device;
    Llm llm = Llm::open(checkpoint.folder(), options);
    const auto text = [&](const LlmSampling& sampling) {
      llm.add(Tokens{1, 2, 3}, sampling);
      Tokens tokens;
      while (const auto next = llm.next()) tokens.push_back(next->token);
      return tokens;
    };
    const Tokens likeliest = text({.max_tokens = 6});
    EXPECT_NE(text({.temperature = 1000, .max_tokens = 6}), likeliest) << device;
    EXPECT_EQ(text({.temperature = 1000, .max_tokens = 6, .min_p = 1}), likeliest) << device;
    for (const double min_p : {-0.1, 1.5, std::nan("")})
      reference::expect_invalid([&] { llm.add(Tokens{1}, {.min_p = min_p}); },
                                {fmt::format("min_p = {}", min_p), "from 0", "to 1"});
  }
}

void expect_refused(const std::filesystem::path& folder, const LlmOptions& options,
                    const std::vector<std::string>& words) {
  reference::expect_invalid([&] { Llm::open(folder, options); }, words);
}

TEST(Llm, SaysWhichRanksCannotBe) {
  const model::RandomCheckpoint checkpoint(kSizes);
  const auto& folder = checkpoint.folder();
  expect_refused(folder, small_options(3), {"3 ranks cannot split the tensors", "o_groups 2"});
  expect_refused(folder, small_options(3, "expert"), {"3 ranks share 2 experts"});
  expect_refused(folder, small_options(-1), {"llm: gpus = -1; expected 1 to 64"});
  expect_refused(folder, small_options(65), {"llm: gpus = 65; expected 1 to 64"});
  expect_refused(folder, small_options(2, "heads"), {"parallel = \"heads\"", "tensor, expert"});
  LlmOptions options = small_options(2);
  options.device = "reference";
  expect_refused(folder, options, {"llm: gpus = 2", "runs on one rank; leave it out"});
  for (const char* device : {"cuda", "cuda:0"}) {
    options.device = device;
    const std::string where = std::string("llm: gpus = 2 on ") + device;
    expect_refused(folder, options, {where, "no launcher", "torchrun --nproc-per-node 2"});
  }
  const ScopedEnv from_environment("TILEWRIGHT_DEVICE", "cuda");
  options.device = "";
  expect_refused(folder, options, {"llm: gpus = 2 on cuda", "torchrun"});
}

TEST(Llm, OneProcessOfALauncherIsNotTwo) {
  const ScopedEnv rank("RANK", "0"), size("WORLD_SIZE", "1");
  LlmOptions options = {.device = "cuda", .gpus = 2};
  expect_refused(model::kTinyModel, options, {"gpus = 2 on cuda", "torchrun has started one"});
}

// What a launcher says counts only where ranks are asked for.
TEST(Llm, ProcessesOfALauncher) {
  const ScopedEnv rank("RANK", "0"), size("WORLD_SIZE", "4");
  LlmOptions options = {.device = "reference", .max_tokens = 16};
  Llm alone = Llm::open(model::kTinyModel, options);
  alone.add(Tokens{'a'}, {.max_tokens = 1});
  EXPECT_TRUE(alone.next());
  options.parallel = "tensor";
  expect_refused(model::kTinyModel, options, {"runs on one rank, and torchrun has started 4"});
  options.device = "cuda";
  options.gpus = 2;
  expect_refused(model::kTinyModel, options, {"llm: gpus = 2: torchrun has started 4 processes"});
}

}  // namespace

namespace model {
namespace {

using Events = std::vector<BatchEvent>;

// The batch of one of two ranks, each a thread with a program of its own.
class RankedBatchTest : public HopperTest<RankedBatchTest, false> {
 protected:
  using Program = std::function<void(int rank, RankedBatch& batch)>;
  /// What the ranks end with: sentences, or nothing.
  std::vector<std::string> run(const Program& program, std::int64_t rank_1_sequences = 2) {
    const RandomCheckpoint checkpoint(kSizes);
    comm::ThreadGroup group(2);
    std::vector<std::string> ends(2);
    const auto run_rank = [&](int rank) {
      const Share share = {Scheme::kTensorParallel, rank, 2};
      const auto weights =
          std::make_shared<Weights>(checkpoint.folder(), WeightsOptions{.share = share});
      const std::shared_ptr<comm::Communicator> comm = group.join(rank, *device_);
      const auto runner = make_kernel_runner(*device_, weights, {.max_tokens = 16}, {}, comm);
      RankedBatch batch(*runner, {.sequences = rank == 0 ? 2 : rank_1_sequences},
                        std::make_unique<Agreement>(*device_, comm));
      program(rank, batch);
    };
    try {
      group.run([&](int rank) {
        try {
          run_rank(rank);
        } catch (const std::exception& error) {
          ends[comm::rank_idx(rank)] = error.what();
          throw;
        }
      });
    } catch (const std::exception&) {
    }
    return ends;
  }
};
INSTANTIATE_TEST_SUITE_P(SimTest, RankedBatchTest, ::testing::Values("sim:h200"));

struct Got {
  Tokens tokens = {};
  std::optional<FinishReason> finish = {};
  bool operator==(const Got&) const = default;
};
void PrintTo(const Got& got, std::ostream* out) {
  *out << ::testing::PrintToString(got.tokens) << (got.finish ? " finished" : "");
}

void receive(const Events& events, std::map<std::int64_t, Got>& got) {
  for (const BatchEvent& event : events) {
    Got& one = got[event.request];
    one.tokens.insert(one.tokens.end(), event.tokens.begin(), event.tokens.end());
    one.finish = event.finish;
  }
}

TEST_P(RankedBatchTest, AllGetTheSameAndACancellationIsOfAll) {
  std::vector<std::map<std::int64_t, Got>> got(2);
  const auto ends = run([&](int rank, RankedBatch& batch) {
    auto& mine = got[comm::rank_idx(rank)];
    for (std::int32_t i = 0; i < 3; ++i) batch.add({.prompt = {i, 4}, .max_tokens = 4});
    receive(batch.step(), mine);
    if (rank == 1) {
      EXPECT_TRUE(batch.cancel(0));  // runs
      EXPECT_FALSE(batch.cancel(0));
      EXPECT_TRUE(batch.cancel(2));  // waits
    }
    EXPECT_FALSE(batch.cancel(3));
    batch.add({.prompt = {7}, .max_tokens = 2});
    while (!batch.is_idle()) receive(batch.step(), mine);
    EXPECT_FALSE(batch.cancel(0));
  });
  EXPECT_THAT(ends, ::testing::Each(""));
  for (const std::int64_t request : {1, 3}) {
    EXPECT_EQ(got[0][request], got[1][request]);
    EXPECT_EQ(got[0][request].finish, FinishReason::kLength);
  }
  EXPECT_EQ(got[0][0].tokens, got[1][0].tokens);
  for (const std::int64_t request : {0, 2}) {
    EXPECT_EQ(got[0][request].finish, FinishReason::kCancelled);
    EXPECT_LE(got[0][request].tokens.size(), 1U);
    EXPECT_EQ(got[1][request].finish, std::nullopt);
  }
}

// More than one meeting has room for, some of them on both ranks, and nothing is left to do.
TEST_P(RankedBatchTest, ManyCancellations) {
  std::vector<std::map<std::int64_t, Got>> got(2);
  const auto ends = run([&](int rank, RankedBatch& batch) {
    for (std::int32_t i = 0; i < 40; ++i) batch.add({.prompt = {i}, .max_tokens = 4});
    const std::int64_t first = rank == 0 ? 0 : 15, end = rank == 0 ? 30 : 40;
    for (std::int64_t i = first; i < end; ++i) EXPECT_TRUE(batch.cancel(i));
    receive(batch.step(), got[comm::rank_idx(rank)]);
    EXPECT_TRUE(batch.is_idle());
  });
  EXPECT_THAT(ends, ::testing::Each(""));
  EXPECT_EQ(got[0].size(), 10U);  // 30 to 39
  EXPECT_EQ(got[1].size(), 15U);  // 0 to 14
  for (const auto& [request, one] : got[0]) EXPECT_EQ(one, (Got{{}, FinishReason::kCancelled}));
}

TEST_P(RankedBatchTest, SaysThatRanksWereGivenOtherThings) {
  const auto differ = [&](BatchRequest of_rank_1, int more = 0) {
    return run([&](int rank, RankedBatch& batch) {
      batch.add(rank == 0 ? BatchRequest{.prompt = {1, 2}} : of_rank_1);
      for (int i = 0; i < more * rank; ++i) batch.add({.prompt = {3}});
      batch.step();
    });
  };
  const auto other = ::testing::Each(::testing::HasSubstr(
      "rank 1 of 2 was given other options, prompts or sampling than rank 0 (1 prompts so far)"));
  EXPECT_THAT(differ({.prompt = {1, 3}}), other);
  EXPECT_THAT(differ({.prompt = {1, 2}, .max_tokens = 3}), other);
  EXPECT_THAT(differ({.prompt = {1, 2}, .sampler = {.temperature = 0.5}}), other);
  EXPECT_THAT(differ({.prompt = {1, 2}, .sampler = {.min_p = 0.5}}), other);
  EXPECT_THAT(differ({.prompt = {1, 2}, .ends = {5}}), other);
  EXPECT_THAT(differ({.prompt = {1, 2}}, 2),
              ::testing::Each(::testing::HasSubstr(
                  "rank 1 of 2 was given 3 prompts so far, rank 0 1; expected the same ones")));
  const auto options = run(
      [&](int, RankedBatch& batch) {
        batch.add({.prompt = {1, 2}});
        batch.step();
      },
      3);
  EXPECT_THAT(options, other);
}

// Whoever finds out first: the second time as well, when a failure would have been told.
TEST_P(RankedBatchTest, WhatDiffersIsTheSameErrorOnAllRanks) {
  std::vector<std::vector<std::string>> said(2);
  std::latch both(2);
  const auto ends = run([&](int rank, RankedBatch& batch) {
    batch.add({.prompt = {1, rank}});
    for (int times = 0; times < 2; ++times) {
      try {
        batch.step();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
        said[comm::rank_idx(rank)].emplace_back(error.what());
      }
    }
    both.arrive_and_wait();
  });
  EXPECT_THAT(ends, ::testing::Each(""));
  EXPECT_THAT(said[0], ::testing::SizeIs(2));
  EXPECT_THAT(said[0],
              ::testing::Each(::testing::StartsWith("ranks: rank 1 of 2 was given other")));
  EXPECT_EQ(said[0], said[1]);
}

// One that fails between its steps is not waited for.
TEST_P(RankedBatchTest, ARankThatEndsIsNotWaitedFor) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ends = run([&](int rank, RankedBatch& batch) {
    batch.add({.prompt = {1, 2}, .max_tokens = 4});
    batch.step();
    if (rank == 1) fail(ErrorKind::kInvalidArgument, "planted");
    while (!batch.is_idle()) batch.step();
  });
  EXPECT_EQ(ends[1], "planted");
  EXPECT_THAT(ends[0], ::testing::HasSubstr("rank 1 of 2 "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
}  // namespace model
}  // namespace tilewright
