// A model on several ranks: threads on a simulated device, against the float64 runner with the
// bound of one rank, and against one rank.
#include "base/error.h"
#include "comm/thread_group.h"
#include "model/checkpoint/make_checkpoint.h"
#include "model/checkpoint/synthetic.h"
#include "model/float64/reference_runner.h"
#include "model/kernel_runner/ranked_runner.h"
#include "model/text/generate.h"
#include "tests/model/checkpoint/narrow.h"
#include "tests/model/random_checkpoint.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>

namespace tilewright::model {
namespace {

using Tokens = std::vector<std::vector<std::int32_t>>;

class RanksTest : public HopperTest<RanksTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, RanksTest, ::testing::Values("sim:h200"));

std::vector<std::int32_t> some_text(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = first; i < first + count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + i * 3 + i / 5) % 32));
  return tokens;
}

// As kernel_runner_test.cpp has it for one rank, with the reasons: ranks round what they sum in
// fp32, in another order, and nothing else differs.
constexpr double kMostKl = 1e-3;

using SharedWeights = std::shared_ptr<const Weights>;

SharedWeights share_of_rank(const RandomCheckpoint& checkpoint, const Share& share) {
  return std::make_shared<Weights>(checkpoint.folder(), WeightsOptions{.share = share});
}

std::vector<SharedWeights> shares(const RandomCheckpoint& checkpoint, Scheme scheme, int size) {
  std::vector<SharedWeights> all;
  for (int rank = 0; rank < size; ++rank)
    all.push_back(share_of_rank(checkpoint, {scheme, rank, size}));
  return all;
}

struct Ranks {
  Ranks(const Device& device, const RandomCheckpoint& checkpoint, Scheme scheme, int size = 2)
      : ranks(make_ranked_runner(device, shares(checkpoint, scheme, size), {.max_tokens = 64})),
        exact(make_reference_runner(std::make_shared<Weights>(checkpoint.folder()),
                                    {.max_tokens = 64})) {}

  void start(std::int64_t sequences) {
    ranks->start(sequences);
    exact->start(sequences);
  }
  double kl(const Tokens& tokens, LogitRows rows) {
    return mean_kl(exact->forward(tokens, rows), ranks->forward(tokens, rows));
  }

  std::unique_ptr<Runner> ranks, exact;
};

// Prompts in chunks, a rank without tokens, decode steps: launched, recorded, replayed.
TEST_P(RanksTest, ExpertsAreDivided) {
  const RandomCheckpoint checkpoint({.experts = 4, .ratios = {0, 4}});
  Ranks model(*device_, checkpoint, Scheme::kExpertParallel);
  model.start(3);  // rank 0 has one, rank 1 has two
  EXPECT_LT(model.kl({some_text(0, 5), some_text(40, 3), {}}, LogitRows::kAll), kMostKl);
  EXPECT_LT(model.kl({{}, {}, some_text(70, 2)}, LogitRows::kAll), kMostKl);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_LT(model.kl({some_text(5 + i, 1), {}, some_text(72 + i, 1)}, LogitRows::kLast), kMostKl);
}

TEST_P(RanksTest, MoreRanksThanSequences) {
  const RandomCheckpoint checkpoint({.experts = 4, .ratios = {4}});
  Ranks model(*device_, checkpoint, Scheme::kExpertParallel, 3);  // one has two experts
  model.start(1);
  EXPECT_LT(model.kl({some_text(0, 5)}, LogitRows::kLast), kMostKl);
}

// A token of each of two ranks: both keep the streams of both, and add up what attention and the
// experts give. `has_bits_of_one`: a token's two experts, and its shared one, are added as on one.
void expect_streams_of_all(const Device& device, const RandomCheckpoint& checkpoint,
                           std::int64_t steps, bool has_bits_of_one) {
  const RunnerOptions options = {.max_tokens = 16};
  const SharedWeights whole = share_of_rank(checkpoint, {});
  const auto ranks =
      make_ranked_runner(device, shares(checkpoint, Scheme::kExpertParallel, 2), options);
  const auto alone = make_kernel_runner(device, whole, options);
  const auto exact = make_reference_runner(whole, options);
  for (Runner* runner : {ranks.get(), alone.get(), exact.get()}) runner->start(2);
  for (std::int64_t i = 0; i < steps; ++i) {  // launched, recorded, replayed; then a rank is idle
    const Tokens tokens = {some_text(i, 1), some_text(9 + i, i == 3 ? 0 : 1)};
    const Logits got = ranks->forward(tokens, LogitRows::kLast);
    EXPECT_LT(mean_kl(exact->forward(tokens, LogitRows::kLast), got), kMostKl) << i;
    const Logits want = alone->forward(tokens, LogitRows::kLast);
    if (has_bits_of_one) {
      EXPECT_EQ(got.values, want.values) << i;
    }
  }
}

TEST_P(RanksTest, StreamsOfFewTokensAreOnAllRanks) {
  expect_streams_of_all(*device_, RandomCheckpoint({.experts = 4, .ratios = {0, 4}}), 4, true);
}

// Wide enough for connections that multiply with the router, in which the order of sums is another.
TEST_P(RanksTest, StreamsOfFewTokensAreOnAllRanksWithTheRouter) {
  expect_streams_of_all(
      *device_,
      RandomCheckpoint({.hidden = 2048, .experts = 4, .inter = 32, .vocab = 32, .ratios = {0}}), 2,
      false);
}

TEST_P(RanksTest, HeadsAreDivided) {
  // Parts of the head that are filled up: 24 rows.
  const RandomCheckpoint checkpoint({.heads = 4, .vocab = 48, .ratios = {0, 4}});
  Ranks model(*device_, checkpoint, Scheme::kTensorParallel);
  model.start(2);
  EXPECT_LT(model.kl({some_text(0, 5), some_text(40, 3)}, LogitRows::kAll), kMostKl);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_LT(model.kl({some_text(5 + i, 1), {}}, LogitRows::kLast), kMostKl);
}

// Blocks of scales stay whole: FP8 in 128 x 128, MXFP4 experts.
TEST_P(RanksTest, QuantisedWeightsAreDivided) {
  Config config = narrow_config();
  config.layers = {LayerKind::kCsa};
  config.inter = 256;
  const ScopedFolder folder;
  make_checkpoint(folder.path(), {.config = config});
  const auto exact = make_reference_runner(std::make_shared<Weights>(folder.path()), {});
  const Tokens tokens = {some_text(0, 5), some_text(40, 3)};
  exact->start(2);
  const Logits want = exact->forward(tokens, LogitRows::kAll);
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    std::vector<SharedWeights> weights;
    for (int rank = 0; rank < 2; ++rank)
      weights.push_back(
          std::make_shared<Weights>(folder.path(), WeightsOptions{.share = {scheme, rank, 2}}));
    const auto ranks = make_ranked_runner(*device_, weights, {.max_tokens = 16});
    ranks->start(2);
    EXPECT_LT(mean_kl(want, ranks->forward(tokens, LogitRows::kAll)), kMostKl) << to_string(scheme);
  }
}

TEST_P(RanksTest, SyntheticWeightsAreDivided) {
  Config config = narrow_config();
  config.layers = {LayerKind::kWindow};
  config.inter = 256;
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    std::vector<SharedWeights> weights;
    for (int rank = 0; rank < 2; ++rank)
      weights.push_back(synthetic_weights({.config = config, .share = {scheme, rank, 2}}));
    const auto ranks = make_ranked_runner(*device_, weights, {.max_tokens = 16});
    ranks->start(1);
    const Logits logits = ranks->forward(Tokens{some_text(0, 3)}, LogitRows::kAll);
    ASSERT_EQ(logits.rows(), 3);
    for (const double x : logits.values) ASSERT_TRUE(std::isfinite(x));
    const auto [least, most] = std::ranges::minmax(logits.values);
    EXPECT_LT(least, most);
  }
}

// Passes everything on, but for what draws on the device: so the host draws from the logits.
class HostDraws : public Runner {
 public:
  explicit HostDraws(Runner& runner) : runner_(runner) {}
  const Config& config() const override { return runner_.config(); }
  std::string description() const override { return runner_.description(); }
  RunnerLimits limits() const override { return runner_.limits(); }
  void start(std::int64_t count) override { runner_.start(count); }
  bool begin(std::int64_t sequence, std::int64_t tokens) override {
    return runner_.begin(sequence, tokens);
  }
  void end(std::int64_t sequence) override { runner_.end(sequence); }
  void take_back(std::int64_t sequence, std::int64_t tokens) override {
    runner_.take_back(sequence, tokens);
  }
  Logits run(std::span<const std::vector<std::int32_t>> tokens,
             std::span<const std::int64_t> rows) override {
    return runner_.run(tokens, rows);
  }
  Logits draft(std::span<const std::vector<std::int32_t>> next,
               std::span<const std::int64_t> rows) override {
    return runner_.draft(next, rows);
  }

 private:
  Runner& runner_;
};

// Batches with a pool for each rank, drafts and samplers: the texts of one rank, whether the ranks
// draw or the host does. Every token has all experts, so that last bits of sums decide nothing.
TEST_P(RanksTest, BatchesGetTheTextsOfOneRank) {
  const RandomCheckpoint checkpoint({.heads = 4, .vocab = 48, .ratios = {4}, .drafts = 1});
  const auto open = [&](const Share& share) {
    return std::make_shared<const Weights>(checkpoint.folder(),
                                           WeightsOptions{.share = share, .has_drafts = true});
  };
  const RunnerOptions options = {
      .max_tokens = 32, .cache_tokens = 2 * kCacheBlock, .has_draft = true};
  const auto texts = [](Runner& runner) {
    const GenerateOptions how = {.sampler = {.temperature = 1, .top_p = 0.9, .seed = 5},
                                 .max_tokens = 3,
                                 .ends = {},
                                 .sequences = 2,
                                 .has_draft = true};
    const Tokens prompts = {some_text(0, 5), some_text(40, 3), some_text(70, 2)};
    return generate(runner, prompts, how).tokens;
  };
  const auto one = make_kernel_runner(*device_, open({}), options);
  const auto want = texts(*one);
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    const auto ranks =
        make_ranked_runner(*device_, {open({scheme, 0, 2}), open({scheme, 1, 2})}, options);
    EXPECT_EQ(ranks->limits().groups, scheme == Scheme::kExpertParallel ? 2 : 1);
    EXPECT_EQ(texts(*ranks), want) << to_string(scheme);
    HostDraws on_host(*ranks);
    EXPECT_EQ(texts(on_host), want) << to_string(scheme);
  }
}

// Sums are in the order of the ranks: every rank has the same bits, and every run. Where experts
// are divided and a token has two, these are the bits of one rank: the same two numbers are added.
TEST_P(RanksTest, SameBits) {
  const RandomCheckpoint checkpoint({.experts = 4, .ratios = {4}});
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    std::vector<std::vector<double>> of_ranks(2);
    comm::ThreadGroup group(2);
    group.run([&](int rank) {
      const auto runner = make_kernel_runner(*device_, share_of_rank(checkpoint, {scheme, rank, 2}),
                                             {.max_tokens = 16}, {}, group.join(rank, *device_));
      runner->start(2);
      const Tokens tokens = {some_text(0, 3), some_text(9, 2)};
      of_ranks[comm::rank_idx(rank)] = runner->forward(tokens, LogitRows::kAll).values;
    });
    EXPECT_EQ(of_ranks[0].size(), 5U * 32);
    EXPECT_EQ(of_ranks[0], of_ranks[1]);
    if (scheme == Scheme::kTensorParallel) continue;
    const auto alone =
        make_kernel_runner(*device_, share_of_rank(checkpoint, {}), {.max_tokens = 16});
    alone->start(2);
    EXPECT_EQ(alone->forward(Tokens{some_text(0, 3), some_text(9, 2)}, LogitRows::kAll).values,
              of_ranks[0]);
  }
}

// Before each layer, and when all are there: of the whole model, and of a rank's share of it.
TEST_P(RanksTest, LoadingTellsHowFarItIs) {
  const RandomCheckpoint checkpoint({.heads = 4, .experts = 4, .ratios = {0, 4, 128}, .drafts = 1});
  for (const Share& share :
       {Share{}, Share{Scheme::kExpertParallel, 1, 2}, Share{Scheme::kTensorParallel, 1, 2}}) {
    const Weights weights(checkpoint.folder(), {.share = share, .has_drafts = true});
    std::vector<std::int64_t> layers;
    const ModelArrays arrays(
        *device_, weights, [&](std::int64_t done) { layers.push_back(done); }, true);
    EXPECT_EQ(layers, (std::vector<std::int64_t>{0, 1, 2, 3})) << to_string(share.scheme);
    EXPECT_EQ(arrays.num_layers(), 4) << "the draft layer is there with the last";
  }
  std::vector<std::int64_t> layers;
  make_ranked_runner(*device_, shares(checkpoint, Scheme::kTensorParallel, 2),
                     {.max_tokens = 8, .on_load = [&](std::int64_t n) { layers.push_back(n); }});
  EXPECT_EQ(layers, (std::vector<std::int64_t>{0, 1, 2, 3})) << "one rank tells, for all";
}

// A rank that fails in the middle of a step ends the others, who wait for it in an exchange.
TEST_P(RanksTest, ARankThatFailsEndsAll) {
  const RandomCheckpoint checkpoint({.ratios = {0, 4}});
  const auto begin = std::chrono::steady_clock::now();
  std::string of_rank_0, of_all;
  comm::ThreadGroup group(2);
  try {
    group.run([&](int rank) {
      const Share share = {Scheme::kTensorParallel, rank, 2};
      const auto runner = make_kernel_runner(*device_, share_of_rank(checkpoint, share),
                                             {.max_tokens = 16}, {}, group.join(rank, *device_));
      runner->set_stage_sink([&](const Stage& stage) {
        if (rank == 1 && stage.layer == 1) throw std::runtime_error("planted");
      });
      runner->start(1);
      try {
        runner->forward(Tokens{some_text(0, 2)}, LogitRows::kLast);
      } catch (const Error& error) {
        if (rank == 0) of_rank_0 = error.what();
        throw;
      }
    });
  } catch (const std::exception& error) {
    of_all = error.what();
  }
  EXPECT_EQ(of_rank_0, "rank 1 of 2 failed: planted");
  EXPECT_EQ(of_all, "planted");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_P(RanksTest, SaysWhatCannotBe) {
  const RandomCheckpoint checkpoint({.experts = 4, .ratios = {0}});
  reference::expect_invalid([&] { shares(checkpoint, Scheme::kExpertParallel, 5); },
                            {"5 ranks share 4 experts"});
  reference::expect_invalid([&] { make_ranked_runner(*device_, {}, {.max_tokens = 8}); },
                            {"0 threads", "from 1 to 64"});
  const auto of_ranks = shares(checkpoint, Scheme::kExpertParallel, 2);
  reference::expect_invalid([&] { make_kernel_runner(*device_, of_ranks[1], {.max_tokens = 8}); },
                            {"the weights are those of rank 1 of 2, the runner is rank 0 of 1"});
  reference::expect_invalid(
      [&] {
        make_ranked_runner(*device_, {of_ranks[1], of_ranks[0]}, {.max_tokens = 8});
      },
      {"the weights are those of rank 1 of 2, the runner is rank 0 of 2"});
  const auto runner = make_ranked_runner(*device_, of_ranks, {.max_tokens = 8});
  EXPECT_THAT(runner->description(),
              ::testing::HasSubstr("expert parallel: rank 0 of 2 in one process"));
  runner->start(1);
  runner->set_stage_sink([](const Stage&) {});
  EXPECT_THROW(runner->forward(Tokens{some_text(0, 1)}, LogitRows::kLast), Error);
}

}  // namespace
}  // namespace tilewright::model
