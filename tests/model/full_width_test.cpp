// Layers of V4-Flash at their full width, with random weights in the types of the checkpoint: FP8
// in blocks of 128 x 128, MXFP4 experts. Every stage against float64, from what the kernels had
// stored before it (stage_check.h), at some positions.
//
// On a GPU    a prompt that ends within blocks, tiles and steps, and decoding; 256 experts; more
//             entries than the indexer chooses
// Simulated   a layer of each kind with few tokens and 32 experts; the router's 256 are in
//             StageCheckTest.RouterOfFullWidthInTheHyperConnection, entries of HCA in EntriesOfHca
#include "model/checkpoint/synthetic.h"
#include "model/kernel_runner/make.h"
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
double most_rms(std::string_view stage) {
  const double half = 0x1p-8 / std::sqrt(3.0);
  const auto sums = [](std::int64_t n) { return 0x1p-23 * std::sqrt(static_cast<double>(n)); };
  if (stage == "attn_mix" || stage == "ffn_mix" || stage == "head_mix") return sums(4 * 4096);
  if (stage == "router_scores" || stage == "idx_w" || stage == "logits") return sums(4096);
  if (stage == "router_weights") return sums(6);
  if (stage == "lse") return sums(512);
  if (stage == "idx_scores") return sums(64);  // products of codes are exact
  if (stage == "attn_out" || stage == "moe_out") return 0x1p-7 * std::sqrt(sums(4096) * 0x1p9);
  return half;
}

void expect_rms(const std::vector<StageVerdict>& verdicts) {
  for (const StageVerdict& v : verdicts)
    EXPECT_LE(v.relative_rms(), most_rms(v.name.substr(v.name.rfind('.') + 1))) << v.name;
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
