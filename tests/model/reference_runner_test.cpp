// The float64 model against stages that tools/golden/make_model_golden.py computed, which shares no
// code with it.
#include "model/float64/reference_runner.h"

#include "tilewright/tokenizer.h"

#include "base/file.h"
#include "model/text/generate.h"
#include "tests/model/tiny.h"

#include <cstdlib>
#include <cstring>

namespace tilewright::model {
namespace {

using nlohmann::json;

std::shared_ptr<const Weights> tiny() {
  static const auto weights = std::make_shared<const Weights>(kTinyModel);
  return weights;
}

GenerateOptions greedy(std::int64_t max_tokens, std::int64_t prefill_chunk) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.prefill_chunk = prefill_chunk;
  return options;
}

// 1e-4 is what the file's fp32 numbers allow with room: they are met to 2e-6.
TEST(ReferenceRunner, MeetsEveryStageInBothModes) {
  for (const char* mode : {"exact", "quant"}) {
    const auto results = trace_tiny(tiny(), mode);
    EXPECT_GT(results.size(), 55u) << mode;
    for (const TraceResult& result : results) {
      EXPECT_TRUE(result.is_met) << mode << " " << result.name << ": " << result.first;
      EXPECT_GT(result.rows, 0) << result.name;
    }
  }
}

TEST(ReferenceRunner, ChunksOfAPromptGiveTheSame) {
  EXPECT_EQ(first_difference(trace_tiny(tiny(), "quant", 144, 37)), "");
}

// Whoever has the bf16 weights and their reference.safetensors repeats the comparison in full:
//   TILEWRIGHT_REFERENCE_MODEL=FOLDER build/release/bin/model_tests --gtest_filter='*Original*'
TEST(ReferenceRunner, MeetsEveryStageOfTheOriginalModel) {
  const char* const folder = std::getenv("TILEWRIGHT_REFERENCE_MODEL");
  if (folder == nullptr)
    GTEST_SKIP() << "TILEWRIGHT_REFERENCE_MODEL names no folder with weights in bf16 and their "
                    "reference.safetensors";
  const auto weights = std::make_shared<const Weights>(folder);
  const std::string file = std::string(folder) + "/reference.safetensors";
  for (const std::string& run : trace_runs(file)) {
    SCOPED_TRACE(run);
    const std::string mode = run.substr(run.find('.') + 1);
    if (mode != "exact" && mode != "quant") continue;
    Trace trace(file, run.substr(0, run.find('.')), mode);
    const auto runner = make_reference_runner(weights, options_of(mode));
    runner->set_stage_sink([&](const Stage& stage) { trace.receive(stage); });
    const auto result = generate(*runner, {&trace.input_ids(), 1}, greedy(64, 1024));
    EXPECT_EQ(result.tokens[0], trace.continuation());
    EXPECT_TRUE(trace.missing().empty()) << testing::PrintToString(trace.missing());
    EXPECT_EQ(first_difference(trace.results()), "");
  }
}

TEST(ReferenceRunner, SequencesOfABatchDoNotMeet) {
  const std::vector<std::int32_t> a = Tokenizer::of_bytes().encode("What is NUMA? "),
                                  b = Tokenizer::of_bytes().encode("Py_DECREF(");
  const auto runner = make_reference_runner(tiny(), options_of("quant"));
  const std::vector<std::vector<std::int32_t>> both = {a, b};
  const GenerateOptions options = greedy(6, 5);
  const auto together = generate(*runner, both, options);
  EXPECT_EQ(together.counts.prompt_tokens, 24);
  EXPECT_EQ(together.counts.new_tokens, 12);
  EXPECT_EQ(generate(*runner, {&a, 1}, options).tokens[0], together.tokens[0]);
  EXPECT_EQ(generate(*runner, {&b, 1}, options).tokens[0], together.tokens[1]);
}

TEST(ReferenceRunner, PredictsTextBetterThanChance) {
  const MappedFile file(kTinyModel + "/heldout.txt");
  const auto text = Tokenizer::of_bytes().encode(file.text().substr(0, 65));
  const auto runner = make_reference_runner(tiny(), options_of("exact"));
  const auto exact = text_logits(*runner, {&text, 1});
  const auto score = score_text(exact[0], text);
  EXPECT_EQ(score.tokens, 64);
  EXPECT_LT(score.bits_per_token, 4);
  EXPECT_EQ(score_text(exact[0], text, &exact[0]).kl_nats, 0);
  EXPECT_EQ(score_text(exact[0], text, &exact[0]).same_best, 1);
  RunnerOptions narrow;
  narrow.kv = KvFormat::kNvfp4;
  const auto rounded = text_logits(*make_reference_runner(tiny(), narrow), {&text, 1});
  const double kl = score_text(rounded[0], text, &exact[0]).kl_nats;
  EXPECT_GT(kl, 1e-6);
  EXPECT_LT(kl, 0.1);
}

TEST(ReferenceRunner, BadCalls) {
  const auto runner = make_reference_runner(tiny(), {.max_tokens = 4});
  EXPECT_THROW(runner->start(0), Error);
  runner->start(2);
  using Lists = std::vector<std::vector<std::int32_t>>;
  EXPECT_THROW(runner->forward(Lists{{1}}, LogitRows::kLast), Error);
  EXPECT_THROW(runner->forward(Lists{{}, {}}, LogitRows::kLast), Error);
  EXPECT_THROW(runner->forward(Lists{{256}, {}}, LogitRows::kLast), Error);
  EXPECT_THROW(runner->forward(Lists{{1, 2, 3, 4, 5}, {}}, LogitRows::kLast), Error);
  EXPECT_EQ(runner->forward(Lists{{1, 2}, {}}, LogitRows::kAll).rows(), 2);
}

// --- mistakes that only whole layers show: each is made to the model, and its stage shows it ---

struct Slip {
  const char* name;
  const char* stage;  // the first that differs
  std::function<void(json&)> config;
  std::function<void(Weights&, std::vector<std::uint8_t>&)> weights;
};

void PrintTo(const Slip& slip, std::ostream* out) {
  *out << slip.name;
}

const Slip kSlips[] = {
    {"ThetaOfCompressedLayers", "layers.1.q", [](json& c) { c["compress_rope_theta"] = 1e4; }, {}},
    {"ThetaOfLayer0", "layers.0.q", [](json& c) { c["rope_theta"] = 1.6e5; }, {}},
    {"NoYarn", "layers.1.q", [](json& c) { c["rope_scaling"]["factor"] = 1.0; }, {}},
    {"OneSinkhornPass", "layers.0.attn_mix", [](json& c) { c["hc_sinkhorn_iters"] = 1; }, {}},
    {"RoutedScaling",
     "layers.0.router_weights",
     [](json& c) { c["routed_scaling_factor"] = 1.0; },
     {}},
    {"SwigluClamp", "layers.0.moe_out", [](json& c) { c["swiglu_limit"] = 0.5; }, {}},
    {"Window", "layers.0.lse", [](json& c) { c["sliding_window"] = 16; }, {}},
    {"NoSink",
     "layers.0.attn_o",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[0].attn.sink, -1e30f); }},
    {"NoApe",
     "layers.1.comp",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[1].attn.compressor->ape, 0.0f); }},
    {"HalvesOfCsa",
     "layers.1.comp",
     {},
     [](Weights& w, auto& copy) { swap_rows(w.layers[1].attn.compressor->wkv, copy); }},
    {"OutputGroups",
     "layers.0.attn_out",
     {},
     [](Weights& w, auto& copy) { swap_rows(w.layers[0].attn.wo_a, copy); }},
    {"NoSharedExpert",
     "layers.0.moe_out",
     {},
     [](Weights& w, auto& copy) {
       copy.assign(256 * 256, 0);  // codes of zeros
       w.layers[0].ffn.shared->down.codes.data = copy.data();
     }},
    {"QueryNorm",
     "layers.0.qr",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[0].attn.q_norm, 1.0f); }},
    {"RouterBias",
     "layers.1.router_ids",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[1].ffn.bias, 0.0f); }},
    {"HashTable",
     "layers.0.router_ids",
     {},
     [](Weights& w, auto&) { std::ranges::reverse(w.layers[0].ffn.tid2eid); }},
};

class Slips : public testing::TestWithParam<Slip> {};

TEST_P(Slips, ShowAtTheirStage) {
  const Slip& slip = GetParam();
  const ChangedModel changed([&](json& config) {
    if (slip.config) slip.config(config);
  });
  const auto weights = std::make_shared<Weights>(changed.path());
  std::vector<std::uint8_t> copy;
  if (slip.weights) slip.weights(*weights, copy);
  constexpr std::size_t kTokens = 24;  // positions 5 and 23 are in the file
  EXPECT_EQ(first_difference(trace_tiny(weights, "exact", kTokens, kTokens)), slip.stage);
}

INSTANTIATE_TEST_SUITE_P(Model, Slips, testing::ValuesIn(kSlips),
                         [](const auto& slip) { return std::string(slip.param.name); });

}  // namespace
}  // namespace tilewright::model
