// Rows of a layer in one launch: to the bit what the single operators store, which are held against
// float64 by their own tests.
#include "tilewright/indexer.h"

#include "tests/ops/cache_case.h"

namespace tilewright::ops {
namespace {

constexpr std::int64_t kRowsPositions = 300;
constexpr std::int64_t kRowsHeads = 3, kRowsIndexHeads = 8;

struct RowsCase {
  CompressorKind kind = CompressorKind::kCsa;
  NumberFormat index_format = NumberFormat::kMxfp4;
  std::vector<std::int32_t> starts, counts;  ///< of sequences; start -1: takes no part
  std::int64_t max_tokens = 0;               ///< 0: the most there are
};

class LayerRowsTest : public CacheTest {
 protected:
  // What a call writes, on random bytes that are the same for all.
  struct Memory {
    std::vector<std::pair<const char*, Buffer>> parts;
    void* part(std::size_t i) const { return pointer_to<void>(parts[i].second); }
  };
  enum Part : std::size_t { kQueries, kWindow, kEntries, kState, kKeys, kKeyState, kWorkspace };

  // The operators of a layer with inputs for a call.
  class Layer {
   public:
    explicit Layer(const RowsCase& c)
        : c_(c),
          is_csa_(c.kind == CompressorKind::kCsa),
          cache_(device(), {NumberFormat::kFp8, 8, 12}),
          compressor_(device(), problem(c.kind)),
          keys_(device(),
                problem(c.index_format == NumberFormat::kFp8 ? CompressorKind::kIndexFp8
                                                             : CompressorKind::kIndexMxfp4)),
          indexer_(device(), {.format = c.index_format,
                              .heads = kRowsIndexHeads,
                              .topk = 16,
                              .max_len = 64,
                              .keys = {.page_size = 4, .num_pages = 40},
                              .rows = {.page_size = 4, .num_pages = 40}}) {
      std::vector<std::int32_t> offsets = {0}, positions, slots;
      for (std::size_t s = 0; s < c.starts.size(); ++s) {
        for (std::int32_t i = 0; i < c.counts[s]; ++i) {
          positions.push_back(c.starts[s] < 0 ? -1 : c.starts[s] + i);
          slots.push_back(static_cast<std::int32_t>(7 * positions.size() % 96));
        }
        offsets.push_back(offsets.back() + c.counts[s]);
        most_ = std::max<std::int64_t>(most_, c.counts[s]);
      }
      tokens_ = offsets.back();
      std::vector<std::int32_t> table;
      for (std::size_t i = 0; i < c.starts.size() * kBlocks; ++i)
        table.push_back(static_cast<std::int32_t>(11 * i % 40));
      const auto floats = [](std::uint64_t seed, std::int64_t count) {
        const auto values = reference::random_doubles(seed, count, -3, 3);
        return upload(std::vector<float>(values.begin(), values.end()));
      };
      inputs_.push_back(floats(1, tokens_ * kWidth));
      inputs_.push_back(floats(2, 2 * 128 * 1024));  // ape
      inputs_.push_back(upload(random_bf16(3, kKvDims, 0.5, 1.5)));
      inputs_.push_back(upload(rope_table(kRopeCompressedLayers, kRowsPositions)));
      inputs_.push_back(upload(offsets));
      inputs_.push_back(upload(c.starts));
      inputs_.push_back(upload(positions));
      inputs_.push_back(upload(slots));
      inputs_.push_back(upload(table));
    }

    Memory memory() const {
      Memory memory;
      std::uint64_t seed = 20;
      const auto add = [&](const char* name, std::size_t bytes) {
        // Finite numbers of any type: old rows of the states are read.
        memory.parts.emplace_back(
            name, upload(random_bf16(++seed, static_cast<std::int64_t>(bytes) / 2)));
      };
      add("queries", static_cast<std::size_t>(tokens_ * kQueryWidth * 2));
      add("window", kv_cache_bytes(cache_.layout()));
      add("entries", compressor_.cache_bytes());
      add("state", compressor_.state_bytes());
      add("keys", keys_.cache_bytes());
      add("state of keys", keys_.state_bytes());
      add("workspace", indexer_.workspace_bytes(tokens_, std::ssize(c_.starts)));
      return memory;
    }

    LayerRowsArguments arguments(const Memory& memory) const {
      const auto* input = pointer_to<float>(inputs_[0]);
      auto* query = static_cast<std::uint16_t*>(memory.part(kQueries));
      const RotaryTable rope = {.angles = pointer_to<float>(inputs_[3]),
                                .positions = kRowsPositions};
      const auto* positions = pointer_to<std::int32_t>(inputs_[6]);
      const SequenceBatch sequences = {.batch = std::ssize(c_.starts),
                                       .offsets = pointer_to<std::int32_t>(inputs_[4]),
                                       .starts = pointer_to<std::int32_t>(inputs_[5])};
      const SequencePages table = {.pages = pointer_to<std::int32_t>(inputs_[8]),
                                   .blocks = kBlocks};
      const auto entries = [&](std::int64_t kv, std::int64_t gate, Part state,
                               Part pages) -> CompressorArguments {
        return {.sequences = sequences,
                .max_tokens = c_.max_tokens != 0 ? c_.max_tokens : most_,
                .kv = input + kv,
                .gate = input + gate,
                .kv_stride = kWidth,
                .gate_stride = kWidth,
                .ape = pointer_to<float>(inputs_[1]),
                .norm_weight = pointer_to<void>(inputs_[2]),
                .rope = rope,
                .state = memory.part(state),
                .table = table,
                .pages = memory.part(pages)};
      };
      LayerRowsArguments a = {.cache = &cache_,
                              .write = {.tokens = tokens_,
                                        .heads = kRowsHeads,
                                        .q = query,
                                        .q_token_stride = kQueryWidth,
                                        .q_head_stride = kKvDims,
                                        .kv = input,
                                        .kv_dtype = DType::kF32,
                                        .kv_stride = kWidth,
                                        .kv_weight = pointer_to<void>(inputs_[2]),
                                        .positions = positions,
                                        .rope = rope,
                                        .slots = pointer_to<std::int32_t>(inputs_[7]),
                                        .pages = memory.part(kWindow)},
                              .compressor = &compressor_,
                              .entries = entries(512, 1536, kState, kEntries)};
      if (!is_csa_) return a;
      a.keys = &keys_;
      a.of_keys = entries(2560, 2816, kKeyState, kKeys);
      a.indexer = &indexer_;
      a.queries = {.tokens = tokens_,
                   .sequences = sequences,
                   .positions = positions,
                   .q = query + kRowsHeads * kKvDims,
                   .q_token_stride = kQueryWidth,
                   .q_head_stride = 128,
                   .weights = input + 3072,
                   .weights_dtype = DType::kF32,
                   .weights_stride = kWidth,
                   .rope = rope,
                   .key_pages = memory.part(kKeys),
                   .key_table = table,
                   .row_table = table,
                   .rows = static_cast<std::int32_t*>(memory.part(kWorkspace)),
                   .workspace = memory.part(kWorkspace)};
      return a;
    }

    void run_one_by_one(const Memory& memory) const {
      const LayerRowsArguments a = arguments(memory);
      cache_.write(a.write);
      compressor_.run(a.entries);
      if (!is_csa_) return;
      keys_.run(a.of_keys);
      indexer_.run(a.queries, IndexerStep::kQuery);
    }

   private:
    static constexpr std::int64_t kBlocks = 12;
    // Window 512, values and scores of the compressor 1024, of the keys 256, weights of queries.
    static constexpr std::int64_t kWidth = 3072 + kRowsIndexHeads;
    static constexpr std::int64_t kQueryWidth = kRowsHeads * kKvDims + kRowsIndexHeads * 128;

    CompressorProblem problem(CompressorKind kind) const {
      return {.kind = kind,
              .cache = {.format = NumberFormat::kFp8, .page_size = 4, .num_pages = 40},
              .state_slots = std::ssize(c_.starts)};
    }

    const RowsCase& c_;
    bool is_csa_;
    std::int64_t tokens_ = 0, most_ = 0;
    KvCache cache_;
    Compressor compressor_, keys_;
    Indexer indexer_;
    std::vector<Buffer> inputs_;
  };

  static void check(const RowsCase& c) {
    const Layer layer(c);
    const Memory one = layer.memory(), several = layer.memory(), untouched = layer.memory();
    const LayerRows rows(device());
    rows.run(layer.arguments(one));
    layer.run_one_by_one(several);
    for (std::size_t i = 0; i < one.parts.size(); ++i) {
      const auto found = download<std::uint8_t>(one.parts[i].second);
      EXPECT_EQ(found, download<std::uint8_t>(several.parts[i].second)) << one.parts[i].first;
      const bool is_used = c.kind == CompressorKind::kCsa || i <= kState;
      EXPECT_EQ(found != download<std::uint8_t>(untouched.parts[i].second), is_used)
          << one.parts[i].first;
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP(LayerRowsTest);

// Two sequences complete an entry, one of them with tokens that the state has; one takes no part.
TEST_P(LayerRowsTest, OfACsaLayer) {
  check({.starts = {2, -1, 11}, .counts = {2, 1, 1}});
}
TEST_P(LayerRowsTest, WithKeysOfFp8) {
  check({.index_format = NumberFormat::kFp8, .starts = {7}, .counts = {1}});
}
TEST_P(LayerRowsTest, OfAnHcaLayer) {
  check({.kind = CompressorKind::kHca, .starts = {126, 40, -1}, .counts = {3, 1, 1}});
}
// More new tokens than the states may have in one launch.
TEST_P(LayerRowsTest, OneByOneWhereStatesNeedIt) {
  check({.starts = {2}, .counts = {2}, .max_tokens = 40});
  check({.kind = CompressorKind::kHca, .starts = {126}, .counts = {2}, .max_tokens = 40});
}

TEST_P(LayerRowsTest, OperatorsThatDoNotFit) {
  const LayerRows rows(device());
  const RowsCase c = {.starts = {2}, .counts = {1}};
  const Layer layer(c);
  const Memory memory = layer.memory();
  const auto refuse = [&](const auto& change, const char* part) {
    LayerRowsArguments a = layer.arguments(memory);
    change(a);
    reference::expect_invalid([&] { rows.run(a); }, {part});
  };
  refuse([](auto& a) { a.cache = nullptr; }, "cache or compressor is null");
  refuse([](auto& a) { a.compressor = a.keys; }, "expected kCsa or kHca");
  refuse([](auto& a) { a.keys = nullptr; }, "missing beside a compressor of kCsa");
  refuse([](auto& a) { a.keys = a.compressor; }, "expected kIndexFp8 or kIndexMxfp4");
  refuse([](auto& a) { a.queries.stream = a.write.pages; }, "streams of the calls differ");
  refuse([](auto& a) { a.write.positions = nullptr; }, "positions");
}

}  // namespace
}  // namespace tilewright::ops
