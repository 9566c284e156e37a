// The model through kernels on every device against the float64 runner with the same caches: a
// small model with random weights, in which products keep the size of their operands.
#include "model/float64/reference_runner.h"
#include "model/kernel_runner/make.h"
#include "model/text/generate.h"
#include "tests/model/random_checkpoint.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace tilewright::model {
namespace {

using Tokens = std::vector<std::vector<std::int32_t>>;

// Under the simulator's usual checks; the tests of the operators have all of them.
class KernelRunnerTest : public ChipTest<KernelRunnerTest, false> {};
TILEWRIGHT_ON_EVERY_CHIP(KernelRunnerTest);

// Tokens first .. first + count - 1 of a text without an end.
std::vector<std::int32_t> text(std::int64_t first, std::int64_t count, std::int64_t vocab = 32) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = first; i < first + count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + i * 3 + i / 5) % vocab));
  return tokens;
}

struct Pair {
  Pair(const Device& device, const RandomCheckpoint& checkpoint, const RunnerOptions& options,
       ExpertFormat experts = ExpertFormat::kStored)
      : weights(std::make_shared<Weights>(checkpoint.folder(), experts)),
        kernels(make_kernel_runner(device, weights, options)),
        exact(make_reference_runner(weights, options)) {}

  void start(std::int64_t num_sequences) {
    kernels->start(num_sequences);
    exact->start(num_sequences);
  }
  // Of the two on the same tokens.
  double kl(const Tokens& tokens, LogitRows rows = LogitRows::kAll) {
    return mean_kl(exact->forward(tokens, rows), kernels->forward(tokens, rows));
  }

  std::shared_ptr<const Weights> weights;
  std::unique_ptr<Runner> kernels, exact;
};

// Of a mean over few tokens: three times what was measured, up to 3e-4 for the last token of two
// sequences, else 1e-6 to 1e-4. It is no bound: roundings to bf16 and to neighbouring codes may
// change what is selected. Stages are held to bounds in stage_check_test.cpp.
constexpr double kMostKl = 1e-3;

TEST_P(KernelRunnerTest, PromptsOfDifferentLengthsInChunksThenDecode) {
  const RandomCheckpoint checkpoint;
  Pair pair(*device_, checkpoint, {.max_tokens = 256});
  pair.start(3);
  EXPECT_LT(pair.kl({text(0, 5), text(40, 3), {}}), kMostKl);
  EXPECT_LT(pair.kl({text(5, 3), {}, text(70, 2)}), kMostKl);
  // Steps of decoding: launched, then recorded, then replayed.
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_LT(pair.kl({text(8 + i, 1), {}, text(72 + i, 1)}, LogitRows::kLast), kMostKl);
}

// A sequence that takes the place of another sees nothing of it.
TEST_P(KernelRunnerTest, StartForgetsEverything) {
  const RandomCheckpoint checkpoint({.ratios = {4}});
  Pair pair(*device_, checkpoint, {.max_tokens = 64});
  pair.start(1);
  const Logits first = pair.kernels->forward(Tokens{text(0, 6)}, LogitRows::kLast);
  pair.kernels->forward(Tokens{text(20, 3)}, LogitRows::kLast);
  pair.kernels->start(1);
  EXPECT_EQ(pair.kernels->forward(Tokens{text(0, 6)}, LogitRows::kLast).values, first.values);
}

TEST_P(KernelRunnerTest, EveryFormatOfRowsAndExperts) {
  const RandomCheckpoint checkpoint({.ratios = {4}});
  using Formats = std::pair<KvFormat, ExpertFormat>;
  std::vector<Formats> cases = {{KvFormat::kNvfp4, ExpertFormat::kNvfp4},
                                {KvFormat::kBf16, ExpertFormat::kFp8}};
  if (!is_simulator()) cases.push_back({KvFormat::kFp8, ExpertFormat::kMxfp4});
  for (const auto& [kv, experts] : cases) {
    Pair pair(*device_, checkpoint, {.kv = kv, .max_tokens = 64}, experts);
    SCOPED_TRACE(pair.kernels->description());
    pair.start(1);
    EXPECT_LT(pair.kl({text(0, 5)}), kMostKl);
  }
}

// Past the window, over the edge of its ring, with entries of both compressors.
TEST_P(KernelRunnerTest, LongSequence) {
  const RandomCheckpoint checkpoint(is_simulator()
                                        ? CheckpointSizes{.ratios = {128}}
                                        : CheckpointSizes{.heads = 8, .ratios = {128, 4}});
  Pair pair(*device_, checkpoint, {.max_tokens = 1024});
  pair.start(1);
  EXPECT_LT(pair.kl({text(0, 127)}, LogitRows::kLast), kMostKl);
  for (std::int64_t i = 127; i < 129; ++i)
    EXPECT_LT(pair.kl({text(i, 1)}, LogitRows::kLast), kMostKl) << i;
  if (is_simulator()) return;
  EXPECT_LT(pair.kl({text(129, 600)}), kMostKl);
  EXPECT_LT(pair.kl({text(729, 100)}), kMostKl);
}

TEST_P(KernelRunnerTest, StagesHaveTheShapesOfTheFloat64Runner) {
  const RandomCheckpoint checkpoint({.ratios = {4}});
  Pair pair(*device_, checkpoint, {.max_tokens = 64});
  pair.start(2);
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<Key, Stage> of_exact;
  std::map<Key, std::vector<double>> values;
  pair.exact->set_stage_sink([&](const Stage& s) {
    const Key key = {std::string(s.name), s.layer, s.sequence};
    of_exact[key] = s;
    values[key].assign(s.values.begin(), s.values.end());
  });
  int matches = 0;
  pair.kernels->set_stage_sink([&](const Stage& s) {
    const Key key = {std::string(s.name), s.layer, s.sequence};
    SCOPED_TRACE(fmt::format("{} of layer {}", s.name, s.layer));
    const auto found = of_exact.find(key);
    // Scores of either sign may cancel.
    if (found == of_exact.end() || s.name == "logits" || s.name == "idx_scores") return;
    ++matches;
    EXPECT_EQ(s.shape, found->second.shape);
    EXPECT_EQ(s.first_row, found->second.first_row);
    const std::vector<double>& want = values[key];
    ASSERT_EQ(s.values.size(), want.size());
    const bool is_code = s.name.ends_with("_fp8") || s.name.ends_with("_scale") ||
                         s.name == "idx_k" || s.name == "idx_q";
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (std::isinf(want[i])) continue;
      difference += (s.values[i] - want[i]) * (s.values[i] - want[i]);
      size += want[i] * want[i];
    }
    // Codes of neighbouring numbers are neighbours, but those of both zeros; FP4 has few.
    EXPECT_LT(std::sqrt(difference), (is_code ? 0.2 : 0.05) * std::sqrt(size) + 1e-9);
  });
  const Tokens tokens = {text(0, 5), text(40, 4)};
  pair.exact->forward(tokens, LogitRows::kAll);
  pair.kernels->forward(tokens, LogitRows::kAll);
  EXPECT_GT(matches, 2 * 25);
}

TEST_P(KernelRunnerTest, RefusesWhatItCannotDo) {
  const RandomCheckpoint checkpoint({.ratios = {0}});
  const auto weights = std::make_shared<Weights>(checkpoint.folder());
  reference::expect_invalid([&] { make_kernel_runner(*device_, weights, {.kv = std::nullopt}); },
                            {"bf16, fp8 or nvfp4", "--device reference"});
  const auto runner = make_kernel_runner(*device_, weights, {.max_tokens = 8});
  reference::expect_invalid([&] { runner->forward(Tokens{{1}}, LogitRows::kLast); },
                            {"before start()"});
  reference::expect_invalid([&] { runner->start(0); }, {"start(0)"});
  runner->start(1);
  reference::expect_invalid([&] { runner->forward(Tokens{text(0, 9)}, LogitRows::kLast); }, {"8"});
}

}  // namespace
}  // namespace tilewright::model
