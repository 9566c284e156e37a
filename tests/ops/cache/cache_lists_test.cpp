// Lists of rows that tokens look at, and the rotation taken out of attention's output.
#include "formats/packed_matrix.h"
#include "tests/ops/cache_case.h"

namespace tilewright::ops {
namespace {

// Three sequences: one in its first chunk, one that takes no part, one late with many tokens.
struct Sequences {
  std::vector<std::int32_t> offsets = {0, 3, 5, 14}, starts = {0, -1, 300};
  std::int64_t q_len = 0;  ///< of all, instead of the offsets
};

class CacheListsTest : public CacheTest {
 protected:
  static constexpr std::int64_t kPageSize = 5, kPages = 40, kBlocks = 6;

  static std::vector<std::int32_t> draw_table() {
    std::vector<std::int32_t> table;
    for (std::int32_t i = 0; i < 3 * kBlocks; ++i) table.push_back((i * 7 + 3) % kPages);
    table[1] = -1;
    table[2 * kBlocks + 4] = 1 << 20;  // no such page
    return table;
  }

  static std::int32_t row_of(std::int32_t sequence, std::int64_t logical) {
    if (logical / kPageSize >= kBlocks) return -1;
    const std::int32_t page =
        draw_table()[static_cast<std::size_t>(sequence * kBlocks + logical / kPageSize)];
    if (page < 0 || page >= kPages) return -1;
    return static_cast<std::int32_t>(page * kPageSize + logical % kPageSize);
  }

  struct Lists {
    std::vector<std::int32_t> rows, lengths, positions;
  };

  static Lists expected(const KvListArguments& a, const Sequences& s) {
    Lists lists;
    const bool is_entries = a.kind == KvListKind::kEntries;
    const std::int64_t window = a.kind == KvListKind::kWrite ? 1 : a.window;
    for (std::size_t b = 0; b < 3; ++b) {
      const std::int64_t count = s.offsets[b + 1] - s.offsets[b], start = s.starts[b];
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t p = start < 0 ? -1 : start + i, end = start + count;
        const std::int64_t first = is_entries ? 0 : std::max<std::int64_t>(p - window + 1, 0);
        const std::int64_t all = p < 0 ? 0 : is_entries ? (p + 1) / a.ratio : p - first + 1;
        std::vector<std::int32_t> rows;
        for (std::int64_t q = first; q < first + std::min(all, a.list_len); ++q) {
          const bool is_kept = is_entries || a.ring == 0 || q + a.ring >= end;
          const std::int64_t logical = is_entries || a.ring == 0 ? q : q % a.ring;
          rows.push_back(is_kept ? row_of(static_cast<std::int32_t>(b), logical) : -1);
        }
        lists.positions.push_back(static_cast<std::int32_t>(p));
        lists.lengths.push_back(static_cast<std::int32_t>(rows.size()));
        rows.resize(static_cast<std::size_t>(a.list_len), -1);
        lists.rows.insert(lists.rows.end(), rows.begin(), rows.end());
      }
    }
    return lists;
  }

  static void check(const KvListArguments& a, const Sequences& s = {}) {
    // All outputs, and each alone.
    for (const int outputs : {7, 1, 2, 4}) check(a, s, outputs);
  }

 private:
  static void check(KvListArguments a, const Sequences& s, int outputs) {
    SCOPED_TRACE(fmt::format("kind {}, ring {}, window {}, ratio {}, length {}",
                             static_cast<int>(a.kind), a.ring, a.window, a.ratio, a.list_len));
    const KvCache cache(device(), {.page_size = kPageSize, .num_pages = kPages});
    a.tokens = s.offsets.back();
    const Lists want = expected(a, s);
    constexpr std::int32_t kNoPage = 1 << 20, kUntouched = 77;
    constexpr std::int64_t kGap = 3;
    a.list_stride = a.list_len + kGap;
    const Buffer offsets = upload(s.offsets), starts = upload(s.starts),
                 table = upload(spread_rows(draw_table(), kBlocks, kBlocks + kGap, kNoPage)),
                 rows = upload(std::vector<std::int32_t>(
                     static_cast<std::size_t>(a.tokens * a.list_stride), kUntouched)),
                 lengths = poisoned(want.lengths.size() * 4),
                 positions = poisoned(want.positions.size() * 4);
    a.sequences = {.batch = 3,
                   .q_len = s.q_len,
                   .offsets = s.q_len > 0 ? nullptr : pointer_to<std::int32_t>(offsets),
                   .starts = pointer_to<std::int32_t>(starts)};
    a.table = {
        .pages = pointer_to<std::int32_t>(table), .blocks = kBlocks, .stride = kBlocks + kGap};
    if ((outputs & 1) != 0) a.lists = pointer_to<std::int32_t>(rows);
    if ((outputs & 2) != 0) a.lengths = pointer_to<std::int32_t>(lengths);
    if ((outputs & 4) != 0) a.positions = pointer_to<std::int32_t>(positions);
    cache.list(a);
    const auto found = download<std::int32_t>(rows);
    if ((outputs & 1) != 0) {
      EXPECT_EQ(gather_rows(found, a.list_len, a.list_stride, kUntouched), want.rows);
    }
    if ((outputs & 2) != 0) {
      EXPECT_EQ(download<std::int32_t>(lengths), want.lengths);
    }
    if ((outputs & 4) != 0) {
      EXPECT_EQ(download<std::int32_t>(positions), want.positions);
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP(CacheListsTest);

TEST_P(CacheListsTest, WhereATokenIsWritten) {
  check({.kind = KvListKind::kWrite, .ring = 27});
  check({.kind = KvListKind::kWrite, .ring = 4});  // later tokens overwrite earlier ones
  check({.kind = KvListKind::kWrite});             // beyond the table
}
TEST_P(CacheListsTest, TheWindowOfAToken) {
  check({.kind = KvListKind::kWindow, .ring = 29, .window = 20, .list_len = 20});
  check({.kind = KvListKind::kWindow, .ring = 20, .window = 20, .list_len = 33});
  check({.kind = KvListKind::kWindow, .ring = 25, .window = 7, .list_len = 5});
}
TEST_P(CacheListsTest, EntriesThatATokenSees) {
  check({.kind = KvListKind::kEntries, .ratio = 4, .list_len = 80});
  check({.kind = KvListKind::kEntries, .ratio = 128, .list_len = 3});
  check({.kind = KvListKind::kEntries, .ratio = 1, .list_len = 2});
}
TEST_P(CacheListsTest, SequencesOfOneLength) {
  const Sequences s = {.offsets = {0, 4, 8, 12}, .starts = {2, 31, -1}, .q_len = 4};
  check({.kind = KvListKind::kWindow, .ring = 29, .window = 20, .list_len = 20}, s);
  check({.kind = KvListKind::kEntries, .ratio = 4, .list_len = 9}, s);
}
// Positions up to the last that there is: a count of 2^31 entries is cut, not turned negative.
TEST_P(CacheListsTest, TheLastPositions) {
  constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
  const Sequences s = {.offsets = {0, 3, 5, 6}, .starts = {kLast - 2, kLast - 1, kLast}};
  check({.kind = KvListKind::kEntries, .ratio = 1, .list_len = 7}, s);
  check({.kind = KvListKind::kEntries, .ratio = 4, .list_len = 7}, s);
  check({.kind = KvListKind::kWindow, .ring = 29, .window = 20, .list_len = 20}, s);
  check({.kind = KvListKind::kWindow, .ring = 29, .window = kLast, .list_len = 5}, s);
  check({.kind = KvListKind::kWrite, .ring = 27}, s);
}

class InverseRopeTest : public CacheTest {
 protected:
  static constexpr std::int64_t kPositions = 200, kHeads = 3, kHeadStride = kKvDims + 8;
  static inline const std::vector<std::int32_t> kTokens = {0, 1, 199, -1, 64, 200};

  struct Result {
    Bf16s out;
    std::vector<std::uint8_t> codes, scales;
  };
  static Bf16s draw() { return random_bf16(5, std::ssize(kTokens) * kHeads * kKvDims); }

  static Result run(InverseRopeArguments a, bool has_codes) {
    const Bf16s o = draw();
    constexpr std::int64_t kRow = kHeads * kHeadStride, kGap = 24;
    a.head_stride = kHeadStride, a.token_stride = kRow + kGap;
    const Buffer out = upload(spread_rows(spread_rows(o, kKvDims, kHeadStride, kNanCode), kRow,
                                          kRow + kGap, kNanCode)),
                 positions = upload(kTokens), rope = upload(rope_table({}, kPositions)),
                 codes = poisoned(o.size()),
                 scales = poisoned(o.size() / 128 * (a.has_pow2_scales ? 1 : 4));
    a.tokens = std::ssize(kTokens);
    a.heads = kHeads;
    a.out = pointer_to<void>(out);
    a.positions = pointer_to<std::int32_t>(positions);
    a.rope = {.angles = pointer_to<float>(rope), .positions = kPositions};
    if (has_codes) {
      a.codes = pointer_to<void>(codes);
      a.scales = pointer_to<void>(scales);
    }
    InverseRope(device()).run(a);
    const Bf16s turned = gather_rows(download<std::uint16_t>(out), kRow, kRow + kGap, kNanCode);
    return {gather_rows(turned, kKvDims, kHeadStride, kNanCode), download<std::uint8_t>(codes),
            download<std::uint8_t>(scales)};
  }
};
TILEWRIGHT_ON_EVERY_CHIP(InverseRopeTest);

TEST_P(InverseRopeTest, TurnsBackInPlace) {
  const Bf16s found = run({}, false).out, before = draw();
  const auto expected = reference::rope({.tokens = std::ssize(kTokens),
                                         .heads = kHeads,
                                         .head_dim = kKvDims,
                                         .rotary_dim = kKvRopeDims,
                                         .direction = reference::RopeDirection::kInverse},
                                        bf16_values(before), kTokens, plain_frequencies());
  const std::int64_t row = kHeads * kKvDims;
  for (std::size_t t = 0; t < kTokens.size(); ++t) {
    SCOPED_TRACE(t);
    const auto at = static_cast<std::ptrdiff_t>(t) * row;
    const Bf16s part(found.begin() + at, found.begin() + at + row);
    if (kTokens[t] < 0) {
      EXPECT_TRUE(std::equal(part.begin(), part.end(), before.begin() + at));
    } else if (kTokens[t] < kPositions) {
      expect_near_bf16(part, {expected.begin() + at, expected.begin() + at + row});
    } else {
      EXPECT_TRUE(std::isnan(bf16_value(part[kKvPlainDims])));
      EXPECT_EQ(part[kKvPlainDims - 1], before[static_cast<std::size_t>(at) + kKvPlainDims - 1]);
    }
  }
}

// Both steps in one kernel give the bytes of one after the other.
TEST_P(InverseRopeTest, QuantisesWhatItTurned) {
  const Bf16s turned = run({}, false).out;
  std::vector<float> values;
  for (const std::uint16_t code : turned) values.push_back(bf16_value(code));
  const std::int64_t columns = kHeads * kKvDims, tokens = std::ssize(kTokens);
  for (const bool is_pow2 : {false, true}) {
    const BlockFormat& format = is_pow2 ? kFp8Block1x128Ue8m0 : kFp8Block1x128;
    const QuantizedTensor expected = quantize(format, values, tokens, columns);
    const Result found = run({.has_pow2_scales = is_pow2}, true);
    EXPECT_EQ(found.out, draw());
    expect_same_bytes(found.codes, expected.codes, columns);
    // The block of the NaN has some NaN for a scale.
    for (std::size_t i = 0; i < expected.scales.size(); ++i) {
      if (i / (expected.scales.size() / kTokens.size()) == 5) continue;
      ASSERT_EQ(found.scales[i], expected.scales[i]) << "scale byte " << i;
    }
    const Result major = run({.has_pow2_scales = is_pow2, .has_block_major_scales = true}, true);
    const std::int64_t blocks = columns / 128, bytes = is_pow2 ? 1 : 4;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t b = 0; b < blocks; ++b)
        ASSERT_EQ(major.scales[(b * tokens + t) * bytes], found.scales[(t * blocks + b) * bytes]);
    // As the projection behind it reads them: byte p of 64 is element operand_order(p).
    const Result ordered = run({.has_pow2_scales = is_pow2, .has_operand_order = true}, true);
    EXPECT_EQ(ordered.scales, found.scales);
    for (std::size_t i = 0; i < found.codes.size(); ++i) {
      const std::size_t block = i / 64 * 64;
      const auto from = static_cast<std::size_t>(kernels::operand_order(static_cast<int>(i % 64)));
      ASSERT_EQ(ordered.codes[i], found.codes[block + from]) << "byte " << i;
    }
  }
}

TEST_P(InverseRopeTest, RefusesWhatMakesNoSense) {
  const InverseRope rope(device());
  float place = 0;
  reference::expect_invalid([&] { rope.run({.tokens = 1, .heads = 1}); }, {"rope.positions = 0"});
  reference::expect_invalid(
      [&] { rope.run({.tokens = 1, .heads = 1, .token_stride = 3, .rope = {.positions = 1}}); },
      {"token_stride = 3", "multiple of 8"});
  reference::expect_invalid(
      [&] { rope.run({.tokens = 1, .heads = -1, .out = &place, .rope = {.positions = 1}}); },
      {"heads = -1"});
}

TEST(RopeTable, AgreesWithTheReference) {
  for (const bool has_yarn : {false, true}) {
    const RopeOptions options = has_yarn ? kRopeCompressedLayers : kRopeWindowLayers;
    const auto f = has_yarn ? reference::yarn_frequencies(kKvRopeDims, 160000)
                            : reference::rope_frequencies(kKvRopeDims, 10000);
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1048570}}) {
      const std::vector<float> table = rope_table(options, 5, first);
      ASSERT_EQ(table.size(), 5u * kKvRopeDims);
      for (std::size_t p = 0; p < 5; ++p) {
        for (std::size_t i = 0; i < 32; ++i) {
          const double angle = static_cast<double>(first + static_cast<std::int64_t>(p)) * f[i];
          ASSERT_NEAR(table[p * 64 + i], std::cos(angle), 0x1p-25 + 1e-9);
          ASSERT_NEAR(table[p * 64 + 32 + i], std::sin(angle), 0x1p-25 + 1e-9);
        }
      }
    }
  }
  EXPECT_EQ(rope_table({}, 1)[0], 1.0f);
}

}  // namespace
}  // namespace tilewright::ops
