// The compressor: entries against the float64 reference, bytes that do not depend on how tokens
// arrive, tokens taken back, states used again.
#include "tilewright/compressor.h"

#include "device/internal.h"
#include "formats/index_page.h"
#include "reference/sparse_attention/compressor.h"
#include "tests/ops/cache_case.h"

namespace tilewright::ops {
namespace {

constexpr std::int64_t kPositions = 600;

// Projections of a sequence, and the weights that all share.
struct Tokens {
  std::vector<float> kv, gate;
};

Tokens draw_tokens(std::uint64_t seed, CompressorKind kind, std::int64_t count) {
  Tokens tokens;
  const std::int64_t elems = count * compressor_width(kind);
  Random random(seed);
  for (std::int64_t i = 0; i < elems; ++i) {
    tokens.kv.push_back(static_cast<float>(random.uniform(-3, 3)));
    tokens.gate.push_back(static_cast<float>(random.uniform(-4, 4)));
  }
  return tokens;
}

std::vector<float> to_float(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// A compressor with its memory: state poisoned, pages of sequences in no order.
class Machine {
 public:
  Machine(const Device& device, CompressorKind kind, NumberFormat format, std::int64_t ring,
          std::int64_t page_size = 3, double eps = 1e-6)
      : device_(device),
        compressor_(device, {.kind = kind,
                             .cache = {.format = format, .page_size = page_size, .num_pages = 64},
                             .state_slots = 4,
                             .ring = ring,
                             .eps = eps}),
        state_(internal(), compressor_.state_bytes()),
        pages_(internal(), compressor_.cache_bytes()),
        ape_(Buffer::from(internal(), ape(kind))),
        weight_(Buffer::from(internal(), weight(kind))),
        rope_(Buffer::from(internal(), rope_table(kRopeCompressedLayers, kPositions))) {
    state_.poison();
    pages_.poison();
  }

  static std::vector<float> ape(CompressorKind kind) {
    return to_float(
        reference::random_doubles(77, compressor_ratio(kind) * compressor_width(kind), -1, 1));
  }
  static Bf16s weight(CompressorKind kind) {
    return random_bf16(78, compressor_dim(kind), 0.5, 1.5);
  }
  void set_ape(const std::vector<float>& values) {
    ape_.copy_from_host(std::as_bytes(std::span(values)));
  }

  // A chunk of a sequence: tokens [begin, end) of it, in a state slot, with its block table.
  struct Chunk {
    const Tokens* tokens;
    std::int64_t begin, end;
    std::int32_t slot;
    std::vector<std::int32_t> table;
  };

  void run(const std::vector<Chunk>& chunks) {
    const Call call = prepare(chunks);
    compressor_.run(call.arguments);
    device_.synchronize();
  }
  void run_with_keys(const std::vector<Chunk>& chunks, Machine& keys,
                     const std::vector<Chunk>& chunks_of_keys) {
    const Call call = prepare(chunks), of_keys = keys.prepare(chunks_of_keys);
    compressor_.run_with_keys(call.arguments, keys.compressor_, of_keys.arguments);
    device_.synchronize();
  }

  /// max_tokens above the real number: what sizes a launch.
  void set_more_tokens(std::int64_t count) { more_tokens_ = count; }
  /// Sequences of one length and without state slots: q_len of the first chunk.
  void set_uniform() { is_uniform_ = true; }

  std::vector<std::uint8_t> pages() { return pages_.to_vector<std::uint8_t>(); }
  const KvCacheLayout& layout() const { return compressor_.problem().cache; }

 private:
  struct Call {
    std::vector<Buffer> buffers;
    CompressorArguments arguments;
  };

  Call prepare(const std::vector<Chunk>& chunks) const {
    std::vector<std::int32_t> offsets = {0}, starts, slots, table;
    std::vector<float> kv, gate;
    std::int64_t most = 1, blocks = 1;
    const std::int64_t width = compressor_width(compressor_.problem().kind);
    for (const Chunk& c : chunks) blocks = std::max(blocks, std::ssize(c.table));
    for (const Chunk& c : chunks) {
      offsets.push_back(offsets.back() + static_cast<std::int32_t>(c.end - c.begin));
      starts.push_back(static_cast<std::int32_t>(c.begin));
      slots.push_back(c.slot);
      most = std::max(most, c.end - c.begin);
      kv.insert(kv.end(), c.tokens->kv.begin() + c.begin * width,
                c.tokens->kv.begin() + c.end * width);
      gate.insert(gate.end(), c.tokens->gate.begin() + c.begin * width,
                  c.tokens->gate.begin() + c.end * width);
      table.insert(table.end(), c.table.begin(), c.table.end());
      table.resize(table.size() + static_cast<std::size_t>(blocks - std::ssize(c.table)), -1);
      table.resize(table.size() + kGap, 5);  // a page that no entry may go to
    }
    Call call;
    const auto at = [&](const auto& values) {
      using T = typename std::decay_t<decltype(values)>::value_type;
      call.buffers.push_back(Buffer::from(internal(), values));
      return pointer_to<T>(call.buffers.back());
    };
    // What lies between rows would spoil an entry.
    kv = spread_rows(kv, width, width + kGap, NAN);
    gate = spread_rows(gate, width, width + 2 * kGap, NAN);
    kv.resize(kv.size() + 4), gate.resize(gate.size() + 4);  // never empty
    call.arguments = {.sequences = {.batch = std::ssize(chunks),
                                    .q_len = is_uniform_ ? most : 0,
                                    .offsets = is_uniform_ ? nullptr : at(offsets),
                                    .starts = at(starts)},
                      .max_tokens = most + more_tokens_,
                      .kv = at(kv),
                      .gate = at(gate),
                      .kv_stride = width + kGap,
                      .gate_stride = width + 2 * kGap,
                      .ape = pointer_to<float>(ape_),
                      .norm_weight = pointer_to<void>(weight_),
                      .rope = {.angles = pointer_to<float>(rope_), .positions = kPositions},
                      .state = pointer_to<void>(state_),
                      .state_slots = is_uniform_ ? nullptr : at(slots),
                      .table = {.pages = at(table), .blocks = blocks, .stride = blocks + kGap},
                      .pages = pointer_to<void>(pages_)};
    return call;
  }

  const device::Device& internal() const { return opened(device_); }

  static constexpr std::int64_t kGap = 4;

  Device device_;
  std::int64_t more_tokens_ = 0;
  bool is_uniform_ = false;
  Compressor compressor_;
  Buffer state_, pages_, ape_, weight_, rope_;
};

class CompressorTest : public CacheTest {
 protected:
  static std::vector<std::int32_t> table(std::int32_t first, std::int32_t blocks = 12) {
    std::vector<std::int32_t> pages;
    for (std::int32_t i = 0; i < blocks; ++i) pages.push_back((first + i * 5) % 64);
    return pages;
  }

  // Entries of a whole sequence: all tokens in one call.
  static std::vector<std::uint8_t> at_once(CompressorKind kind, NumberFormat format,
                                           const Tokens& tokens, std::int64_t count,
                                           double eps = 1e-6) {
    Machine machine(device(), kind, format, compressor_slots(kind), 3, eps);
    machine.run({{&tokens, 0, count, 2, table(7)}});
    return machine.pages();
  }

  static std::vector<double> entries_in_fp64(CompressorKind kind, const Tokens& tokens,
                                             std::int64_t count, double eps) {
    const reference::CompressorParams params = {.ratio = compressor_ratio(kind),
                                                .dim = compressor_dim(kind),
                                                .overlap = kind != CompressorKind::kHca};
    const std::int64_t elems = count * params.width();
    const auto ape = Machine::ape(kind);
    const auto pooled = reference::compressor_pool(
        params, std::vector<double>(tokens.kv.begin(), tokens.kv.begin() + elems),
        std::vector<double>(tokens.gate.begin(), tokens.gate.begin() + elems),
        std::vector<double>(ape.begin(), ape.end()));
    return reference::compressor_finish(
        {.dim = params.dim, .ratio = params.ratio, .eps = eps, .round_bf16 = true}, pooled,
        bf16_values(Machine::weight(kind)), reference::yarn_frequencies(kKvRopeDims, 160000));
  }

  // Rows of 512 against fp64, and in codes the bytes of the rounded rows.
  static void check_entries(CompressorKind kind, std::int64_t count, double eps = 1e-6) {
    SCOPED_TRACE(static_cast<int>(kind));
    const Tokens tokens = draw_tokens(1, kind, count);
    const std::vector<double> expected = entries_in_fp64(kind, tokens, count, eps);
    const auto found = at_once(kind, NumberFormat::kBf16, tokens, count, eps);
    const auto layout = [](NumberFormat format) {
      return complete({.format = format, .page_size = 3, .num_pages = 64});
    };
    const KvCacheLayout bf16 = layout(NumberFormat::kBf16), fp8 = layout(NumberFormat::kFp8),
                        nvfp4 = layout(NumberFormat::kNvfp4);
    std::vector<std::uint8_t> whole(found.size(), 0xff), codes(kv_cache_bytes(fp8), 0xff),
        small(kv_cache_bytes(nvfp4), 0xff);
    std::int64_t off_by_more = 0;
    for (std::int64_t j = 0; j < count / compressor_ratio(kind); ++j) {
      const std::int64_t page = table(7)[static_cast<std::size_t>(j / 3)], row = page * 3 + j % 3;
      Bf16s entry(kKvDims);
      std::memcpy(entry.data(), found.data() + page * bf16.page_stride_bytes + j % 3 * 1024, 1024);
      for (std::int64_t c = 0; c < kKvDims; ++c) {
        const double want = expected[static_cast<std::size_t>(j * kKvDims + c)];
        const double got = decode(kBf16, entry[static_cast<std::size_t>(c)]);
        // Three roundings, each of which may fall the other way: seldom, and by a step or so.
        const double step = spacing(kBf16, std::max(std::abs(want), 0.1));
        ASSERT_NEAR(got, want, 2.01 * step) << "entry " << j << ", channel " << c;
        off_by_more += std::abs(got - want) > 1e-9 * std::abs(want) ? 1 : 0;
      }
      place_row(whole, bf16, KvFormat::kBf16, row, encode_row(KvFormat::kBf16, entry.data()));
      place_row(codes, fp8, KvFormat::kFp8, row, encode_row(KvFormat::kFp8, entry.data()));
      place_row(small, nvfp4, KvFormat::kNvfp4, row, encode_row(KvFormat::kNvfp4, entry.data()));
    }
    EXPECT_LE(off_by_more, std::ssize(expected) / 100);
    expect_same_bytes(found, whole, bf16.page_stride_bytes);
    expect_same_bytes(at_once(kind, NumberFormat::kFp8, tokens, count, eps), codes,
                      fp8.page_stride_bytes);
    expect_same_bytes(at_once(kind, NumberFormat::kNvfp4, tokens, count, eps), small,
                      nvfp4.page_stride_bytes);
  }

  // Chunks with tokens taken back: each call brings `sizes[i]` tokens, of which `kept[i]` stay; the
  // others are of another text.
  static void check_cut(CompressorKind kind, std::int64_t count, std::int64_t ring,
                        std::int64_t first, const std::vector<std::int64_t>& sizes,
                        const std::vector<std::int64_t>& kept) {
    SCOPED_TRACE(fmt::format("kind {}, {} tokens, ring {}", static_cast<int>(kind), count, ring));
    const Tokens tokens = draw_tokens(2, kind, count),
                 other = draw_tokens(3, kind, count + std::ranges::max(sizes));
    const std::int64_t width = compressor_width(kind);
    Machine machine(device(), kind, NumberFormat::kFp8, ring);
    if (first > 0) machine.run({{&tokens, 0, first, 1, table(7)}});
    std::size_t i = 0;
    for (std::int64_t at = first; at < count; ++i) {
      const std::int64_t size = sizes[i % sizes.size()],
                         keep = std::min({kept[i % kept.size()], size, count - at});
      Tokens guess = other;
      const auto kept_elems = (at + keep) * width;
      std::copy_n(tokens.kv.begin(), kept_elems, guess.kv.begin());
      std::copy_n(tokens.gate.begin(), kept_elems, guess.gate.begin());
      machine.run({{&guess, at, at + size, 1, table(7)}});
      at += keep;
    }
    const auto found = machine.pages(), expected = at_once(kind, NumberFormat::kFp8, tokens, count);
    // Entries that only rejected tokens completed may be there: as they would be overwritten.
    const std::int64_t entries = count / compressor_ratio(kind);
    const KvCacheLayout& layout = machine.layout();
    for (std::int64_t j = 0; j < entries; ++j) {
      const std::int64_t page =
          table(7)[static_cast<std::size_t>(j / 3)] * layout.page_stride_bytes;
      const bool is_index = compressor_dim(kind) == kIndexDims;
      const std::int64_t data =
          is_index ? index_data_bytes(kind == CompressorKind::kIndexFp8 ? IndexFormat::kFp8
                                                                        : IndexFormat::kMxfp4)
                   : kv_data_bytes(KvFormat::kFp8);
      const std::int64_t scales = is_index ? kIndexScaleBytes : kv_scale_bytes(KvFormat::kFp8);
      const auto same = [&](std::int64_t offset, std::int64_t bytes) {
        return std::equal(found.begin() + offset, found.begin() + offset + bytes,
                          expected.begin() + offset);
      };
      ASSERT_TRUE(same(page + j % 3 * data, data)) << "entry " << j;
      ASSERT_TRUE(same(page + 3 * data + j % 3 * scales, scales)) << "scales of entry " << j;
    }
  }

  // Rows and keys by one kernel, and by one each.
  static void check_pair(CompressorKind key_kind, NumberFormat format) {
    const auto row_kind = CompressorKind::kCsa;
    const Tokens rows = draw_tokens(10, row_kind, 30), keys = draw_tokens(11, key_kind, 30);
    const auto make = [&](CompressorKind kind) { return Machine(device(), kind, format, 15); };
    Machine row_pair = make(row_kind), key_pair = make(key_kind), row_alone = make(row_kind),
            key_alone = make(key_kind);
    for (const auto& [begin, end] : {std::pair{0, 7}, {7, 8}, {8, 14}, {14, 30}}) {
      const auto chunks = [&](const Tokens& tokens) {
        return std::vector<Machine::Chunk>{{&tokens, begin, end, 1, table(7, 4)},
                                           {&tokens, begin, end, 3, table(8, 4)}};
      };
      row_pair.run_with_keys(chunks(rows), key_pair, chunks(keys));
      row_alone.run(chunks(rows));
      key_alone.run(chunks(keys));
    }
    EXPECT_EQ(row_pair.pages(), row_alone.pages());
    EXPECT_EQ(key_pair.pages(), key_alone.pages());
  }
};
TILEWRIGHT_ON_EVERY_CHIP(CompressorTest);

TEST_P(CompressorTest, EntriesOfCsa) {
  check_entries(CompressorKind::kCsa, 21);
}
TEST_P(CompressorTest, EntriesOfHca) {
  check_entries(CompressorKind::kHca, 259);
}

TEST_P(CompressorTest, AnyEps) {
  check_entries(CompressorKind::kCsa, 12, 0.75);
}
// The launch may have room for many more tokens than there are.
TEST_P(CompressorTest, MoreTokensThanThereAre) {
  for (const auto kind : {CompressorKind::kCsa, CompressorKind::kHca}) {
    const std::int64_t count = kind == CompressorKind::kHca ? 131 : 21;
    const Tokens tokens = draw_tokens(12, kind, count);
    Machine machine(device(), kind, NumberFormat::kFp8, compressor_slots(kind));
    machine.set_more_tokens(40);
    machine.run({{&tokens, 0, count, 2, table(7)}});
    EXPECT_EQ(machine.pages(), at_once(kind, NumberFormat::kFp8, tokens, count));
  }
}
TEST_P(CompressorTest, SequencesOfOneLengthHaveTheSlotsOfTheirNumbers) {
  const auto kind = CompressorKind::kCsa;
  const Tokens a = draw_tokens(13, kind, 12), b = draw_tokens(14, kind, 12);
  Machine uniform(device(), kind, NumberFormat::kFp8, 15),
      given(device(), kind, NumberFormat::kFp8, 15);
  uniform.set_uniform();
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 12}}) {
    const std::vector<Machine::Chunk> chunks = {{&a, begin, end, 0, table(7, 4)},
                                                {&b, begin, end, 1, table(8, 4)}};
    uniform.run(chunks);
    given.run(chunks);
  }
  EXPECT_EQ(uniform.pages(), given.pages());
}
// The second entry has no block in the table.
TEST_P(CompressorTest, EntriesBeyondTheTableAreDropped) {
  const auto kind = CompressorKind::kHca;
  const Tokens tokens = draw_tokens(15, kind, 256);
  const auto run = [&](std::int64_t count) {
    Machine machine(device(), kind, NumberFormat::kFp8, 128, 1);
    machine.run({{&tokens, 0, count, 0, table(7, 1)}});
    return machine.pages();
  };
  EXPECT_EQ(run(256), run(255));
}

TEST_P(CompressorTest, EveryPrefixOfASpeculationMayBeAccepted) {
  // Calls of n tokens of which k stay, for all k <= n <= 8 in some order.
  std::vector<std::int64_t> sizes, kept;
  for (std::int64_t n = 1; n <= 8; ++n) {
    for (std::int64_t k = 0; k <= n; k += 1 + n / 5) {
      sizes.push_back(n);
      kept.push_back(n - k);
    }
  }
  check_cut(CompressorKind::kCsa, 60, 15, 0, sizes, kept);
  check_cut(CompressorKind::kIndexMxfp4, 60, 16, 3, sizes, kept);
  check_cut(CompressorKind::kHca, 262, 135, 246, {8, 3, 8}, {5, 3, 0, 8});
}
TEST_P(CompressorTest, ChunksLongerThanTheRing) {
  check_cut(CompressorKind::kCsa, 60, 8, 0, {1, 17, 2, 5, 23, 8}, {1, 17, 2, 5, 23, 8});
  check_cut(CompressorKind::kIndexFp8, 50, 9, 0, {13, 3}, {13, 3});
  check_cut(CompressorKind::kHca, 258, 128, 0, {100, 29, 70}, {100, 29, 70});
}

TEST_P(CompressorTest, AStateIsUsedAgainWithoutClearing) {
  for (const auto kind : {CompressorKind::kCsa, CompressorKind::kIndexFp8}) {
    const Tokens old = draw_tokens(4, kind, 23), fresh = draw_tokens(5, kind, 11);
    Machine machine(device(), kind, NumberFormat::kFp8, 15);
    machine.run({{&old, 0, 23, 2, table(7)}});
    machine.run({{&fresh, 0, 6, 2, table(7)}});
    machine.run({{&fresh, 6, 7, 2, table(7)}});
    machine.run({{&fresh, 7, 11, 2, table(7)}});
    auto found = machine.pages();
    Machine other(device(), kind, NumberFormat::kFp8, 15);
    other.run({{&old, 0, 23, 0, table(7)}});
    other.run({{&fresh, 0, 11, 3, table(7)}});
    EXPECT_EQ(found, other.pages());
  }
}

TEST_P(CompressorTest, SequencesOfABatchDoNotMeet) {
  const auto kind = CompressorKind::kCsa;
  const Tokens a = draw_tokens(6, kind, 30), b = draw_tokens(7, kind, 30);
  Machine both(device(), kind, NumberFormat::kNvfp4, 15, 4);
  both.run({{&a, 0, 9, 3, table(1, 4)}, {&b, 0, 0, 1, table(2)}, {&b, 0, 5, 0, table(3, 2)}});
  both.run({{&b, 5, 8, 0, table(3, 2)}, {&a, 9, 16, 3, table(1, 4)}});
  Machine alone(device(), kind, NumberFormat::kNvfp4, 15, 4);
  alone.run({{&b, 0, 8, 0, table(3, 2)}});
  alone.run({{&a, 0, 16, 1, table(1, 4)}});
  EXPECT_EQ(both.pages(), alone.pages());
}

TEST_P(CompressorTest, RowsAndKeysInOneKernel) {
  check_pair(CompressorKind::kIndexFp8, NumberFormat::kFp8);
  check_pair(CompressorKind::kIndexMxfp4, NumberFormat::kNvfp4);
}

TEST_P(CompressorTest, WhoTakesNoPartChangesNothing) {
  const auto kind = CompressorKind::kCsa;
  const Tokens tokens = draw_tokens(8, kind, 300);
  Machine machine(device(), kind, NumberFormat::kFp8, 15);
  const auto before = machine.pages();
  machine.run({{&tokens, 0, 8, -1, table(1)}, {&tokens, 0, 8, 4, table(1)}});  // no such slot
  machine.run({{&tokens, 0, 8, 1, {-1, 64}}});                                 // no such page
  EXPECT_EQ(machine.pages(), before);
}

// Key j of the indexer: tokens with equal scores pooled, normalised, rotated and transformed.
std::vector<float> index_key(const Tokens& tokens, std::int64_t j) {
  constexpr std::int64_t kWidth = 256;
  static const std::vector<float> rope = rope_table(kRopeCompressedLayers, kPositions);
  const Bf16s weight = Machine::weight(CompressorKind::kIndexFp8);
  const auto rounded = [](float x) {
    return bf16_value(static_cast<std::uint16_t>(encode(kBf16, x)));
  };
  std::vector<float> x(kIndexDims);
  for (std::int64_t c = 0; c < kIndexDims; ++c) {
    float sum = 0;
    for (std::int64_t p = std::max<std::int64_t>(4 * j - 4, 0); p < 4 * j + 4; ++p)
      sum += tokens.kv[static_cast<std::size_t>(p * kWidth + c + (p >= 4 * j ? kIndexDims : 0))];
    x[static_cast<std::size_t>(c)] = rounded(sum / (j == 0 ? 4.0f : 8.0f));
  }
  // Sixteen squares a lane, then lanes 4, 2 and 1 apart.
  float lanes[8] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i / 16] = std::fma(x[i], x[i], lanes[i / 16]);
  const float total = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                      ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  const float factor = 1 / std::sqrt(total * (1.0f / 128) + 1e-6f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rounded(x[i] * factor * bf16_value(weight[i]));
  for (std::size_t i = 0; i < 32; ++i) {
    const float c = rope[static_cast<std::size_t>(4 * j) * 64 + i],
                s = rope[static_cast<std::size_t>(4 * j) * 64 + 32 + i];
    const float re = x[64 + 2 * i], im = x[65 + 2 * i];
    x[64 + 2 * i] = rounded(std::fma(-im, s, re * c));
    x[65 + 2 * i] = rounded(std::fma(im, c, re * s));
  }
  for (std::size_t distance = 1; distance < 128; distance *= 2) {
    for (std::size_t i = 0; i < 128; ++i) {
      if (i & distance) continue;
      const float low = x[i], high = x[i + distance];
      x[i] = low + high;
      x[i + distance] = low - high;
    }
  }
  for (float& value : x) value = rounded(value * 0x1.6a09e6p-4f);
  return x;
}

// With equal scores all of the arithmetic can be done again here, in the same order.
TEST_P(CompressorTest, IndexKeysToTheByte) {
  constexpr std::int64_t kCount = 12, kWidth = 256;
  Tokens tokens = draw_tokens(9, CompressorKind::kIndexFp8, kCount);
  for (float& x : tokens.kv) x = std::round(x * 8);
  std::fill(tokens.gate.begin(), tokens.gate.end(), 0.5f);
  for (const auto kind : {CompressorKind::kIndexFp8, CompressorKind::kIndexMxfp4}) {
    const bool is_fp8 = kind == CompressorKind::kIndexFp8;
    Machine machine(device(), kind, NumberFormat::kBf16, 15);
    machine.set_ape(std::vector<float>(4 * kWidth, 0.25f));
    machine.run({{&tokens, 0, kCount, 0, table(7)}});
    std::vector<std::uint8_t> expected(machine.pages().size(), 0xff);
    for (std::int64_t j = 0; j < kCount / 4; ++j) {
      const std::vector<float> x = index_key(tokens, j);
      const auto key = quantize(block_format_by_name(is_fp8 ? "fp8_1x128_ue8m0" : "mxfp4_ceil"), x,
                                1, kIndexDims);
      std::vector<std::uint8_t> scales = key.scales;
      if (is_fp8) {
        const auto scale = static_cast<float>(decode(kUe8m0, key.scales[0]));
        scales.resize(4);
        std::memcpy(scales.data(), &scale, 4);
      }
      const std::int64_t page =
          table(7)[static_cast<std::size_t>(j / 3)] * machine.layout().page_stride_bytes;
      const std::int64_t bytes = is_fp8 ? 128 : 64;
      std::copy(key.codes.begin(), key.codes.end(), expected.begin() + page + j % 3 * bytes);
      std::copy(scales.begin(), scales.end(), expected.begin() + page + 3 * bytes + j % 3 * 4);
    }
    expect_same_bytes(machine.pages(), expected, machine.layout().page_stride_bytes);
  }
}

TEST_P(CompressorTest, RefusesWhatMakesNoSense) {
  using reference::expect_invalid;
  const KvCacheLayout cache = {.num_pages = 1};
  expect_invalid([&] { Compressor(device(), {.cache = cache, .state_slots = 1, .ring = 7}); },
                 {"ring = 7", "8"});
  expect_invalid([&] { Compressor(device(), {.cache = cache}); }, {"state_slots = 0"});
  expect_invalid([&] { Compressor(device(), {.cache = cache, .state_slots = 1, .eps = 1e300}); },
                 {"eps = 1e+300", "as fp32 holds it"});
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  expect_invalid(
      [&] {
        Compressor(device(), {.cache = cache, .state_slots = kMost, .ring = std::int64_t{1} << 20});
      },
      {"state_slots = 2147483647", "fewer than 2^63 bytes"});
  const Compressor compressor(device(), {.cache = cache, .state_slots = 1});
  EXPECT_EQ(compressor.problem().ring, 16);
  EXPECT_EQ(compressor.state_bytes(), 16u * 2 * 1024 * 4);
  expect_invalid([&] { compressor.run({}); }, {"sequences.batch = 0"});
}

}  // namespace
}  // namespace tilewright::ops
