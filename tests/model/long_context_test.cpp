// Long contexts: steps of eight tokens at positions 65532 and 131064 against the float64 model, and
// at the end of a million tokens; at a narrow width, and on a GPU at that of V4-Flash.
//
// What lies before the step is placed, not computed: rows of windows and entries, keys of the
// indexer and states of compressors are drawn, and the same for both sides. So this covers
// positions, YaRN's angles, page tables, lists, the choice among 32,768 entries, what completes an
// entry, and attention over all that. It does not cover how the placed rows come to be (that is the
// same kernel at every position), errors that would add up over 131,072 tokens, or text.
#include "formats/index_page.h"
#include "formats/kv_layout.h"
#include "formats/minifloat.h"
#include "model/checkpoint/synthetic.h"
#include "model/float64/attention64.h"
#include "model/float64/layer64.h"
#include "model/kernel_runner/step.h"
#include "tests/model/random_checkpoint.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>

namespace tilewright::model {
namespace {

class LongContextTest : public HopperTest<LongContextTest, false> {};
TILEWRIGHT_ON_EVERY_HOPPER(LongContextTest);

class LongContextGpuTest : public HopperTest<LongContextGpuTest, false> {};
INSTANTIATE_TEST_SUITE_P(GpuTest, LongContextGpuTest, ::testing::Values("cuda"),
                         [](const auto&) { return "cuda"; });

constexpr std::int64_t kNewTokens = 8, kDims = 512;
constexpr std::int64_t kLongContext = 131072;

RunnerOptions long_options(std::int64_t max_tokens, KvFormat kv) {
  return {.kv = kv, .index = IndexFormat::kFp8, .max_tokens = max_tokens};
}

// Values of stages by layer and name.
using StageKey = std::pair<std::int64_t, std::string>;
using StageValues = std::map<StageKey, Doubles>;

StageKey key(std::int64_t layer, std::string_view name) {
  return {layer, std::string(name)};
}

// A model whose only sequence begins where it is told to.
struct LongStep {
  LongStep(const Device& on, std::shared_ptr<const Weights> from, const RunnerOptions& options)
      : device(on),
        stream(device),
        weights(std::move(from)),
        model(device, *weights),
        memory(device, weights->config(), options, 1, kNewTokens),
        at(device, weights->config(), model, memory, {}, kNewTokens),
        step(device, weights->config(), model, memory, {}, at, {.own = kNewTokens}),
        workspace(device, static_cast<std::int64_t>(step.workspace_bytes())) {}

  StageValues run(std::int64_t start) {
    std::vector<std::int32_t> inputs = {0, kNewTokens, static_cast<std::int32_t>(start)};
    for (std::int32_t i = 0; i < kNewTokens; ++i) inputs.push_back((7 * i + 3) % 32);
    at.inputs.buffer().upload(std::as_bytes(std::span(inputs)));
    StageValues values;
    const StageSink sink = [&](const Stage& s) {
      values[key(s.layer, s.name)].assign(s.values.begin(), s.values.end());
    };
    StageTap tap(device, sink, {{0, 0, start, kNewTokens}});
    step.run({.model = model,
              .memory = memory,
              .at = at,
              .longest = kNewTokens,
              .tap = &tap,
              .stream = stream.handle()},
             workspace.get());
    stream.synchronize();
    return values;
  }

  Device device;
  Stream stream;
  std::shared_ptr<const Weights> weights;
  ModelArrays model;
  KernelMemory memory;
  Activations at;
  KernelStep step;
  ByteArray workspace;
};

// Drawn numbers that both sides hold exactly.
class Placing {
 public:
  explicit Placing(std::uint64_t seed) : random_(seed) {}

  // A bf16 in (-2, 2): the upper half of an fp32.
  std::uint16_t bf16() {
    const auto x = static_cast<float>(random_.uniform(-1.7, 1.7));
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  }
  static double value(std::uint16_t code) {
    return static_cast<double>(std::bit_cast<float>(std::uint32_t{code} << 16));
  }
  // An e4m3 of 2^-3 to 2^1, of either sign.
  std::uint8_t e4m3() {
    const std::uint64_t bits = random_.bits();
    const std::uint64_t exponent = 4 + (bits >> 4) % 4;
    return static_cast<std::uint8_t>((bits & 1) << 7 | exponent << 3 | (bits >> 1 & 7));
  }
  double number() { return random_.uniform(-1, 1); }

 private:
  reference::Random random_;
};

void put(std::vector<std::uint8_t>& bytes, std::int64_t at, const auto& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Rows [count, 512] of a cache in bf16 at logical rows row_of(0), row_of(1), ...
void place_rows(ByteArray& pages, const PageTable& table, const KvCacheLayout& layout,
                std::int64_t count, const std::function<std::int64_t(std::int64_t)>& row_of,
                Placing& draw, double* values) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(pages.count()), 0);
  const KvPageLayout at = {KvFormat::kBf16, static_cast<std::int32_t>(layout.page_size),
                           layout.page_stride_bytes};
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t row = table.physical(0, row_of(j));
    const std::int64_t first = at.data_offset(row / at.page_size, row % at.page_size);
    for (std::int64_t i = 0; i < kDims; ++i) {
      const std::uint16_t code = draw.bf16();
      put(bytes, first + 2 * i, code);
      *values++ = Placing::value(code);
    }
  }
  pages.buffer().upload(std::as_bytes(std::span(bytes)));
}

void place_keys(ByteArray& pages, const PageTable& table, std::int64_t count, Placing& draw,
                Doubles& values) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(pages.count()), 0);
  constexpr auto kFormat = tilewright::IndexFormat::kFp8;
  const IndexPageLayout at = {kFormat, static_cast<std::int32_t>(table.page_size()),
                              index_default_page_stride(kFormat, table.page_size())};
  std::array<double, 256> decoded = {};
  for (std::uint32_t code = 0; code < 256; ++code) decoded[code] = decode(kE4m3, code);
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t row = table.physical(0, j);
    const std::int64_t page = row / at.page_size, slot = row % at.page_size;
    for (std::int64_t i = 0; i < kIndexDims; ++i) {
      const std::uint8_t code = draw.e4m3();
      put(bytes, at.data_offset(page, slot) + i, code);
      values.push_back(decoded[code]);
    }
    put(bytes, at.scale_offset(page, slot), 1.0F);
  }
  pages.buffer().upload(std::as_bytes(std::span(bytes)));
}

// The tokens that entries to come still read, in the state and in its float64 twin.
void place_state(ByteArray& state, const Compressor& compressor, const Doubles& ape,
                 std::int64_t start, Placing& draw, Compressed64& twin) {
  const CompressorKind kind = compressor.problem().kind;
  const std::int64_t width = compressor_width(kind), slots = compressor_slots(kind);
  const std::int64_t ring = compressor.problem().ring, ratio = compressor_ratio(kind);
  std::vector<float> rows(static_cast<std::size_t>(ring * 2 * width), 0.0F);
  twin.state = reference::CompressorState(twin.params, kMostTakenBack, start - slots);
  for (std::int64_t p = start - slots; p < start; ++p) {
    Doubles values, gates;
    for (std::int64_t c = 0; c < width; ++c) {
      values.push_back(draw.number());
      gates.push_back(draw.number());
      const auto at = static_cast<std::size_t>(p % ring * 2 * width + c);
      rows[at] = static_cast<float>(values.back());
      rows[at + static_cast<std::size_t>(width)] =
          static_cast<float>(gates.back() + ape[static_cast<std::size_t>(p % ratio * width + c)]);
    }
    twin.state.push(values, gates, ape);
  }
  state.buffer().upload(std::as_bytes(std::span(rows)));
}

// All that layer `i` remembers of the tokens before `start`.
LayerMemory64 place_layer(LongStep& at, const Layer64& weights, std::int64_t i,
                          std::int64_t start) {
  const Config& config = at.weights->config();
  const LayerKind kind = config.kind(i);
  LayerMemory& layer = at.memory.layers[static_cast<std::size_t>(i)];
  LayerMemory64 twin(config, kind);
  Placing draw(static_cast<std::uint64_t>(100 * start + i));
  const std::int64_t seen = config.window - 1;
  twin.kv.reserve(static_cast<std::size_t>((start + kNewTokens) * kDims));
  twin.kv.resize(static_cast<std::size_t>(start * kDims));
  place_rows(
      layer.window, at.memory.window_table, at.memory.window_layout, seen,
      [&](std::int64_t j) { return (start - seen + j) % at.memory.ring(); }, draw,
      twin.kv.data() + (start - seen) * kDims);
  const CompressedCache& cache = *at.memory.entries(kind);
  const std::int64_t entries = start / compressor_ratio(cache.compressor.problem().kind);
  twin.compressed->rows.resize(static_cast<std::size_t>(entries * kDims));
  place_rows(
      *layer.entries, cache.table, cache.layout, entries, [](std::int64_t j) { return j; }, draw,
      twin.compressed->rows.data());
  place_state(*layer.state, cache.compressor, weights.compressor.ape, start, draw,
              *twin.compressed);
  if (kind != LayerKind::kCsa) return twin;
  const CompressedCache& keys = *at.memory.index;
  place_keys(*layer.index_keys, keys.table, entries, draw, twin.index_keys->rows);
  place_state(*layer.index_state, keys.compressor, weights.indexer.compressor.ape, start, draw,
              *twin.index_keys);
  return twin;
}

// Infinite for arrays of different sizes, or none.
double relative_rms(const Doubles& got, const Doubles& want) {
  if (got.size() != want.size() || got.empty()) return std::numeric_limits<double>::infinity();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i]) && got[i] == want[i]) continue;
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

// Entries chosen by both, of each token's `topk`: the fewest.
std::int64_t fewest_in_common(const Doubles& got, const Doubles& want, std::int64_t topk) {
  std::int64_t fewest = topk;
  for (std::int64_t t = 0; t < kNewTokens; ++t) {
    const auto row = [&](const Doubles& all) {
      Doubles entries(all.begin() + t * topk, all.begin() + (t + 1) * topk);
      std::ranges::sort(entries);
      return entries;
    };
    Doubles both;
    std::ranges::set_intersection(row(got), row(want), std::back_inserter(both));
    fewest = std::min(fewest, std::ssize(both));
  }
  return fewest;
}

// Attention of the float64 model over the entries that the kernels chose.
Doubles attended_by_choice(const Config& config, const Layer64& weights, const LayerMemory64& twin,
                           const Doubles& q, const Doubles& chosen, std::int64_t start) {
  const std::vector<std::int32_t> entries(chosen.begin(), chosen.end());
  std::vector<std::int32_t> positions;
  for (std::int64_t t = 0; t < kNewTokens; ++t)
    positions.push_back(static_cast<std::int32_t>(start + t));
  ThreadPool pool;
  return attend64(config, Rows(pool), weights.sink, q, positions,
                  {.kv = twin.kv,
                   .compressed = twin.compressed->rows,
                   .entries = entries,
                   .width = std::ssize(entries) / kNewTokens})
      .out;
}

// Stages of a layer's attention in float64, from the input that the kernels had.
StageValues exact_stages(const Config& config, const RunnerOptions& options, const Layer64& weights,
                         std::int64_t layer, std::int64_t start, const Doubles& input,
                         LayerMemory64& twin) {
  StageValues values;
  const StageSink sink = [&](const Stage& s) {
    values[key(s.layer, s.name)].assign(s.values.begin(), s.values.end());
  };
  Stages stages(sink, 0, start);
  stages.set_layer(layer);
  ThreadPool pool;
  Attention64(config, options, config.kind(layer), weights, Rows(pool))
      .run(input, start, twin, stages);
  return values;
}

struct LongModel {
  std::shared_ptr<const Weights> weights;
  std::int64_t most_others;  // of the entries that a token chooses
  bool has_same_entries;     // that the step completes, to the bit
};

// Each layer by the input that the kernels had, at two positions.
void expect_float64(const Device& device, const LongModel& model) {
  const Config& config = model.weights->config();
  const RunnerOptions options = long_options(kLongContext, KvFormat::kBf16);
  LongStep kernels(device, model.weights, options);
  std::vector<Layer64> exact;
  for (const LayerWeights& layer : model.weights->layers)
    exact.push_back(to_doubles(layer, /*has_experts=*/false));
  for (const std::int64_t start : {std::int64_t{65532}, kLongContext - kNewTokens}) {
    std::vector<LayerMemory64> twins;
    for (std::int64_t i = 0; i < config.num_layers(); ++i)
      twins.push_back(place_layer(kernels, exact[static_cast<std::size_t>(i)], i, start));
    StageValues got = kernels.run(start);
    for (std::int64_t i = 0; i < config.num_layers(); ++i) {
      SCOPED_TRACE(fmt::format("layer {} at {}", i, start));
      const auto idx = static_cast<std::size_t>(i);
      const Layer64& layer = exact[idx];
      StageValues want =
          exact_stages(config, options, layer, i, start, got[key(i, "attn_in")], twins[idx]);
      const auto rms = [&](const char* name) {
        const double off = relative_rms(got[key(i, name)], want[key(i, name)]);
        if (std::getenv("TILEWRIGHT_SHOW_STAGES") != nullptr)
          std::printf("%ld, layer %ld, %-10s rms %.3g\n", start, i, name, off);
        return off;
      };
      if (config.kind(i) == LayerKind::kCsa) {
        const Doubles& chosen = got[key(i, "idx_selected")];
        EXPECT_GE(fewest_in_common(chosen, want[key(i, "idx_selected")], config.index_topk),
                  config.index_topk - model.most_others);
        EXPECT_LT(rms("idx_scores"), 0.05);
        want[key(i, "attn_o")] =
            attended_by_choice(config, layer, twins[idx], want[key(i, "q")], chosen, start);
      } else {
        EXPECT_LT(rms("attn_out"), 0.013);
      }
      EXPECT_FALSE(got[key(i, "comp")].empty());
      if (model.has_same_entries) {
        EXPECT_EQ(got[key(i, "comp")], want[key(i, "comp")]);
      } else {
        EXPECT_LT(rms("comp"), 0x1p-8 / std::sqrt(3.0));
      }
      EXPECT_LT(rms("q"), 0.01);
      EXPECT_LT(rms("lse"), 0.005);
      EXPECT_LT(rms("attn_o"), 0.012);
      twins[idx] = LayerMemory64(config, config.kind(i));  // it had half a gigabyte
    }
  }
}

// Tolerances of rms are three times what was measured: 0.0033 of q (a position that is off by one
// changes it by 0.08, angles without YaRN by 0.3), 0.0015 of lse, 0.017 of scores, 0.004 of
// attention; two of 64 entries were others, by scores that are as good as equal. Entries that the
// step completes have the same bits.
TEST_P(LongContextTest, StepsAt64kAnd128kAreThoseOfTheFloat64Model) {
  const RandomCheckpoint checkpoint({.index_topk = 64, .hash_layers = 0, .ratios = {4, 128}});
  expect_float64(*device_, {.weights = std::make_shared<Weights>(checkpoint.folder()),
                            .most_others = 6,
                            .has_same_entries = true});
}

// CSA and HCA as V4-Flash has them, but for the experts, which do not know of positions.
std::shared_ptr<const Weights> wide_layers() {
  Config config = synthetic_config("flash");
  config.layers = {LayerKind::kCsa, LayerKind::kHca};
  config.hash_layers = config.draft_layers = 0;
  config.experts = 8;
  config.vocab = 256;
  return synthetic_weights({.config = config});
}

// Of 32,768 scores 512 are chosen, where 30 others lie within 0.017 of their deviation, three times
// as many are allowed. Sums of 4096 may round an entry another way, half a unit in the last place.
TEST_P(LongContextGpuTest, StepsAt64kAnd128kAtFullWidth) {
  expect_float64(*device_,
                 {.weights = wide_layers(), .most_others = 90, .has_same_entries = false});
}

// Caches for 2^20 tokens, zeros in them: the last eight tokens choose among entries that are all
// alike, of which the lowest come first, and those that the step completes.
void expect_end_of_a_million(const Device& device, std::shared_ptr<const Weights> weights) {
  constexpr std::int64_t kTokens = 1 << 20, kEntries = kTokens / 4;
  const Config& config = weights->config();
  LongStep kernels(device, weights, long_options(kTokens, KvFormat::kFp8));
  for (LayerMemory& layer : kernels.memory.layers) {
    const auto clear = [](ByteArray& array) {
      const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(array.count()), 0);
      array.buffer().upload(std::as_bytes(std::span(zeros)));
    };
    clear(layer.window);
    for (std::optional<ByteArray>* array :
         {&layer.entries, &layer.state, &layer.index_keys, &layer.index_state})
      if (*array) clear(**array);
  }
  StageValues got = kernels.run(kTokens - kNewTokens);
  for (const double entry : got[key(0, "idx_selected")])
    EXPECT_TRUE((entry >= 0 && entry < static_cast<double>(config.index_topk)) ||
                entry >= kEntries - 2)
        << entry;
  EXPECT_EQ(std::ssize(got[key(0, "idx_selected")]), config.index_topk * kNewTokens);
  EXPECT_EQ(got[key(1, "comp_scale")].size(), 7u);  // one entry of 128 is completed
  for (const double x : got[key(-1, "final_norm")]) EXPECT_TRUE(std::isfinite(x));
  EXPECT_EQ(std::ssize(got[key(-1, "final_norm")]), kNewTokens * config.hidden);
}

TEST_P(LongContextTest, AStepAtTheEndOfAMillionTokens) {
  const RandomCheckpoint checkpoint({.hash_layers = 0, .ratios = {4, 128}});
  expect_end_of_a_million(*device_, std::make_shared<Weights>(checkpoint.folder()));
}

TEST_P(LongContextGpuTest, AStepAtTheEndOfAMillionTokensAtFullWidth) {
  expect_end_of_a_million(*device_, wide_layers());
}

}  // namespace
}  // namespace tilewright::model
