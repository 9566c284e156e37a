// Prompts that come at any time, through one runner: what each gets is what it gets alone.
#include "model/text/batch_engine.h"

#include "model/float64/reference_runner.h"
#include "model/kernel_runner/make.h"
#include "model/sequences.h"
#include "model/text/generate.h"
#include "tests/model/random_checkpoint.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>

namespace tilewright::model {
namespace {

using Tokens = std::vector<std::int32_t>;

// After a text comes a token that all of it decides.
std::int32_t token_after(const Tokens& text) {
  std::uint32_t hash = 17;
  for (const std::int32_t token : text) hash = hash * 31 + static_cast<std::uint32_t>(token) + 7;
  return static_cast<std::int32_t>(hash / 8 % 10);
}

Tokens continued(Tokens text, std::int64_t count) {
  const std::size_t first = text.size();
  for (std::int64_t i = 0; i < count; ++i) text.push_back(token_after(text));
  return {text.begin() + static_cast<std::ptrdiff_t>(first), text.end()};
}

// A model that knows its texts by heart, with the rooms and refusals of every runner.
class TextRunner : public Runner {
 public:
  explicit TextRunner(const RunnerOptions& options) : book_((set_up(config_), config_), options) {}
  const Config& config() const override { return config_; }
  std::string description() const override { return "texts"; }
  RunnerLimits limits() const override { return book_.limits(); }
  void start(std::int64_t count) override {
    book_.start(count);
    texts_.assign(static_cast<std::size_t>(count), {});
  }
  bool begin(std::int64_t sequence, std::int64_t tokens) override {
    texts_[static_cast<std::size_t>(sequence)].clear();
    return book_.begin(sequence, tokens);
  }
  void end(std::int64_t sequence) override { book_.end(sequence); }
  void take_back(std::int64_t sequence, std::int64_t tokens) override {
    book_.take_back(sequence, tokens);
    Tokens& text = texts_[static_cast<std::size_t>(sequence)];
    text.resize(text.size() - static_cast<std::size_t>(tokens));
  }
  Logits run(std::span<const Tokens> tokens, std::span<const std::int64_t> logit_rows) override {
    book_.check_run(tokens, logit_rows);
    book_.append(tokens);
    Logits logits{.vocab = config_.vocab, .values = {}};
    steps.emplace_back();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      steps.back().push_back(std::ssize(tokens[i]));
      for (std::size_t k = 0; k < tokens[i].size(); ++k) {
        texts_[i].push_back(tokens[i][k]);
        if (static_cast<std::int64_t>(tokens[i].size() - k) > logit_rows[i]) continue;
        std::vector<double> row(10, 0.0);
        row[static_cast<std::size_t>(token_after(texts_[i]))] = 1;
        logits.values.insert(logits.values.end(), row.begin(), row.end());
      }
    }
    return logits;
  }

  // Guesses right two times of three.
  Logits draft(std::span<const Tokens> next, std::span<const std::int64_t> logit_rows) override {
    book_.check_draft(next, logit_rows);
    book_.append_drafted(next);
    Logits logits{.vocab = config_.vocab, .values = {}};
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (logit_rows[i] == 0) continue;
      Tokens text = texts_[i];
      text.push_back(next[i].back());
      std::vector<double> row(10, 0.0);
      const std::int32_t wrong = text.size() % 3 == 0 ? 1 : 0;
      row[static_cast<std::size_t>((token_after(text) + wrong) % 10)] = 1;
      logits.values.insert(logits.values.end(), row.begin(), row.end());
    }
    return logits;
  }

  std::vector<std::vector<std::int64_t>> steps;  // new tokens of each sequence

 private:
  static void set_up(Config& config) {
    config.vocab = 10;
    config.max_positions = 1 << 20;
  }
  Config config_;
  Sequences book_;
  std::vector<Tokens> texts_;
};

struct Result {
  Tokens tokens;
  std::optional<FinishReason> finish;
};

void receive(const std::vector<BatchEvent>& events, std::map<std::int64_t, Result>& results) {
  for (const BatchEvent& event : events) {
    Result& result = results[event.request];
    EXPECT_FALSE(result.finish) << "request " << event.request << " goes on after its end";
    result.tokens.insert(result.tokens.end(), event.tokens.begin(), event.tokens.end());
    result.finish = event.finish;
  }
}

std::map<std::int64_t, Result> run_all(BatchEngine& engine) {
  std::map<std::int64_t, Result> results;
  while (!engine.is_idle()) receive(engine.step(), results);
  return results;
}

TEST(BatchEngine, DecodesBesideAPromptInChunks) {
  TextRunner runner({.max_tokens = 64});
  BatchEngine engine(runner, {.sequences = 3, .step_tokens = 6, .prefill_chunk = 4});
  engine.add({.prompt = {1, 2}, .max_tokens = 4});
  engine.add({.prompt = Tokens(9, 3), .max_tokens = 2});
  engine.add({.prompt = {5}, .max_tokens = 1});
  const auto results = run_all(engine);
  EXPECT_EQ(results.at(0).tokens, continued({1, 2}, 4));
  EXPECT_EQ(results.at(1).tokens, continued(Tokens(9, 3), 2));
  EXPECT_EQ(results.at(2).tokens, continued({5}, 1));
  using Steps = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(runner.steps, (Steps{{2, 4, 0}, {1, 4, 1}, {1, 1, 0}, {1, 1, 0}}));
  EXPECT_EQ(engine.counts().steps, 4);
  EXPECT_EQ(engine.counts().prompt_tokens, 12);
  EXPECT_EQ(engine.counts().new_tokens, 7);
  EXPECT_EQ(engine.counts().decode_tokens, 2);
}

// Caches for 512 tokens, in blocks of 256. The second needs both blocks and waits for the first;
// the third, which would fit beside the first, does not overtake it.
TEST(BatchEngine, FirstComeFirstServedAsCachesAllow) {
  TextRunner runner({.max_tokens = 512, .cache_tokens = 512});
  BatchEngine engine(runner, {.sequences = 3, .step_tokens = 512});
  engine.add({.prompt = {1}, .max_tokens = 2});
  engine.add({.prompt = Tokens(300, 2), .max_tokens = 2});
  engine.add({.prompt = {3}, .max_tokens = 1});
  std::map<std::int64_t, Result> results;
  receive(engine.step(), results);
  EXPECT_EQ(engine.num_running(), 1);
  EXPECT_EQ(engine.num_waiting(), 2);
  receive(engine.step(), results);  // the first ends
  receive(engine.step(), results);
  EXPECT_EQ(engine.num_running(), 1);
  EXPECT_EQ(engine.num_waiting(), 1);
  while (!engine.is_idle()) receive(engine.step(), results);
  EXPECT_EQ(results.at(1).tokens, continued(Tokens(300, 2), 2));
  EXPECT_EQ(results.at(2).tokens, continued({3}, 1));
}

TEST(BatchEngine, RefusesWhatCouldNeverRun) {
  TextRunner runner({.max_tokens = 40});
  BatchEngine engine(runner, {.sequences = 2});
  const auto refuses = [&](const BatchRequest& request, const std::vector<std::string>& words) {
    reference::expect_invalid([&] { engine.add(request); }, words);
  };
  refuses({.prompt = {}}, {"an empty prompt"});
  refuses({.prompt = Tokens(41, 1)}, {"41 tokens", "at most 40"});
  refuses({.prompt = {1, 10}}, {"token 10", "0 to 9"});
  refuses({.prompt = {1}, .max_tokens = -1}, {"max_tokens = -1"});
  refuses({.prompt = {1}, .sampler = {.top_k = -1}}, {"top_k = -1"});
  EXPECT_TRUE(engine.is_idle());
  EXPECT_EQ(engine.add({.prompt = Tokens(40, 1), .max_tokens = 9}), 0);
  EXPECT_EQ(engine.add({.prompt = Tokens(39, 1), .max_tokens = 9}), 1);
  EXPECT_EQ(engine.add({.prompt = {4}, .max_tokens = 0}), 2);
  const auto results = run_all(engine);  // as many as the context has room for
  EXPECT_EQ(results.at(0).tokens, continued(Tokens(40, 1), 1));
  EXPECT_EQ(results.at(1).tokens, continued(Tokens(39, 1), 2));
  EXPECT_EQ(results.at(2).tokens, Tokens());
  for (const auto& [number, result] : results) EXPECT_EQ(result.finish, FinishReason::kLength);
  TextRunner small({.max_tokens = 1000, .cache_tokens = 256});
  BatchEngine narrow(small, {});
  reference::expect_invalid([&] { narrow.add({.prompt = Tokens(257, 1)}); }, {"257", "256"});
  reference::expect_invalid([&] { BatchEngine(small, {.sequences = 0}); }, {"sequences = 0"});
}

TEST(BatchEngine, CancelledOnesGiveTheirRoomBack) {
  TextRunner runner({.max_tokens = 256, .cache_tokens = 256});
  BatchEngine engine(runner, {.sequences = 1});
  engine.add({.prompt = {1}, .max_tokens = 100});
  engine.add({.prompt = {2}, .max_tokens = 100});
  engine.add({.prompt = {3}, .max_tokens = 2});
  engine.step();
  EXPECT_TRUE(engine.cancel(1));   // waits
  EXPECT_TRUE(engine.cancel(0));   // runs
  EXPECT_FALSE(engine.cancel(0));  // has ended
  EXPECT_FALSE(engine.cancel(7));
  const auto results = run_all(engine);
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(results.at(2).tokens, continued({3}, 2));
}

TEST(BatchEngine, DraftsSaveStepsAndChangeNoToken) {
  TextRunner runner({.max_tokens = 64, .step_tokens = 8, .has_draft = true});
  BatchEngine engine(runner, {.sequences = 2, .has_draft = true});
  engine.add({.prompt = Tokens(12, 3), .max_tokens = 20});
  engine.add({.prompt = {1}, .max_tokens = 9});
  engine.add({.prompt = {2, 2}, .max_tokens = 1});
  const Tokens text = continued({7}, 12);
  engine.add({.prompt = {7}, .max_tokens = 12, .ends = {text[5]}});
  const auto results = run_all(engine);
  EXPECT_EQ(results.at(0).tokens, continued(Tokens(12, 3), 20));
  EXPECT_EQ(results.at(1).tokens, continued({1}, 9));
  EXPECT_EQ(results.at(2).tokens, continued({2, 2}, 1));
  const auto end = std::ranges::find(text, text[5]);
  EXPECT_EQ(results.at(3).tokens, Tokens(text.begin(), end + 1));
  EXPECT_EQ(results.at(3).finish, FinishReason::kEnd);
  const BatchCounts& counts = engine.counts();
  EXPECT_GT(counts.accepted, 8);
  EXPECT_LT(counts.accepted, counts.drafted);
  TextRunner plain({.max_tokens = 64});
  reference::expect_invalid([&] { BatchEngine(plain, {.has_draft = true}); }, {"no draft layer"});
}

// Passes everything on, and keeps the logits.
class RecordingRunner : public Runner {
 public:
  explicit RecordingRunner(std::unique_ptr<Runner> runner) : runner_(std::move(runner)) {}
  const Config& config() const override { return runner_->config(); }
  std::string description() const override { return runner_->description(); }
  RunnerLimits limits() const override { return runner_->limits(); }
  void start(std::int64_t count) override { runner_->start(count); }
  bool begin(std::int64_t sequence, std::int64_t tokens) override {
    return runner_->begin(sequence, tokens);
  }
  void end(std::int64_t sequence) override { runner_->end(sequence); }
  void take_back(std::int64_t sequence, std::int64_t tokens) override {
    runner_->take_back(sequence, tokens);
  }
  Logits run(std::span<const Tokens> tokens, std::span<const std::int64_t> rows) override {
    Logits logits = runner_->run(tokens, rows);
    for (std::int64_t i = 0; i < logits.rows(); ++i)
      seen.insert({logits.row(i).begin(), logits.row(i).end()});
    return logits;
  }
  Logits draft(std::span<const Tokens> next, std::span<const std::int64_t> rows) override {
    return runner_->draft(next, rows);
  }

  std::set<std::vector<double>> seen;

 private:
  std::unique_ptr<Runner> runner_;
};

// Requests of all kinds: ragged prompts, one that ends with its first token, samplers.
std::vector<BatchRequest> some_requests(std::int64_t count, std::int64_t longest,
                                        std::uint64_t vocab = 32) {
  reference::Random random(5);
  std::vector<BatchRequest> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    BatchRequest request;
    request.max_tokens = static_cast<std::int64_t>(random.bits() % 6 + 1);
    const auto length =
        static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(longest)) + 1;
    for (std::int64_t k = 0; k < length; ++k)
      request.prompt.push_back(static_cast<std::int32_t>(random.bits() % vocab));
    if (i % 2 == 1) request.sampler = {.temperature = 1, .top_k = 20, .top_p = 0.95, .seed = 3};
    request.sampler_sequence = static_cast<std::uint64_t>(i);
    if (i == 1)
      for (std::int32_t t = 0; t < 32; ++t) request.ends.push_back(t);
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<Result> alone(Runner& runner, const std::vector<BatchRequest>& requests) {
  std::vector<Result> results;
  for (const BatchRequest& request : requests) {
    BatchEngine engine(runner, {});
    engine.add(request);
    results.push_back(run_all(engine).at(0));
  }
  return results;
}

// Before each step up to two requests come; the third is cancelled when it has run a step.
std::map<std::int64_t, Result> with_arrivals(BatchEngine& engine,
                                             const std::vector<BatchRequest>& requests) {
  reference::Random random(9);
  std::map<std::int64_t, Result> results;
  std::size_t next = 0;
  for (int step = 0; next < requests.size() || !engine.is_idle(); ++step) {
    for (std::uint64_t n = random.bits() % 3; n > 0 && next < requests.size(); --n, ++next)
      EXPECT_EQ(engine.add(requests[next]), static_cast<std::int64_t>(next));
    receive(engine.step(), results);
    if (next > 2 && !results[2].finish && !results[2].tokens.empty()) engine.cancel(2);
  }
  return results;
}

void expect_prefix(const Result& result, const Result& expected) {
  ASSERT_LE(result.tokens.size(), expected.tokens.size());
  EXPECT_TRUE(
      std::ranges::equal(result.tokens, std::span(expected.tokens).first(result.tokens.size())));
}

TEST(BatchEngine, RandomArrivalsGetTheBitsOfEachAlone) {
  const RandomCheckpoint checkpoint;
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  const auto requests = some_requests(12, 40);
  RecordingRunner one(make_reference_runner(weights, {.max_tokens = 64}));
  const std::vector<Result> expected = alone(one, requests);
  RecordingRunner many(make_reference_runner(weights, {.max_tokens = 64, .cache_tokens = 600}));
  BatchEngine engine(many, {.sequences = 4, .step_tokens = 24, .prefill_chunk = 16});
  auto results = with_arrivals(engine, requests);
  ASSERT_EQ(results.size(), requests.size());
  EXPECT_EQ(results[1].finish, FinishReason::kEnd);
  EXPECT_EQ(results[1].tokens.size(), 1u);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    Result& result = results[static_cast<std::int64_t>(i)];
    if (i == 2) {
      expect_prefix(result, expected[i]);
      continue;
    }
    EXPECT_EQ(result.tokens, expected[i].tokens);
    EXPECT_EQ(result.finish, expected[i].finish);
  }
  for (const auto& logits : many.seen) EXPECT_TRUE(one.seen.contains(logits));
  EXPECT_EQ(many.seen.size() + (expected[2].tokens.size() - results[2].tokens.size()),
            one.seen.size());
}

std::shared_ptr<const Weights> with_draft(const RandomCheckpoint& checkpoint) {
  return std::make_shared<Weights>(checkpoint.folder(), WeightsOptions{.has_drafts = true});
}

// Guesses of random weights are right by chance; refused ones leave nothing, so that every row of
// logits that a token is drawn from has the bits that it has without drafts.
TEST(BatchEngine, DraftsOfTheFloat64ModelChangeNoBit) {
  const RandomCheckpoint checkpoint({.vocab = 16, .drafts = 1});
  const auto weights = with_draft(checkpoint);
  auto requests = some_requests(8, 30, 16);
  for (BatchRequest& request : requests) request.max_tokens += 20;
  RecordingRunner one(make_reference_runner(weights, {.max_tokens = 64}));
  const std::vector<Result> expected = alone(one, requests);
  RecordingRunner many(make_reference_runner(
      weights, {.max_tokens = 64, .cache_tokens = 700, .step_tokens = 16, .has_draft = true}));
  BatchEngine engine(many, {.sequences = 3, .has_draft = true});
  auto results = with_arrivals(engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Result& result = results[static_cast<std::int64_t>(i)];
    if (i != 2) {  // cancelled
      EXPECT_EQ(result.tokens, expected[i].tokens) << i;
    }
  }
  EXPECT_GT(engine.counts().accepted, 0);
  EXPECT_LT(engine.counts().accepted, engine.counts().drafted);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i == 2) continue;
    BatchEngine again(many, {.has_draft = true});
    many.seen.clear();
    again.add(requests[i]);
    run_all(again);
    one.seen.clear();
    BatchEngine without(one, {});
    without.add(requests[i]);
    run_all(without);
    for (const auto& logits : one.seen) EXPECT_TRUE(many.seen.contains(logits)) << i;
  }
}

class BatchKernelTest : public ChipTest<BatchKernelTest, false> {};
TILEWRIGHT_ON_EVERY_CHIP(BatchKernelTest);

// Of greedy texts on a GPU, whose cases are longer: steps of other sizes round otherwise, and
// random weights have tokens that are nearly as likely as the best. Kernels differ from float64 by
// a mean KL of at most 1e-3 nats, so by about sqrt(2e-3) = 0.045 in a logit, and by twice as much
// in a difference of two logits of two runs; six times that covers all.
void expect_near_best(Runner& runner, const BatchRequest& request, const Tokens& tokens) {
  constexpr double kLargestGap = 6 * 2 * 0.045;
  if (tokens.empty()) return;  // cancelled
  std::vector<Tokens> fed = {request.prompt};
  fed[0].insert(fed[0].end(), tokens.begin(), tokens.end() - 1);
  runner.start(1);
  const Logits logits = runner.forward(fed, LogitRows::kAll);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto row = logits.row(std::ssize(request.prompt) - 1 + static_cast<std::int64_t>(i));
    const double best = *std::ranges::max_element(row);
    EXPECT_LE(best - row[static_cast<std::size_t>(tokens[i])], kLargestGap) << "token " << i;
  }
}

// Pages come and go in a pool that is too small for all; the tokens are those of each alone.
TEST_P(BatchKernelTest, RandomArrivalsGetTheTokensOfEachAlone) {
  const RandomCheckpoint checkpoint({.ratios = {4, 128}});
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  auto requests = some_requests(is_simulator() ? 5 : 40, is_simulator() ? 12 : 600);
  if (!is_simulator())
    for (BatchRequest& request : requests) request.sampler = {};
  const std::int64_t most = is_simulator() ? 32 : 1024;
  RecordingRunner one(make_kernel_runner(*device_, weights, {.max_tokens = most}));
  const std::vector<Result> expected = alone(one, requests);
  RecordingRunner many(make_kernel_runner(
      *device_, weights, {.max_tokens = most, .cache_tokens = 2 * std::max(most, kCacheBlock)}));
  BatchEngine engine(many, {.sequences = 3, .step_tokens = 16, .prefill_chunk = 8});
  auto results = with_arrivals(engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    Result& result = results[static_cast<std::int64_t>(i)];
    if (!is_simulator()) {
      expect_near_best(one, requests[i], result.tokens);
    } else if (i == 2) {
      expect_prefix(result, expected[i]);
    } else {
      EXPECT_EQ(result.tokens, expected[i].tokens);
    }
  }
}

// Tokens that were taken back leave nothing: not in rings, states, entries or keys.
TEST_P(BatchKernelTest, WhatIsTakenBackIsAsIfItHadNotCome) {
  const RandomCheckpoint checkpoint({.ratios = {4, 128}});
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  for (const bool is_exact : {true, false}) {
    const auto make = [&] {
      return is_exact ? make_reference_runner(weights, {.max_tokens = 256})
                      : make_kernel_runner(*device_, weights, {.max_tokens = 256});
    };
    Tokens prompt;
    for (std::int32_t i = 0; i < 125; ++i) prompt.push_back(i * i % 32);
    const auto straight = make(), back = make();
    straight->start(1);
    back->start(1);
    const auto step = [](Runner& runner, const Tokens& tokens) {
      return runner.forward(std::vector<Tokens>{tokens}, LogitRows::kLast).values;
    };
    EXPECT_EQ(step(*straight, prompt), step(*back, prompt));
    step(*back, {9, 8, 7, 6});  // completes entry 0 of 128, and entry 31 of 4
    back->take_back(0, 3);
    step(*back, {5, 4});
    back->take_back(0, 3);
    for (const std::int32_t token : {1, 2, 3, 4})
      EXPECT_EQ(step(*straight, {token}), step(*back, {token})) << token;
    reference::expect_invalid([&] { back->take_back(0, 9); }, {"take_back() of 9", "0 to 8"});
    reference::expect_invalid([&] { back->take_back(1, 1); }, {"sequence 1"});
  }
}

// As the float64 model guesses; steps of two tokens are launched, recorded and replayed.
TEST_P(BatchKernelTest, DraftsAreThoseOfTheFloat64Model) {
  const RandomCheckpoint checkpoint({.ratios = {4, 128}, .drafts = 1});
  const auto weights = with_draft(checkpoint);
  const RunnerOptions options = {.max_tokens = 64, .has_draft = true};
  const auto kernels = make_kernel_runner(*device_, weights, options);
  const auto exact = make_reference_runner(weights, options);
  for (Runner* runner : {kernels.get(), exact.get()}) runner->start(2);
  const auto kl = [&](const std::vector<Tokens>& tokens, const std::vector<Tokens>& next) {
    const std::vector<std::int64_t> none = {0, 0};
    std::vector<std::int64_t> rows;
    for (const Tokens& list : next) rows.push_back(std::ssize(list));
    std::vector<Logits> logits;
    for (Runner* runner : {exact.get(), kernels.get()}) {
      runner->run(tokens, none);
      for (std::size_t i = 0; i < tokens.size(); ++i)
        runner->take_back(static_cast<std::int64_t>(i),
                          static_cast<std::int64_t>(tokens[i].size() - next[i].size()));
      logits.push_back(runner->draft(next, rows));
    }
    return mean_kl(logits[0], logits[1]);
  };
  // As for the model itself (kernel_runner_test.cpp): roundings to bf16, no bound.
  constexpr double kMostKl = 1e-3;
  EXPECT_LT(kl({{1, 2, 3, 4, 5}, {9, 8}}, {{2, 3, 4, 5, 6}, {8, 7}}), kMostKl);
  for (std::int32_t i = 0; i < 4; ++i)
    EXPECT_LT(kl({{6, i}, {7, 3}}, {{i, 6}, {7}}), kMostKl) << i;  // the second is refused
  const std::vector<Tokens> more = {{1}, {1}};
  exact->forward(more, LogitRows::kLast);
  kernels->forward(more, LogitRows::kLast);
  for (Runner* runner : {kernels.get(), exact.get()}) {
    const std::vector<std::int64_t> rows = {1, 1};
    reference::expect_invalid(
        [&] {
          runner->draft(std::vector<Tokens>{{1, 2}, {1}}, rows);
        },
        {"2 tokens follow", "at most 1"});
    runner->forward(more, LogitRows::kLast);
    reference::expect_invalid([&] { runner->draft(more, rows); }, {"has drafted", "all of them"});
  }
  const auto plain = std::make_shared<Weights>(checkpoint.folder());
  reference::expect_invalid([&] { make_kernel_runner(*device_, plain, options); }, {"mtp.0"});
  reference::expect_invalid([&] { make_reference_runner(plain, options); }, {"mtp.0"});
}

// Token by token what decoding without drafts gives.
TEST_P(BatchKernelTest, DraftsChangeNoToken) {
  const RandomCheckpoint checkpoint({.vocab = 16, .ratios = {4, 128}, .drafts = 1});
  const auto weights = with_draft(checkpoint);
  auto requests = some_requests(is_simulator() ? 3 : 20, is_simulator() ? 6 : 200, 16);
  for (BatchRequest& request : requests) {
    request.max_tokens = is_simulator() ? 12 : 60;
    request.ends.clear();
    request.sampler.seed = 6;  // some guesses are right
    if (!is_simulator()) request.sampler = {};
  }
  const std::int64_t most = is_simulator() ? 32 : 512;
  const auto plain = make_kernel_runner(*device_, weights, {.max_tokens = most});
  const std::vector<Result> expected = alone(*plain, requests);
  const auto runner =
      make_kernel_runner(*device_, weights, {.max_tokens = most, .has_draft = true});
  BatchEngine engine(*runner, {.sequences = 3, .has_draft = true});
  for (const BatchRequest& request : requests) engine.add(request);
  auto results = run_all(engine);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<std::int32_t>& tokens = results[static_cast<std::int64_t>(i)].tokens;
    if (is_simulator())
      EXPECT_EQ(tokens, expected[i].tokens);
    else
      expect_near_best(*plain, requests[i], tokens);
  }
  EXPECT_GT(engine.counts().accepted, 0);
}

// What the device draws, drafts with it, and what the host draws from the logits of the same steps.
TEST_P(BatchKernelTest, TheDeviceDrawsWhatTheHostDraws) {
  const RandomCheckpoint checkpoint({.vocab = 48, .ratios = {4}, .drafts = 1});
  const auto weights = with_draft(checkpoint);
  const auto requests = some_requests(4, 11, 48);
  std::vector<std::map<std::int64_t, Result>> results;
  std::vector<std::int64_t> accepted;
  for (const bool is_host : {false, true}) {
    auto runner = make_kernel_runner(*device_, weights, {.max_tokens = 32, .has_draft = true});
    EXPECT_TRUE(runner->can_draw());
    if (is_host) runner = std::make_unique<RecordingRunner>(std::move(runner));
    BatchEngine engine(*runner, {.sequences = 3, .has_draft = true});
    for (const BatchRequest& request : requests) engine.add(request);
    results.push_back(run_all(engine));
    accepted.push_back(engine.counts().accepted);
  }
  for (std::int64_t i = 0; i < std::ssize(requests); ++i)
    EXPECT_EQ(results[0].at(i).tokens, results[1].at(i).tokens) << i;
  EXPECT_EQ(accepted[0], accepted[1]);
}

// A step of 9 tokens is filled up to 16: what fills up leaves nothing in the caches of the
// sequences that wait, nor in those of the one that goes on.
TEST_P(BatchKernelTest, FillingUpTouchesNoCache) {
  if (is_simulator() && is_blackwell()) GTEST_SKIP() << "the same host code as on Hopper";
  const RandomCheckpoint checkpoint({.ratios = {0, 4, 128}});
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  const auto alone = make_kernel_runner(*device_, weights, {.max_tokens = 64});
  const auto filled = make_kernel_runner(*device_, weights, {.max_tokens = 64});
  alone->start(2);
  filled->start(2);
  const auto step = [](Runner& runner, const std::vector<Tokens>& tokens) {
    return runner.forward(tokens, LogitRows::kLast).values;
  };
  const Tokens nine = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  // Sequence 1 has rows everywhere; then steps of sequence 0 alone, filled up or in small ones.
  for (Runner* runner : {alone.get(), filled.get()}) step(*runner, {{}, {5, 9, 7, 3, 2, 2, 1, 8}});
  step(*filled, {nine, {}});
  EXPECT_EQ(step(*filled, {{}, {4}}), step(*alone, {{}, {4}}));
  step(*filled, {{3}, {}});
  step(*alone, {{1, 2, 3, 4, 5, 6, 7, 8}, {}});
  EXPECT_EQ(step(*filled, {{}, {6}}), step(*alone, {{}, {6}}));
}

// Two blocks of a pool that do not lie side by side, against pages that were reserved.
TEST_P(BatchKernelTest, PagesOfAPoolGiveTheSameBits) {
  if (is_simulator() && is_blackwell()) GTEST_SKIP() << "the same host code as on Hopper";
  const RandomCheckpoint checkpoint({.ratios = {4, 128}});
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  const auto pool =
      make_kernel_runner(*device_, weights, {.max_tokens = 512, .cache_tokens = 1024});
  const auto plain = make_kernel_runner(*device_, weights, {.max_tokens = 512});
  pool->start(2);
  plain->start(2);
  EXPECT_TRUE(pool->begin(0, 200));
  EXPECT_TRUE(pool->begin(1, 200));
  EXPECT_TRUE(pool->begin(0, 400));
  std::vector<Tokens> tokens = {{}, {5, 6}};
  for (std::int32_t i = 0; i < 262; ++i) tokens[0].push_back(i * i % 32);
  EXPECT_EQ(pool->forward(tokens, LogitRows::kLast).values,
            plain->forward(tokens, LogitRows::kLast).values);
  tokens = {{3}, {4}};
  EXPECT_EQ(pool->forward(tokens, LogitRows::kLast).values,
            plain->forward(tokens, LogitRows::kLast).values);
}

TEST_P(BatchKernelTest, SequencesNeedRoom) {
  const RandomCheckpoint checkpoint({.ratios = {4}});
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  const auto runner =
      make_kernel_runner(*device_, weights, {.max_tokens = 512, .cache_tokens = 512});
  runner->start(2);
  const std::vector<Tokens> tokens = {{1, 2}, {}};
  const auto run = [&] { runner->forward(tokens, LogitRows::kLast); };
  reference::expect_invalid(run, {"sequence 0", "room for 0", "begin()"});
  EXPECT_TRUE(runner->begin(0, 257));
  EXPECT_FALSE(runner->begin(1, 1));
  runner->end(0);
  EXPECT_TRUE(runner->begin(1, 1));
  EXPECT_TRUE(runner->begin(0, 1));
  reference::expect_invalid(run, {"2 tokens", "room for 1"});
  reference::expect_invalid([&] { runner->begin(0, 513); }, {"513", "max_tokens"});
  reference::expect_invalid([&] { runner->begin(2, 1); }, {"sequence 2"});
}

}  // namespace
}  // namespace tilewright::model
