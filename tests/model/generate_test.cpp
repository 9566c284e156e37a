// Generation over a model that counts: after token t comes t + 1, modulo ten.
#include "model/text/generate.h"

#include <gtest/gtest.h>

namespace tilewright::model {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

class CountingRunner : public Runner {
 public:
  CountingRunner() { config_.vocab = 10; }
  const Config& config() const override { return config_; }
  std::string description() const override { return "counts"; }
  RunnerLimits limits() const override { return {.max_tokens = 64, .step_tokens = 64}; }
  void start(std::int64_t) override { calls.clear(); }
  bool begin(std::int64_t, std::int64_t) override { return true; }
  void end(std::int64_t) override {}
  void take_back(std::int64_t, std::int64_t) override {}
  Logits run(std::span<const std::vector<std::int32_t>> tokens,
             std::span<const std::int64_t> logit_rows) override {
    calls.emplace_back(tokens.begin(), tokens.end());
    Logits logits{.vocab = config_.vocab, .values = {}};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto& list = tokens[i];
      if (logit_rows[i] == 0) continue;
      std::vector<double> row(10, 0.0);
      row[static_cast<std::size_t>((list.back() + 1) % 10)] = 1;
      logits.values.insert(logits.values.end(), row.begin(), row.end());
    }
    return logits;
  }

  std::vector<Lists> calls;

 private:
  Config config_;
};

GenerateOptions options_with(std::vector<std::int32_t> ends) {
  GenerateOptions options;
  options.max_tokens = 4;
  options.ends = std::move(ends);
  return options;
}

TEST(Generate, GoesOnToTheLastTokenWithoutAnEnd) {
  CountingRunner runner;
  const auto result = generate(runner, Lists{{1, 1}, {5}}, options_with({}));
  EXPECT_EQ(result.tokens, (Lists{{2, 3, 4, 5}, {6, 7, 8, 9}}));
  EXPECT_EQ(result.has_ended, std::vector<bool>(2, false));
  EXPECT_EQ(result.counts.new_tokens, 8);
}

TEST(Generate, ASequenceThatHasEndedWaitsForTheOthers) {
  CountingRunner runner;
  Lists told(2);
  const auto result = generate(runner, Lists{{1}, {5}}, options_with({3, 0}),
                               [&](std::int64_t sequence, std::int32_t token) {
                                 told[static_cast<std::size_t>(sequence)].push_back(token);
                               });
  EXPECT_EQ(result.tokens, (Lists{{2, 3}, {6, 7, 8, 9}}));
  EXPECT_EQ(told, result.tokens);
  EXPECT_EQ(result.has_ended, (std::vector<bool>{true, false}));
  EXPECT_EQ(result.counts.new_tokens, 6);
  EXPECT_EQ(runner.calls, (std::vector<Lists>{{{1}, {5}}, {{2}, {6}}, {{}, {7}}, {{}, {8}}}));
}

TEST(Generate, MakesNoStepWhenAllHaveEnded) {
  CountingRunner runner;
  const auto result = generate(runner, Lists{{1}, {5}}, options_with({2, 6}));
  EXPECT_EQ(result.tokens, (Lists{{2}, {6}}));
  EXPECT_EQ(result.has_ended, std::vector<bool>(2, true));
  EXPECT_EQ(runner.calls.size(), 1u);
}

// The second prompt is shorter: it ends while the first is still being read.
TEST(Generate, AnEndDuringThePromptsOfOthers) {
  CountingRunner runner;
  GenerateOptions options = options_with({6});
  options.prefill_chunk = 2;
  const auto result = generate(runner, Lists{{1, 1, 1, 1}, {5}}, options);
  EXPECT_EQ(result.tokens, (Lists{{2, 3, 4, 5}, {6}}));
  EXPECT_EQ(runner.calls.back(), (Lists{{4}, {}}));
}

}  // namespace
}  // namespace tilewright::model
