// The indexer on every device: codes to the bit, logits against fp64 on the same codes, rows exact.
#include "tests/ops/indexer_case.h"

namespace tilewright::ops {
namespace {

class IndexerTest : public CacheTest {
 protected:
  static void check(const IndexerCase& c) {
    SCOPED_TRACE(fmt::format("{}, {} heads, batch {}, q_len {}, page {}", to_string(c.format),
                             c.heads, c.batch, c.q_len, c.page_size));
    IndexerRun(device(), c).check();
  }
};
TILEWRIGHT_ON_EVERY_CHIP(IndexerTest);

constexpr NumberFormat kFormats[] = {NumberFormat::kFp8, NumberFormat::kMxfp4};

TEST_P(IndexerTest, DecodesSeveralTokensOfASequence) {
  for (const NumberFormat format : kFormats) {
    check({.format = format,
           .max_len = 140,
           .batch = 2,
           .q_len = 2,
           .lengths = {0, 1, 135, 136},
           .positions = {3, 4, 60, 63},
           .page_size = 53});
  }
}
TEST_P(IndexerTest, AnyNumberOfHeads) {
  for (const std::int64_t heads : {1, 8, 40}) {
    check({.format = kFormats[heads % 2],
           .heads = heads,
           .topk = 5,
           .max_len = 22,
           .q_len = 1,
           .lengths = {22},
           .page_size = heads == 8 ? 1 : 16,
           .is_weights_f32 = heads == 40});
  }
}
TEST_P(IndexerTest, EightTokensAndTheCausalRule) {
  // Positions give the lengths; the last three stand for no token, or have no angle.
  check({.heads = 16,
         .topk = 3,
         .max_len = 15,
         .q_len = 8,
         .positions = {0, 3, 7, 42, 63, -1, 64, 63}});
}
TEST_P(IndexerTest, AnEntryIsSeenByTheTokenThatCompletesIt) {
  // Around multiples of the ratio: j < (p + 1) / ratio.
  for (const std::int64_t ratio : {1, 4, 7})
    check({.heads = 2,
           .topk = 4,
           .max_len = 12,
           .ratio = ratio,
           .q_len = 9,
           .positions = {0, 2, 3, 4, 5, 6, 7, 8, 12}});
}
TEST_P(IndexerTest, OddPagesOfKeysAndRows) {
  for (const NumberFormat format : kFormats) {
    check({.format = format,
           .heads = 8,
           .topk = 20,
           .max_len = 131,
           .batch = 2,
           .q_len = 1,
           .lengths = {131, 62},
           .page_size = 61,
           .row_page_size = 7});
  }
}
TEST_P(IndexerTest, EmptyRowsAndRowsOfOneKey) {
  check({.heads = 4, .topk = 3, .max_len = 9, .batch = 3, .q_len = 1, .lengths = {0, 0, 0}});
  check({.heads = 4, .topk = 3, .max_len = 9, .batch = 4, .q_len = 1, .lengths = {1, 0, 1, -5}});
  check({.heads = 4, .topk = 1, .max_len = 1, .q_len = 1, .lengths = {1}, .page_size = 1});
}
TEST_P(IndexerTest, NanLogitsAreNotSelected) {
  for (const NumberFormat format : kFormats) {
    check({.format = format,
           .heads = 8,
           .topk = 10,
           .max_len = 70,
           .q_len = 2,
           .lengths = {69, 70},
           .has_nan_keys = true});
  }
}
// What lies behind it would be read, or written, if it were taken for a token.
TEST_P(IndexerTest, APositionThatIsNoTokenSeesNothing) {
  constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int32_t> positions = {5, -1, kIndexPositions, kLast, 63, -kLast - 1};
  for (const NumberFormat format : kFormats) {
    for (const bool has_lengths : {false, true}) {
      for (const bool fills : {false, true}) {
        check({.format = format,
               .heads = 9,
               .topk = 3,
               .max_len = 40,
               .ratio = has_lengths ? 4 : 1,
               .q_len = 6,
               .lengths = has_lengths ? std::vector<std::int32_t>{9, 9, 40, 9, 2, 9}
                                      : std::vector<std::int32_t>{},
               .positions = positions,
               .fills = fills});
      }
    }
  }
}
TEST_P(IndexerTest, NanCodesCountAsMinusInfinity) {
  for (const std::int64_t heads : {1, 16, 64}) {
    check({.heads = heads,
           .topk = 10,
           .max_len = 70,
           .q_len = 2,
           .lengths = {69, 70},
           .has_nan_codes = true});
  }
}
TEST_P(IndexerTest, EveryNumberOfHeadsAndTokens) {
  for (const std::int64_t heads : {16, 17, 32, 33, 63}) {
    for (const std::int64_t tokens : {1, 3}) {
      check({.format = kFormats[heads % 2],
             .heads = heads,
             .topk = 5,
             .max_len = 70,
             .q_len = tokens,
             .lengths =
                 tokens == 1 ? std::vector<std::int32_t>{70} : std::vector<std::int32_t>{70, 1, 66},
             .has_wide_scales = heads == 33});
    }
  }
}
TEST_P(IndexerTest, EntriesInsteadOfRowsAndNoCounts) {
  check({.heads = 4,
         .topk = 6,
         .max_len = 20,
         .batch = 2,
         .q_len = 1,
         .lengths = {20, 3},
         .has_rows = false,
         .has_counts = false,
         .gap = 0});
}
// Few tokens of long sequences: CTAs of a cluster share a row.
TEST_P(IndexerTest, LongRowsAreShared) {
  check({.heads = 1, .topk = 100, .max_len = 9000, .q_len = 1, .lengths = {8999}});
}
TEST_P(IndexerTest, RunsInAGraphUnderAnyLengths) {
  const IndexerCase c = {.heads = 8,
                         .topk = 6,
                         .max_len = 40,
                         .batch = 3,
                         .q_len = 1,
                         .lengths = {40, 0, 7},
                         .page_size = 16};
  IndexerRun(device(), c).check_captured({0, 33, 1});
}
TEST_P(IndexerTest, TheCInterfaceDoesTheSame) {
  for (const NumberFormat format : kFormats) {
    IndexerRun(device(), {.format = format,
                          .heads = 12,
                          .topk = 6,
                          .max_len = 40,
                          .batch = 2,
                          .q_len = 2,
                          .lengths = {9, 10, 39, 40},
                          .is_weights_f32 = true})
        .check_c_api(GetParam());
  }
}
TEST_P(IndexerTest, RaggedPrompts) {
  for (const NumberFormat format : kFormats) {
    check({.format = format,
           .heads = 64,
           .topk = 9,
           .max_len = 20,
           .batch = 4,
           .offsets = {0, 1, 12, 12, 15},
           .lengths = {20, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 3, 3, 3},
           .page_size = 2});
  }
}
TEST_P(IndexerTest, ScalesFarApart) {
  check({.format = NumberFormat::kMxfp4,
         .heads = 9,
         .topk = 4,
         .max_len = 30,
         .q_len = 3,
         .lengths = {28, 29, 30},
         .has_wide_scales = true});
}
TEST_P(IndexerTest, SaysWhatIsWrong) {
  const auto expect = [&](const IndexerProblem& problem, const char* what) {
    reference::expect_invalid([&] { Indexer(device(), problem); }, {"indexer: ", what});
  };
  const KvCacheLayout keys = {.page_size = 64, .num_pages = 2};
  expect({.heads = 65, .max_len = 1, .keys = keys}, "heads = 65; expected 1 to 64");
  expect({.format = NumberFormat::kNvfp4, .max_len = 1, .keys = keys},
         "format = nvfp4; expected fp8 or mxfp4");
  expect({.topk = 4096, .max_len = 1, .keys = keys}, "topk = 4096");
  expect({.max_len = 0, .keys = keys}, "max_len = 0");
  expect({.max_len = 1, .keys = {.page_size = 64, .num_pages = 2, .page_stride_bytes = 4356}},
         "keys.page_stride_bytes = 4356");
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  reference::expect_invalid(
      [&] {
        Indexer(device(), {.max_len = 1,
                           .keys = {.page_size = 64, .num_pages = 4, .page_stride_bytes = kHalf}});
      },
      {"keys.page_stride_bytes = 4611686018427387904", "fewer than 2^63 bytes in all 4 pages"});
}

}  // namespace
}  // namespace tilewright::ops
