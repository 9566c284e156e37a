// Every stage of the kernel path against float64 from its own inputs, within derived bounds; and of
// every mistake that hides below the noise of the logits, that its stage shows it.
#include "model/float64/stage_check.h"

#include "tilewright/hyper_connection.h"

#include "formats/minifloat.h"
#include "model/kernel_runner/make.h"
#include "reference/model/hyper_connection.h"
#include "reference/rotation/hadamard.h"
#include "reference/rotation/rope.h"
#include "reference/sparse_attention/indexer.h"
#include "tests/model/random_checkpoint.h"
#include "tests/model/stage_verdicts.h"
#include "tests/model/tiny.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

namespace tilewright::model {
namespace {

using nlohmann::json;

constexpr std::int64_t kTokens = 28;

// Seven entries of which four are chosen, windows that have rows behind them, experts to choose
// from.
CheckpointSizes small_sizes() {
  return {.experts = 4, .window = 16, .ratios = {0, 4}};
}

// A stage as a sink was told of it.
struct Recorded {
  std::string name;
  std::int64_t layer, first_row;
  std::vector<std::int64_t> shape;
  Doubles values;

  Stage stage() const {
    return {.name = name,
            .layer = layer,
            .sequence = 0,
            .first_row = first_row,
            .shape = shape,
            .values = values};
  }
};

// All stages of a run, in order.
class Recording {
 public:
  void add(const Stage& s) {
    if (s.sequence == 0)
      stages.push_back(
          {std::string(s.name), s.layer, s.first_row, s.shape, {s.values.begin(), s.values.end()}});
  }
  // Of the first step.
  Recorded& find(const std::string& name, std::int64_t layer) {
    const auto found = std::ranges::find_if(
        stages, [&](const Recorded& r) { return r.name == name && r.layer == layer; });
    if (found == stages.end()) throw std::logic_error("no stage " + name);
    return *found;
  }
  std::vector<Recorded> stages;
};

std::vector<std::int32_t> some_text(std::int64_t count, std::int64_t vocab) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + i * 3 + i / 5) % vocab));
  return tokens;
}

struct RunSizes {
  std::int64_t tokens = kTokens, first_chunk = kTokens;
  std::int64_t vocab = 32;
};

Recording record(const Device& device, std::shared_ptr<const Weights> weights,
                 const RunnerOptions& options, const RunSizes& sizes) {
  Recording recording;
  const auto runner = make_kernel_runner(device, std::move(weights), options);
  runner->set_stage_sink([&](const Stage& stage) { recording.add(stage); });
  runner->start(1);
  const auto tokens = some_text(sizes.tokens, sizes.vocab);
  for (std::int64_t first = 0; first < sizes.tokens;) {
    const std::int64_t last = first == 0 ? sizes.first_chunk : first + 1;
    const std::vector<std::int32_t> chunk(tokens.begin() + first, tokens.begin() + last);
    runner->forward({&chunk, 1}, LogitRows::kAll);
    first = last;
  }
  return recording;
}

std::vector<StageVerdict> check(const Recording& recording, std::shared_ptr<const Weights> weights,
                                const RunnerOptions& options, const RunSizes& sizes) {
  StageCheck stages(std::move(weights), options, some_text(sizes.tokens, sizes.vocab));
  for (const Recorded& recorded : recording.stages) stages.receive(recorded.stage());
  return stages.verdicts();
}

class StageCheckTest : public ChipTest<StageCheckTest, false> {
 protected:
  // The small model's run, made once for a device.
  const Recording& recording() {
    static std::map<std::string, Recording> runs;
    const auto found = runs.find(GetParam());
    if (found != runs.end()) return found->second;
    return runs.emplace(GetParam(), record(*device_, weights(), {.max_tokens = 64}, kSizes))
        .first->second;
  }
  static std::shared_ptr<const Weights> weights() {
    static const auto all = std::make_shared<const Weights>(checkpoint().folder());
    return all;
  }
  static const RandomCheckpoint& checkpoint() {
    static const RandomCheckpoint all(small_sizes());
    return all;
  }
  // A prompt in one piece, then steps of one token.
  static constexpr RunSizes kSizes = {.first_chunk = kTokens - 2};
};
TILEWRIGHT_ON_EVERY_CHIP(StageCheckTest);

TEST_P(StageCheckTest, EveryStageIsWithinItsBound) {
  const auto verdicts = check(recording(), weights(), {.max_tokens = 64}, kSizes);
  EXPECT_EQ(verdicts.size(), 49u);
  expect_all_met(verdicts);
}

TEST_P(StageCheckTest, RowsInOtherFormats) {
  const RandomCheckpoint one({.ratios = {4}});
  const auto own = std::make_shared<const Weights>(one.folder());
  const RunSizes sizes = {.tokens = 9, .first_chunk = 9};
  for (const KvFormat kv : {KvFormat::kBf16, KvFormat::kNvfp4}) {
    RunnerOptions options = {.kv = kv, .max_tokens = 64};
    if (kv == KvFormat::kBf16) options.index = IndexFormat::kFp8;
    expect_all_met(check(record(*device_, own, options, sizes), own, options, sizes));
  }
}

// Hidden size and experts of V4-Flash: the hyper-connection before the experts multiplies with the
// router, for two tokens and for one.
TEST_P(StageCheckTest, RouterOfFullWidthInTheHyperConnection) {
  const HyperConnection connection(*device_, {.tokens = 2, .hidden = 4096, .has_merge = true});
  if (!connection.routes({.format = NumberFormat::kBf16, .n = 256, .k = 4096}))
    GTEST_SKIP() << "the router is a launch of its own here";
  const RandomCheckpoint wide({.hidden = 4096,
                               .experts = 256,
                               .topk = 6,
                               .inter = 16,
                               .hash_layers = 0,
                               .ratios = {0},
                               .drawn_experts = 1});
  const auto own = std::make_shared<const Weights>(wide.folder());
  const RunSizes sizes = {.tokens = 3, .first_chunk = 2};
  const RunnerOptions options = {.max_tokens = 64};
  const auto verdicts = check(record(*device_, own, options, sizes), own, options, sizes);
  EXPECT_EQ(first_beyond(verdicts), "");
  for (const char* name : {"layers.0.router_scores", "layers.0.router_ids"}) {
    const auto found = std::ranges::find(verdicts, name, &StageVerdict::name);
    ASSERT_NE(found, verdicts.end()) << name;
    EXPECT_EQ(found->rows, 3) << name;
  }
}

// --- mistakes that whoever writes weights or config.json could make: the kernels' run is right,
// --- and what is expected of it is wrong

struct Expectation {
  const char* name;
  const char* stage;
  std::function<void(json&)> config;
  std::function<void(Weights&, std::vector<std::uint8_t>&)> weights;
};

const Expectation kExpectations[] = {
    {"Window", "layers.0.lse", [](json& c) { c["sliding_window"] = 15; }, {}},
    {"NoYarn", "layers.1.q", [](json& c) { c["rope_scaling"]["factor"] = 1.0; }, {}},
    {"ThetaOfLayer0", "layers.0.q", [](json& c) { c["rope_theta"] = 1.6e5; }, {}},
    {"ThetaOfCompressedLayers", "layers.1.q", [](json& c) { c["compress_rope_theta"] = 1e4; }, {}},
    {"OneSinkhornPass", "layers.0.attn_mix", [](json& c) { c["hc_sinkhorn_iters"] = 1; }, {}},
    {"RoutedScaling",
     "layers.0.router_weights",
     [](json& c) { c["routed_scaling_factor"] = 1.0; },
     {}},
    {"SwigluClamp", "layers.0.moe_out", [](json& c) { c["swiglu_limit"] = 0.5; }, {}},
    {"RouterBias",
     "layers.1.router_ids",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[1].ffn.bias, 0.0f); }},
    {"HashTable",
     "layers.0.router_ids",
     {},
     [](Weights& w, auto&) { std::ranges::reverse(w.layers[0].ffn.tid2eid); }},
    {"NoApe",
     "layers.1.comp_fp8",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[1].attn.compressor->ape, 0.0f); }},
    {"HalvesOfCsa",
     "layers.1.comp_fp8",
     {},
     [](Weights& w, auto& copy) { swap_rows(w.layers[1].attn.compressor->wkv, copy); }},
    {"NoApeOfKeys",
     "layers.1.idx_k",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[1].attn.indexer->compressor.ape, 0.0f); }},
    {"NoSink",
     "layers.0.attn_o",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[0].attn.sink, -1e30f); }},
    {"OutputGroups",
     "layers.0.attn_out",
     {},
     [](Weights& w, auto& copy) { swap_rows(w.layers[0].attn.wo_a, copy); }},
    {"QueryNorm",
     "layers.0.qr",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[0].attn.q_norm, 1.0f); }},
    {"KvNorm",
     "layers.0.kv_fp8",
     {},
     [](Weights& w, auto&) { std::ranges::fill(w.layers[0].attn.kv_norm, 1.0f); }},
    {"NoSharedExpert",
     "layers.0.moe_out",
     {},
     [](Weights& w, auto& copy) {
       copy.assign(128 * 128 * 2, 0);
       w.layers[0].ffn.shared->down.codes.data = copy.data();
     }},
};

TEST_P(StageCheckTest, WrongExpectationsShowAtTheirStage) {
  for (const Expectation& wrong : kExpectations) {
    SCOPED_TRACE(wrong.name);
    const ChangedModel changed(
        [&](json& config) {
          if (wrong.config) wrong.config(config);
        },
        checkpoint().folder());
    const auto other = std::make_shared<Weights>(changed.path());
    std::vector<std::uint8_t> copy;
    if (wrong.weights) wrong.weights(*other, copy);
    EXPECT_EQ(first_beyond(check(recording(), other, {.max_tokens = 64}, kSizes)), wrong.stage);
  }
}

// --- mistakes of a kernel: one stage is made again, wrong, from what the kernels had stored before

// What the kernels of one layer stored in the first step, as attention takes it.
class Tampered {
 public:
  Tampered(const Recording& recording, const Config& config) : run_(recording), config_(config) {}

  Recorded& at(const char* name, std::int64_t layer) { return run_.find(name, layer); }
  const Recording& recording() const { return run_; }
  const Config& config() const { return config_; }

  Doubles rows(const std::string& prefix, std::int64_t layer) {
    const Doubles &codes = run_.find(prefix + "_fp8", layer).values,
                  &scales = run_.find(prefix + "_scale", layer).values,
                  &rope = run_.find(prefix + "_rope", layer).values;
    Doubles all;
    for (std::size_t r = 0; r < codes.size() / 448; ++r) {
      for (std::size_t i = r * 448; i < (r + 1) * 448; ++i)
        all.push_back(decode(kE4m3, static_cast<std::uint32_t>(codes[i])) *
                      std::exp2(scales[i / 64] - 127));
      all.insert(all.end(), rope.begin() + static_cast<std::ptrdiff_t>(r * 64),
                 rope.begin() + static_cast<std::ptrdiff_t>((r + 1) * 64));
    }
    return all;
  }
  std::vector<std::int32_t> positions(std::int64_t late = 0) {
    std::vector<std::int32_t> all;
    for (std::int64_t p = 0; p < at("q", 0).shape[0]; ++p)
      all.push_back(static_cast<std::int32_t>(p - late));
    return all;
  }
  // lse of layer 1 as if tokens attended these entries.
  void set_lse(const std::vector<std::int32_t>& entries, std::int64_t width) {
    ThreadPool pool;
    const Doubles kv = rows("kv", 1), compressed = rows("comp", 1);
    at("lse", 1).values =
        attend64(config_, Rows(pool), {}, at("q", 1).values, positions(),
                 {.kv = kv, .compressed = compressed, .entries = entries, .width = width})
            .lse;
  }

 private:
  Recording run_;
  const Config& config_;
};

reference::HyperMix mix_of(const Doubles& rows) {
  reference::HyperMix mix;
  for (auto row = rows.begin(); row != rows.end(); row += 24) {
    mix.pre.insert(mix.pre.end(), row, row + 4);
    mix.post.insert(mix.post.end(), row + 4, row + 8);
    mix.comb.insert(mix.comb.end(), row + 8, row + 24);
  }
  return mix;
}

// streams_mid of layer 1 with another mix.
void merge_again(Tampered& run, const std::function<void(reference::HyperMix&)>& change) {
  reference::HyperMix mix = mix_of(run.at("attn_mix", 1).values);
  change(mix);
  Recorded& to = run.at("streams_mid", 1);
  to.values =
      reference::hyper_post({.tokens = to.shape[0], .streams = 4, .hidden = run.config().hidden},
                            run.at("streams", 0).values, run.at("attn_out", 1).values, mix);
}

// The last 64 of rows of `dim` turned by `positions`, and back, by pairs.
Doubles turn(const Doubles& x, std::int64_t heads, std::int64_t dim,
             const std::vector<std::int32_t>& positions, const Doubles& frequencies,
             bool is_inverse = false) {
  reference::RopeParams params = {.tokens = static_cast<std::int64_t>(positions.size()),
                                  .heads = heads,
                                  .head_dim = dim,
                                  .rotary_dim = 64};
  if (is_inverse) params.direction = reference::RopeDirection::kInverse;
  return reference::rope(params, x, positions, frequencies);
}

struct Mistake {
  const char* name;
  const char* stage;
  std::function<void(Tampered&)> make;
};

const Mistake kMistakes[] = {
    {"NewestEntryOneTokenLate", "layers.1.lse",
     [](Tampered& run) {
       const Recorded selected = run.at("idx_selected", 1);
       auto entries = std::vector<std::int32_t>(selected.values.begin(), selected.values.end());
       for (std::size_t i = 0; i < entries.size(); ++i) {
         const auto position = static_cast<std::int32_t>(i) / 4;
         if (entries[i] >= reference::visible_entries(position - 1, 4)) entries[i] = -1;
       }
       run.set_lse(entries, 4);
     }},
    {"IndexerIgnored", "layers.1.lse",
     [](Tampered& run) {
       std::int64_t width = 0;
       const auto entries = all_entries(run.positions(), 4, width);
       run.set_lse(entries, width);
     }},
    {"NoEntries", "layers.1.lse", [](Tampered& run) { run.set_lse({}, 0); }},
    {"EntriesRotatedAtTheLastToken", "layers.1.comp_rope",
     [](Tampered& run) {
       Recorded& rope = run.at("comp_rope", 1);
       const auto rows = static_cast<std::size_t>(rope.shape[0]);
       rope.values = turn(rope.values, 1, 64, std::vector<std::int32_t>(rows, 3),
                          layer_frequencies(run.config(), LayerKind::kCsa));
     }},
    {"HalvesInsteadOfPairs", "layers.0.q",
     [](Tampered& run) {
       Recorded& q = run.at("q", 0);
       const Doubles frequencies = layer_frequencies(run.config(), LayerKind::kWindow);
       q.values = turn(q.values, 2, 512, run.positions(), frequencies, true);
       for (std::size_t row = 0; row < q.values.size() / 512; ++row) {
         for (std::size_t i = 0; i < 32; ++i) {
           double &a = q.values[row * 512 + 448 + i], &b = q.values[row * 512 + 480 + i];
           const double angle = static_cast<double>(row / 2) * frequencies[i], old = a;
           a = old * std::cos(angle) - b * std::sin(angle);
           b = b * std::cos(angle) + old * std::sin(angle);
         }
       }
     }},
    {"NoNormOfQueryHeads", "layers.0.q",
     [](Tampered& run) {
       for (double& x : run.at("q", 0).values) x *= 1.25;
     }},
    {"NoInverseRotation", "layers.1.attn_o_inv_rope",
     [](Tampered& run) {
       Recorded& o = run.at("attn_o_inv_rope", 1);
       o.values =
           turn(o.values, 2, 64, run.positions(), layer_frequencies(run.config(), LayerKind::kCsa));
     }},
    {"HadamardOnOneSide", "layers.1.idx_scores",
     [](Tampered& run) {
       Recorded& q = run.at("idx_q", 1);
       const Doubles other = reference::indexer_transform(128, q.values);
       const Recorded& k = run.at("idx_k", 1);
       Recorded& scores = run.at("idx_scores", 1);
       std::vector<std::int32_t> visible;
       for (const std::int32_t p : run.positions())
         visible.push_back(static_cast<std::int32_t>(reference::visible_entries(p, 4)));
       scores.values = reference::indexer_scores({scores.shape[0], 2, 128}, other, k.values,
                                                 run.at("idx_w", 1).values, visible);
     }},
    {"IndexerWeightsWithoutSign", "layers.1.idx_w",
     [](Tampered& run) {
       for (double& w : run.at("idx_w", 1).values) w = std::abs(w);
     }},
    {"LowestEntriesInsteadOfTheBest", "layers.1.idx_selected",
     [](Tampered& run) {
       Recorded& selected = run.at("idx_selected", 1);
       for (std::size_t i = 0; i < selected.values.size(); ++i)
         if (selected.values[i] >= 0) selected.values[i] = static_cast<double>(i % 4);
     }},
    {"CombTransposed", "layers.1.streams_mid",
     [](Tampered& run) {
       merge_again(run, [](reference::HyperMix& mix) {
         const Doubles comb = mix.comb;
         for (std::size_t i = 0; i < comb.size(); ++i)
           mix.comb[i] = comb[i / 16 * 16 + i % 4 * 4 + i % 16 / 4];
       });
     }},
    {"PostWithoutItsFactor", "layers.1.streams_mid",
     [](Tampered& run) {
       merge_again(run, [](reference::HyperMix& mix) {
         for (double& post : mix.post) post /= 2;
       });
     }},
    {"SecondExpertIsNotTheSecondBest", "layers.1.router_ids",
     [](Tampered& run) {
       // Of four experts one that was not chosen.
       Doubles& ids = run.at("router_ids", 1).values;
       for (std::size_t t = 0; t < ids.size() / 2; ++t)
         for (double other = 0; other < 4; ++other)
           if (other != ids[2 * t] && other != ids[2 * t + 1]) {
             ids[2 * t] = other;
             break;
           }
     }},
    {"OneCodeOfTheWindow", "layers.0.kv_fp8",
     [](Tampered& run) {
       Doubles& codes = run.at("kv_fp8", 0).values;
       for (std::size_t i = 0; i < 448; ++i)  // of one row; open ones are few
         codes[i] = codes[i] == 0x7e ? 0x7d : codes[i] + 1;
     }},
    {"AScaleOfTheWindow", "layers.0.kv_fp8",
     [](Tampered& run) { run.at("kv_scale", 0).values[3] += 1; }},
};

TEST_P(StageCheckTest, MistakesShowAtTheirStage) {
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    Tampered run(recording(), weights()->config());
    mistake.make(run);
    EXPECT_EQ(first_beyond(check(run.recording(), weights(), {.max_tokens = 64}, kSizes)),
              mistake.stage);
  }
}

// Entries of HCA come with the 128th token, and windows lose rows then.
TEST_P(StageCheckTest, EntriesOfHca) {
  const RandomCheckpoint one({.window = 32, .ratios = {128}});
  const auto own = std::make_shared<const Weights>(one.folder());
  const RunnerOptions options = {.max_tokens = 256};
  const RunSizes sizes = {.tokens = 130, .first_chunk = 128};
  const Recording run = record(*device_, own, options, sizes);
  expect_all_met(check(run, own, options, sizes));
  // Entries of zeros instead: the first stage that is made of them is the entries themselves.
  Recording wrong = run;
  for (Recorded& recorded : wrong.stages) {
    if (recorded.name != "comp_fp8") continue;
    for (double& code : recorded.values) code = 0;
  }
  EXPECT_EQ(first_beyond(check(wrong, own, options, sizes)), "layers.0.comp_fp8");
}

}  // namespace
}  // namespace tilewright::model
