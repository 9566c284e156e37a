// Layers of V4-Flash at their full width, with random weights in the types of the checkpoint: FP8
// in blocks of 128 x 128, MXFP4 experts. Every stage against float64, from what the kernels had
// stored before it (stage_check.h), at some positions.
//
// On a GPU    a prompt that ends within blocks, tiles and steps, and decoding; 256 experts; more
//             entries than the indexer chooses
// Simulated   a layer of each kind with few tokens and 32 experts; the router's 256 are in
//             StageCheckTest.RouterOfFullWidthInTheHyperConnection, entries of HCA in EntriesOfHca
// Two ranks   simulated; tensors in parallel by stages, those of the heads from both ranks; with
//             experts in parallel runners tell none, so there logits are compared
#include "comm/thread_group.h"
#include "model/checkpoint/synthetic.h"
#include "model/float64/reference_runner.h"
#include "model/kernel_runner/ranked_runner.h"
#include "model/text/generate.h"
#include "tests/model/stage_verdicts.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

namespace tilewright::model {
namespace {

// A layer at a time, on simulators.
class FullWidthTest : public ChipTest<FullWidthTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, FullWidthTest, ::testing::Values("sim:h200", "sim:b200"),
                         [](const auto& tested) { return std::string(tested.param + 4); });

class FullWidthGpuTest : public ChipTest<FullWidthGpuTest, false> {};
INSTANTIATE_TEST_SUITE_P(GpuTest, FullWidthGpuTest, ::testing::Values("cuda"),
                         [](const auto&) { return "cuda"; });

struct WidthRun {
  std::vector<LayerKind> layers;
  std::int64_t hash_layers = 0, experts = 256;
  std::int64_t prompt = 0, step = 0, decoded = 0;
  std::vector<std::int64_t> positions = {};  // checked ones; none: all

  std::int64_t tokens() const { return prompt + decoded; }
};

// Hidden 4096, 64 heads of 512, latent queries of 1024, 8 output groups of 1024, experts of 2048,
// six of them a token, a window of 128, 64 heads of the indexer, 512 entries: all but the numbers
// of layers, experts and words.
std::shared_ptr<const Weights> flash_layers(const WidthRun& run) {
  Config config = synthetic_config("flash");
  config.layers = run.layers;
  config.hash_layers = run.hash_layers;
  config.experts = run.experts;
  config.vocab = 256;
  config.draft_layers = 0;
  return synthetic_weights({.config = config, .different_experts = 8});
}

std::vector<StageVerdict> check_run(const Device& device, const WidthRun& run) {
  const auto weights = flash_layers(run);
  const RunnerOptions options = {.max_tokens = run.tokens(), .step_tokens = run.step};
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < run.tokens(); ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + i * 3 + i / 5) % 256));
  StageCheck check(weights, options, tokens, run.positions);
  const auto runner = make_kernel_runner(device, weights, options);
  runner->set_stage_sink([&](const Stage& stage) { check.receive(stage); });
  runner->start(1);
  for (std::int64_t first = 0; first < run.tokens();) {
    const std::int64_t last = first == 0 ? run.prompt : first + 1;
    const std::vector<std::int32_t> part(tokens.begin() + first, tokens.begin() + last);
    runner->forward({&part, 1}, LogitRows::kLast);
    first = last;
  }
  return check.verdicts();
}

// Bounds of single elements are worst cases, which grow with n; errors of either sign add up as
// their squares. So what all elements of a stage differ by is held to
//
//   stored as bf16    2^-8 / sqrt(3): half a unit in the last place at most, equally distributed
//   fp32, n products  2^-23 sqrt(n): every sum so far is cut once a step of a tensor core
//   products of bf16  inner sums of n that were rounded to bf16: off by d = 2^-23 sqrt(n) each, of
//                     which a share of 2 d / 2^-8 is rounded the other way, by 2^-7 at most
//   attention         its weights are bf16; their errors are added as the rows that they weigh
//   experts on ranks  each stores its part of an expert's result as bf16, together as far off as
//                     the whole one that float64 rounds once; the two add up as their squares
double most_rms(std::string_view stage, bool is_on_ranks) {
  const double half = 0x1p-8 / std::sqrt(3.0);
  if (stage == "moe_out" && is_on_ranks) return std::sqrt(2.0) * half;
  const auto sums = [](std::int64_t n) { return 0x1p-23 * std::sqrt(static_cast<double>(n)); };
  if (stage == "attn_mix" || stage == "ffn_mix" || stage == "head_mix") return sums(4 * 4096);
  if (stage == "router_scores" || stage == "idx_w" || stage == "logits") return sums(4096);
  if (stage == "router_weights") return sums(6);
  if (stage == "lse") return sums(512);
  if (stage == "idx_scores") return sums(64);  // products of codes are exact
  if (stage == "attn_out" || stage == "moe_out") return 0x1p-7 * std::sqrt(sums(4096) * 0x1p9);
  return half;
}

void expect_rms(const std::vector<StageVerdict>& verdicts, bool is_on_ranks = false) {
  for (const StageVerdict& v : verdicts)
    EXPECT_LE(v.relative_rms(), most_rms(v.name.substr(v.name.rfind('.') + 1), is_on_ranks))
        << v.name;
}

// Names of stages, without their layers.
std::set<std::string> stage_names(const std::vector<StageVerdict>& verdicts) {
  std::set<std::string> names;
  for (const StageVerdict& v : verdicts) names.insert(v.name.substr(v.name.rfind('.') + 1));
  return names;
}

const std::set<std::string> kStagesOfAll = {
    "attn_mix",   "attn_in",        "qr",      "q",       "kv_fp8",
    "kv_scale",   "kv_rope",        "lse",     "attn_o",  "attn_o_inv_rope",
    "attn_out",   "streams_mid",    "ffn_mix", "ffn_in",  "router_scores",
    "router_ids", "router_weights", "moe_out", "streams", "head_mix",
    "final_norm", "logits"};
const std::set<std::string> kStagesOfEntries = {"comp_fp8", "comp_scale", "comp_rope"};
const std::set<std::string> kStagesOfIndexer = {"idx_k", "idx_q", "idx_w", "idx_scores",
                                                "idx_selected"};

std::set<std::string> stages_of(LayerKind kind) {
  std::set<std::string> all = kStagesOfAll;
  if (kind != LayerKind::kCsa) return all;
  all.insert(kStagesOfEntries.begin(), kStagesOfEntries.end());
  all.insert(kStagesOfIndexer.begin(), kStagesOfIndexer.end());
  return all;
}

void expect_few_tokens(const Device& device, LayerKind kind, const WidthRun& run) {
  const auto verdicts = check_run(device, run);
  EXPECT_EQ(stage_names(verdicts), stages_of(kind));
  expect_all_met(verdicts, 1);  // sums of 4096
  expect_rms(verdicts);
}

TEST_P(FullWidthTest, WindowAndHashTable) {
  expect_few_tokens(*device_, LayerKind::kWindow,
                    {.layers = {LayerKind::kWindow},
                     .hash_layers = 1,
                     .experts = 32,
                     .prompt = 2,
                     .step = 16,
                     .decoded = 1});
}

// Two entries of eight tokens, one of which overlaps the other.
TEST_P(FullWidthTest, Csa) {
  expect_few_tokens(*device_, LayerKind::kCsa,
                    {.layers = {LayerKind::kCsa},
                     .experts = 32,
                     .prompt = 8,
                     .step = 16,
                     .decoded = 1,
                     .positions = {0, 5, 7, 8}});
}

TEST_P(FullWidthTest, Hca) {
  expect_few_tokens(
      *device_, LayerKind::kHca,
      {.layers = {LayerKind::kHca}, .experts = 32, .prompt = 2, .step = 16, .decoded = 1});
}

// What a rank has of weights that are in memory: views of them.
std::shared_ptr<const Weights> part_of_rank(const std::shared_ptr<const Weights>& whole,
                                            const Share& share) {
  ModelWeights parts = *whole;
  const auto cut = [&](Matrix& matrix, TensorRole role) {
    matrix = part_of(matrix, share_of(share, role, matrix.rows, matrix.cols));
  };
  const auto cut_expert = [&](ExpertWeights& expert, TensorRole in, TensorRole out) {
    cut(expert.gate, in);
    cut(expert.up, in);
    cut(expert.down, out);
  };
  cut(parts.head, TensorRole::kHead);
  for (LayerWeights& layer : parts.layers) {
    cut(layer.attn.wq_b, TensorRole::kQuery);
    cut(layer.attn.wo_a, TensorRole::kOutputGroup);
    cut(layer.attn.wo_b, TensorRole::kOutput);
    Vector& sink = layer.attn.sink;
    const Range heads = share_of(share, TensorRole::kSink, std::ssize(sink), 1).rows;
    sink = Vector(sink.begin() + heads.first, sink.begin() + heads.first + heads.count);
    std::vector<ExpertWeights>& experts = layer.ffn.experts;
    const Range own = local_sizes(share, whole->config()).experts;
    experts = {experts.begin() + own.first, experts.begin() + own.first + own.count};
    for (ExpertWeights& expert : experts)
      cut_expert(expert, TensorRole::kExpertIn, TensorRole::kExpertOut);
    cut_expert(*layer.ffn.shared, TensorRole::kSharedIn, TensorRole::kSharedOut);
  }
  // The whole owns what the views show, and lives as long.
  auto* const weights = new Weights(WeightsSource{.name = "rank",
                                                  .config = whole->config(),
                                                  .share = share,
                                                  .weights = std::move(parts),
                                                  .storage = {}});
  return {weights, [whole](const Weights* part) { delete part; }};
}

struct KeptStage {
  explicit KeptStage(const Stage& stage)
      : name(stage.name),
        layer(stage.layer),
        first_row(stage.first_row),
        shape(stage.shape),
        values(stage.values.begin(), stage.values.end()) {}

  std::string name;
  std::int64_t layer, first_row;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

// The heads of one rank, then those of the next.
KeptStage joined(const KeptStage& first, const KeptStage& second) {
  KeptStage both = first;
  both.shape[1] += second.shape[1];
  both.values.clear();
  for (std::int64_t row = 0; row < first.shape[0]; ++row) {
    for (const KeptStage* part : {&first, &second}) {
      const auto width = std::ssize(part->values) / part->shape[0];
      const auto begin = part->values.begin() + row * width;
      both.values.insert(both.values.end(), begin, begin + width);
    }
  }
  return both;
}

// Heads are each rank's own; of everything else all ranks have the same bits.
void check_ranks(StageCheck& check, const std::vector<KeptStage>& first,
                 const std::vector<KeptStage>& second) {
  const std::set<std::string> of_heads = {"q", "lse", "attn_o", "attn_o_inv_rope"};
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(first[i].name, second[i].name);
    const bool is_divided = of_heads.contains(first[i].name);
    if (!is_divided) {
      EXPECT_EQ(first[i].values, second[i].values) << first[i].name;
    }
    const KeptStage whole = is_divided ? joined(first[i], second[i]) : first[i];
    check.receive({.name = whole.name,
                   .layer = whole.layer,
                   .sequence = 0,
                   .first_row = whole.first_row,
                   .shape = whole.shape,
                   .values = whole.values});
  }
}

class FullWidthRanksTest : public HopperTest<FullWidthRanksTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, FullWidthRanksTest, ::testing::Values("sim:h200"));

void expect_stages_on_ranks(const Device& device, LayerKind kind, const WidthRun& run) {
  const auto whole = flash_layers(run);
  const RunnerOptions options = {.max_tokens = run.tokens(), .step_tokens = run.step};
  std::vector<std::int32_t> tokens = {3, 141, 59, 26, 53};
  tokens.resize(static_cast<std::size_t>(run.tokens()));
  std::vector<std::vector<KeptStage>> stages(2);
  comm::ThreadGroup group(2);
  group.run([&](int rank) {
    const auto weights = part_of_rank(whole, {Scheme::kTensorParallel, rank, 2});
    const auto runner = make_kernel_runner(device, weights, options, {}, group.join(rank, device));
    std::vector<KeptStage>& kept = stages[comm::rank_idx(rank)];
    runner->set_stage_sink([&](const Stage& stage) { kept.emplace_back(stage); });
    runner->start(1);
    for (const auto& part : {std::vector(tokens.begin(), tokens.end() - 1), {tokens.back()}})
      runner->forward({&part, 1}, LogitRows::kLast);
  });
  StageCheck check(whole, options, tokens);
  check_ranks(check, stages[0], stages[1]);
  const auto verdicts = check.verdicts();
  EXPECT_EQ(stage_names(verdicts), stages_of(kind));
  expect_all_met(verdicts, 1);  // sums of 4096
  expect_rms(verdicts, true);
}

// 32 heads, four output groups and 1024 columns of every expert on each of two ranks. An entry of
// four tokens.
TEST_P(FullWidthRanksTest, CsaWithTensorsInParallel) {
  expect_stages_on_ranks(
      *device_, LayerKind::kCsa,
      {.layers = {LayerKind::kCsa}, .experts = 8, .prompt = 4, .step = 16, .decoded = 1});
}

TEST_P(FullWidthRanksTest, HcaWithTensorsInParallel) {
  expect_stages_on_ranks(
      *device_, LayerKind::kHca,
      {.layers = {LayerKind::kHca}, .experts = 8, .prompt = 1, .step = 16, .decoded = 1});
}

// A sequence and three of six experts on each of two ranks. Every token has all experts: with
// random weights the choice would hang on the last bit. Roundings add up over the layer: no bound,
// but the largest distance that runners of narrow models are held to.
TEST_P(FullWidthRanksTest, CsaWithExpertsInParallel) {
  const auto whole = flash_layers({.layers = {LayerKind::kCsa}, .experts = 6});
  const RunnerOptions options = {.max_tokens = 8, .step_tokens = 16};
  std::vector<std::shared_ptr<const Weights>> parts;
  for (int rank = 0; rank < 2; ++rank)
    parts.push_back(part_of_rank(whole, {Scheme::kExpertParallel, rank, 2}));
  const auto ranks = make_ranked_runner(*device_, parts, options);
  const auto exact = make_reference_runner(whole, options);
  for (Runner* runner : {ranks.get(), exact.get()}) runner->start(2);
  // Inputs are gathered and results scattered; of one token a rank both keep all streams.
  for (const std::vector<std::vector<std::int32_t>>& tokens :
       {std::vector<std::vector<std::int32_t>>{{3, 141, 59, 26}, {53, 58}}, {{97}, {93}}})
    EXPECT_LT(
        mean_kl(exact->forward(tokens, LogitRows::kLast), ranks->forward(tokens, LogitRows::kLast)),
        1e-3);
}

// Positions before and at the edge of the window, of steps, of entries, of more than 512 entries.
TEST_P(FullWidthGpuTest, EveryKindOfLayer) {
  const auto verdicts = check_run(
      *device_,
      {.layers = {LayerKind::kWindow, LayerKind::kCsa, LayerKind::kHca, LayerKind::kCsa},
       .hash_layers = 2,
       .prompt = 2309,
       .step = 512,
       .decoded = 4,
       .positions = {0, 127, 128, 511, 512, 1279, 2046, 2051, 2303, 2308, 2309, 2311, 2312}});
  std::set<std::string> all = stages_of(LayerKind::kCsa);
  EXPECT_EQ(stage_names(verdicts), all);
  expect_all_met(verdicts, 1);  // sums of 4096
  expect_rms(verdicts);
}

}  // namespace
}  // namespace tilewright::model
