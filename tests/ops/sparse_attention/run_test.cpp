// Sparse attention on every device against the float64 reference, under all checks of the
// simulator: FlashMLA's grid of tests at small sizes, and its corner cases.
#include "tests/ops/operator_test.h"
#include "tests/ops/sparse_attention/sparse_case.h"

namespace tilewright::ops {
namespace {

// Of 1400 numbers of FP8 records one is rounded the other way (placed_scale.h). Two in a row, below
// 1/2 with 2^-9 as unit in the last place, move a score by twice that times a query below 1 and the
// scale, 576^-0.55: 1.2e-4. Larger queries and rows move it as many times as far.
SparseTolerance mla_tolerance(const SparseCase& c) {
  if (c.format != NumberFormat::kFp8) return kDecodeTolerance;
  return {.lse_abs = 1.2e-4 * c.spread.queries * c.spread.rows};
}

class SparseAttentionRunTest : public ChipTest<SparseAttentionRunTest> {
 protected:
  static void check(SparseCase c, const SparseTolerance& tolerance = kDecodeTolerance) {
    check(c, possible(c), tolerance);
  }
  static void check_mla(const SparseCase& c) {
    check(c, c.heads > 16 ? possible(c) : every_kernel(c), mla_tolerance(c));
  }
  /// With every kernel that takes the case.
  static void check_all_kernels(const SparseCase& c) {
    check(c, every_kernel(c), kDecodeTolerance);
  }

 private:
  static void check(SparseCase c, const std::vector<std::string>& kernels,
                    const SparseTolerance& tolerance) {
    for (const std::string& kernel : kernels) {
      c.kernel = kernel;
      SCOPED_TRACE(fmt::format(
          "kernel {}, {}, batch {}, q_len {}, heads {}, window {} of {} in "
          "pages of {}, compressed {} of {} in pages of {}",
          kernel, to_string(c.format), c.batch, c.q_len, c.heads, c.window.topk, c.window.rows,
          c.window.page_size, c.compressed.topk, c.compressed.rows, c.compressed.page_size));
      SparseRun(*device_, c).check(tolerance);
    }
  }

  static std::vector<std::string> every_kernel(const SparseCase& c) {
    std::vector<std::string> names;
    const SparseAttentionPlan plan = plan_sparse_attention(*device_, sparse_problem(c));
    for (const Candidate& candidate : plan.candidates)
      if (candidate.is_possible) names.push_back(candidate.name);
    return names;
  }
  static std::vector<std::string> possible(const SparseCase& c) {
    std::vector<std::string> names = every_kernel(c);
    // Each head count with the kernel that it is for; up to four heads with all of them.
    if (c.heads > 4 && names.size() > 1) std::erase(names, "naive");
    if (c.heads > 4 && c.heads <= 32 && c.head_dim == kKvDims)
      std::erase_if(names, [](const auto& name) { return name != "few_heads"; });
    return names;
  }
};
TILEWRIGHT_ON_EVERY_CHIP(SparseAttentionRunTest);

SparseCase with(SparseCase c, auto change) {
  change(c);
  return c;
}

SparseCase small(std::int64_t heads = 8, NumberFormat format = NumberFormat::kFp8) {
  return {.batch = 2,
          .q_len = 1,
          .heads = heads,
          .format = format,
          .window = {.rows = 150, .topk = 70, .page_size = 64},
          .compressed = {.rows = 90, .topk = 20, .page_size = 2}};
}

TEST_P(SparseAttentionRunTest, EveryCacheFormat) {
  for (const NumberFormat format :
       {NumberFormat::kBf16, NumberFormat::kFp8, NumberFormat::kNvfp4}) {
    for (const std::int64_t heads : {4, 16, 64})
      check(with(small(heads, format), [](SparseCase& c) { c.batch = 1; }));
  }
}
TEST_P(SparseAttentionRunTest, EveryHeadCount) {
  for (const std::int64_t heads : {1, 9, 20, 32}) check(small(heads));
}
TEST_P(SparseAttentionRunTest, HundredAndTwentyEightHeads) {
  for (const std::int64_t heads : {100, 128}) {
    check(with(small(heads), [](SparseCase& c) { c.batch = 1; }));
  }
}
TEST_P(SparseAttentionRunTest, OnlyOneOfTheCaches) {
  for (const std::int64_t heads : {8, 64}) {
    check(with(small(heads), [](SparseCase& c) { c.compressed = {}; }));
    check(with(small(heads), [](SparseCase& c) { c.window = {}; }));
  }
}
TEST_P(SparseAttentionRunTest, OddPagesAndStrides) {
  for (const std::int64_t page : {1, 53, 61}) {
    check(with(small(16), [&](SparseCase& c) {
      c.window.page_size = page;
      c.compressed.page_size = page + 8;
      c.window.stride_padding = 1040;
      c.is_padded = true;
    }));
  }
}
TEST_P(SparseAttentionRunTest, LengthsPerSequenceAndPerQuery) {
  for (const SparseLengths lengths : {SparseLengths::kPerBatch, SparseLengths::kPerQuery}) {
    for (const std::int64_t heads : {8, 64}) {
      check(with(small(heads), [&](SparseCase& c) {
        c.q_len = 2;
        c.window.lengths = c.compressed.lengths = lengths;
      }));
    }
  }
}
TEST_P(SparseAttentionRunTest, LengthsBeyondTheListAndNone) {
  check(with(small(), [](SparseCase& c) {
    c.batch = 4;
    c.window.lengths = c.compressed.lengths = SparseLengths::kPerBatch;
    c.window.given_lengths = {-5, 1000, 0, 64};
    c.compressed.given_lengths = {0, 1 << 30, 0, -1};
  }));
}
TEST_P(SparseAttentionRunTest, NothingIsValid) {
  for (const std::int64_t heads : {8, 64}) {
    check_all_kernels(
        with(small(heads), [](SparseCase& c) { c.window.invalid = c.compressed.invalid = 1; }));
    // Parts without a valid row, merged.
    check(with(small(heads), [](SparseCase& c) {
      c.batch = 1;
      c.window.topk = 300;
      c.compressed = {.rows = 500, .topk = 340, .page_size = 64};
      c.window.invalid = c.compressed.invalid = 1;
    }));
    check(with(small(heads), [](SparseCase& c) {
      c.window.invalid = c.compressed.invalid = 1;
      c.positive_empty_lse = true;
    }));
    check(with(small(heads), [](SparseCase& c) {
      c.window.lengths = c.compressed.lengths = SparseLengths::kPerBatch;
      c.window.given_lengths = c.compressed.given_lengths = {0, 0};
    }));
  }
}
TEST_P(SparseAttentionRunTest, EmptyQueriesAsFlashMla) {
  for (const std::int64_t heads : {8, 64}) {
    check_all_kernels(with(small(heads), [](SparseCase& c) {
      c.positive_empty_lse = true;
      c.window.lengths = c.compressed.lengths = SparseLengths::kPerBatch;
      c.window.given_lengths = {0, 20};
      c.compressed.given_lengths = {0, 0};
    }));
    // Parts without a valid row, merged.
    check(with(small(heads), [](SparseCase& c) {
      c.positive_empty_lse = true;
      c.batch = 1;
      c.window.topk = 300;
      c.compressed = {.rows = 500, .topk = 340, .page_size = 64};
      c.window.invalid = c.compressed.invalid = 1;
    }));
  }
}
TEST_P(SparseAttentionRunTest, NoSinks) {
  check(with(small(), [](SparseCase& c) { c.has_sink = c.has_lse = false; }));
}
// One query over many groups: parts that are merged, some of them without a valid row.
TEST_P(SparseAttentionRunTest, ALongListIsSplit) {
  for (const std::int64_t heads : {8, 64, 100}) {
    check(with(small(heads), [](SparseCase& c) {
      c.batch = 1;
      c.repeats = true;
      c.window.topk = 300;
      c.compressed = {.rows = 500, .topk = 340, .page_size = 64, .invalid = 0.6};
    }));
  }
}
// By the CTAs that compute the parts, in their launch: full lists of two blocks, and of 576.
TEST_P(SparseAttentionRunTest, PartsAreMergedWhereTheyAreComputed) {
  if (is_blackwell()) GTEST_SKIP() << "only Hopper's kernels merge";
  for (const std::int64_t heads : {33, 64}) {
    SparseCase c = small(heads);
    c.batch = 5;
    c.repeats = true;
    c.window = {.rows = 300, .topk = heads == 64 ? 60 : 128, .page_size = 64};
    c.compressed = {.rows = 200, .topk = heads == 64 ? 64 : 0, .page_size = 16};
    const SparseAttentionPlan plan = plan_sparse_attention(*device_, sparse_problem(c));
    ASSERT_EQ(plan.launches.size(), 2u) << plan.to_string();
    check(c);
  }
  for (const std::int64_t heads : {64, 100}) {
    SparseCase c = small(heads);
    c.repeats = true;
    c.head_dim = kKvMlaDims;
    c.window = {.rows = 300, .topk = 400, .page_size = 64};
    c.compressed = {};
    ASSERT_EQ(plan_sparse_attention(*device_, sparse_problem(c)).launches.size(), 2u);
    check_mla(c);
  }
}
// Pairs of CTAs as well, with half of the heads each; rows of 512 from 0.4 queries for a pair on.
TEST_P(SparseAttentionRunTest, PairsMergeTheirParts) {
  if (is_blackwell()) GTEST_SKIP() << "only Hopper's kernels merge";
  SparseCase c = small(100);
  c.batch = 27;
  c.repeats = true;
  c.window = {.rows = 300, .topk = 128, .page_size = 64};
  c.compressed = {};
  const SparseAttentionPlan plan = plan_sparse_attention(*device_, sparse_problem(c));
  ASSERT_EQ(plan.launches.size(), 2u) << plan.to_string();
  check(c);
}
// Lengths that differ make groups wait: a launch of its own is faster.
TEST_P(SparseAttentionRunTest, PartsOfListsWithLengthsAreMergedByALaunch) {
  if (is_blackwell()) GTEST_SKIP() << "only Hopper's kernels merge";
  SparseCase c = small(64);
  c.batch = 5;
  c.repeats = true;
  c.window = {.rows = 300, .topk = 128, .page_size = 64, .lengths = SparseLengths::kPerBatch};
  c.compressed = {};
  ASSERT_EQ(plan_sparse_attention(*device_, sparse_problem(c)).launches.size(), 3u);
  check(c);
}
TEST_P(SparseAttentionRunTest, MaximaOfPrefill) {
  for (const std::int64_t heads : {8, 64}) {
    check(with(small(heads, NumberFormat::kBf16),
               [](SparseCase& c) {
                 c.batch = 1;
                 c.q_len = 3;
                 c.window = {
                     .rows = 200, .topk = 128, .page_size = 1, .lengths = SparseLengths::kPerQuery};
                 c.compressed = {};
                 c.has_max_logits = true;
               }),
          kPrefillTolerance);
  }
}
constexpr NumberFormat kFormats[] = {NumberFormat::kBf16, NumberFormat::kFp8, NumberFormat::kNvfp4};

// Scores far apart: references of the running softmax rise again and again.
TEST_P(SparseAttentionRunTest, MaximaOfEveryFormat) {
  for (const NumberFormat format : kFormats) {
    for (const std::int64_t heads : {1, 8, 24, 33, 64, 128}) {
      check_all_kernels(with(small(heads, format), [&](SparseCase& c) {
        c.batch = 1;
        c.q_len = heads > 32 ? 1 : 2;
        c.window.lengths = c.compressed.lengths = SparseLengths::kPerQuery;
        c.window.given_lengths = {70, 66}, c.compressed.given_lengths = {20, 0};
        c.has_max_logits = true;
        c.has_sink = heads != 24;
        c.is_padded = heads == 8 || heads == 64;
        c.spread = {.queries = 30, .rows = 10};
      }));
    }
  }
}
// Blocks of a row with scales far apart, zeros among them.
TEST_P(SparseAttentionRunTest, ScalesFarApart) {
  for (const NumberFormat format : kFormats) {
    for (const std::int64_t heads : {3, 24, 64}) {
      check_all_kernels(with(small(heads, format), [&](SparseCase& c) {
        c.batch = 1;
        c.has_max_logits = true;
        c.spread = {.queries = 30, .rows = 10, .binades = heads == 24 ? 60 : 14, .has_zeros = true};
      }));
    }
  }
}
TEST_P(SparseAttentionRunTest, SplitListsOfEveryFormat) {
  for (const NumberFormat format : {NumberFormat::kBf16, NumberFormat::kNvfp4}) {
    for (const std::int64_t heads : {8, 64}) {
      check(with(small(heads, format), [&](SparseCase& c) {
        c.batch = 1;
        c.window.topk = 300;
        c.window.stride_padding = 1040;
        c.compressed = {.rows = 500, .topk = 340, .page_size = 61, .invalid = 0.6};
        c.has_sink = heads == 64;
        c.has_lse = heads == 64 || format == NumberFormat::kBf16;
        c.is_padded = true;
      }));
    }
  }
}
// Lists of which neighbours share all, much and nothing; the last of three queries is alone.
TEST_P(SparseAttentionRunTest, NeighboursShareEntries) {
  for (const NumberFormat format : kFormats) {
    check(with(small(format == NumberFormat::kFp8 ? 64 : 37, format), [&](SparseCase& c) {
      c.batch = format == NumberFormat::kFp8 ? 2 : 1;
      c.q_len = 3;
      c.window.shared = 1;
      c.compressed.topk = 150;
      c.compressed.shared = format == NumberFormat::kBf16 ? 0 : 0.6;
      c.compressed.lengths = SparseLengths::kPerQuery;
      c.is_padded = format == NumberFormat::kNvfp4;
      c.repeats = format == NumberFormat::kNvfp4;
    }));
  }
}
// As many queries as fill the rows of a pair of CTAs: 4, 8 and 16, the last of them not all there.
TEST_P(SparseAttentionRunTest, TilesOfManyQueries) {
  if (!is_blackwell()) GTEST_SKIP() << "a kernel of Blackwell";
  for (const std::int64_t heads : {32, 13, 6}) {
    SparseCase c = with(small(heads, kFormats[heads % 3]), [&](SparseCase& many) {
      many.batch = heads == 13 ? 2 : 1;
      many.q_len = heads == 32 ? 6 : heads == 13 ? 11 : 17;
      many.window.topk = 40;
      many.window.shared = 1;
      many.compressed.shared = 0.7;
      many.compressed.lengths = SparseLengths::kPerQuery;
      many.is_padded = heads == 13;
      many.has_max_logits = heads == 6;
      many.kernel = "pair_tiles";
    });
    SCOPED_TRACE(fmt::format("{} heads", heads));
    SparseRun(*device_, c).check(kDecodeTolerance);
  }
}
TEST_P(SparseAttentionRunTest, MaximaOfNeighbours) {
  check(with(small(64, NumberFormat::kBf16), [](SparseCase& c) {
    c.batch = 1;
    c.q_len = 2;
    c.window.shared = 1;
    c.has_max_logits = true;
    c.spread = {.queries = 30, .rows = 10};
  }));
}
// DeepSeek-V3's rows of 576, whose values are the first 512: every format and way of options.
constexpr NumberFormat kMlaFormats[] = {NumberFormat::kBf16, NumberFormat::kFp8};

SparseCase mla(std::int64_t heads, NumberFormat format) {
  return with(small(heads, format), [](SparseCase& c) { c.head_dim = kKvMlaDims; });
}

TEST_P(SparseAttentionRunTest, RowsOf576) {
  for (const NumberFormat format : kMlaFormats) {
    for (const std::int64_t heads : {1, 16, 20, 64, 100, 128}) {
      check_mla(with(mla(heads, format), [&](SparseCase& c) {
        c.batch = 1;
        c.q_len = heads > 64 ? 1 : 2;
        c.window.lengths = c.compressed.lengths = SparseLengths::kPerQuery;
        c.window.given_lengths = {70, 66}, c.compressed.given_lengths = {20, 0};
        c.window.stride_padding = heads == 16 ? 1040 : 0;
        c.compressed.page_size = heads == 100 ? 1 : 61;
        c.has_max_logits = heads != 64;
        c.has_sink = heads != 16;
        c.is_padded = heads == 1 || heads == 128;
      }));
    }
  }
}
// Split lists, merged: parts that share a group with other queries, and some without a valid row.
TEST_P(SparseAttentionRunTest, LongListsOfRowsOf576) {
  for (const NumberFormat format : kMlaFormats) {
    for (const std::int64_t heads : {4, 64, 128}) {
      check_mla(with(mla(heads, format), [&](SparseCase& c) {
        c.batch = heads == 128 ? 1 : 2;
        c.repeats = true;
        c.window.topk = 300;
        c.window.lengths = SparseLengths::kPerBatch;
        c.window.given_lengths = {300, 0};
        c.compressed = {.rows = 500, .topk = 340, .page_size = 64, .invalid = 0.6};
        c.compressed.lengths = SparseLengths::kPerBatch;
        c.compressed.given_lengths = {340, 0};
        c.positive_empty_lse = heads != 128;
      }));
    }
  }
}
// Scores far apart, scales of blocks likewise, above 2^7, too, which factors leave out.
TEST_P(SparseAttentionRunTest, ScalesOfRowsOf576FarApart) {
  for (const NumberFormat format : kMlaFormats) {
    for (const std::int64_t heads : {8, 64}) {
      check_mla(with(mla(heads, format), [&](SparseCase& c) {
        c.batch = 1;
        c.has_max_logits = true;
        c.spread = {.queries = 30, .rows = 10, .binades = heads == 8 ? 60 : 14, .has_zeros = true};
      }));
      check_mla(with(mla(heads, format), [&](SparseCase& c) {
        c.batch = 1;
        c.spread = {.queries = 1e-5, .rows = 1e6, .binades = 3};
      }));
    }
  }
}
TEST_P(SparseAttentionRunTest, NothingOf576IsValid) {
  for (const NumberFormat format : kMlaFormats) {
    check_all_kernels(with(mla(64, format), [](SparseCase& c) {
      c.window.invalid = c.compressed.invalid = 1;
      c.positive_empty_lse = true;
    }));
    check_all_kernels(with(mla(128, format), [](SparseCase& c) {
      c.window.lengths = c.compressed.lengths = SparseLengths::kPerBatch;
      c.window.given_lengths = c.compressed.given_lengths = {0, 0};
    }));
  }
}
TEST_P(SparseAttentionRunTest, PrefillOf576) {
  check(with(mla(128, NumberFormat::kBf16),
             [](SparseCase& c) {
               c.batch = 1;
               c.q_len = 3;
               c.window = {
                   .rows = 200, .topk = 130, .page_size = 1, .lengths = SparseLengths::kPerQuery};
               c.compressed = {};
               c.has_max_logits = true;
             }),
        kPrefillTolerance);
  // Rows that lists do not name, in both blocks of a pair and in one alone.
  for (const std::int64_t topk : {64, 256}) {
    check(with(mla(64, NumberFormat::kBf16),
               [&](SparseCase& c) {
                 c.batch = 1;
                 c.q_len = 2;
                 c.window = {.rows = 300, .topk = topk, .page_size = 61, .stride_padding = 1040};
                 c.window.invalid = 0.5;
                 c.compressed = {};
                 c.has_max_logits = true;
               }),
          kPrefillTolerance);
  }
}

TEST_P(SparseAttentionRunTest, NoQueries) {
  check(with(small(), [](SparseCase& c) { c.batch = 0; }));
}

// FlashMLA's grid; on a GPU alone, for its size.
TEST_P(SparseAttentionRunTest, GridOfFlashMla) {
  if (is_simulator()) GTEST_SKIP() << "too large for the simulator";
  struct Shape {
    std::int64_t rows, topk;
    std::vector<std::int64_t> pages;
  };
  const Shape shapes[] = {{512, 64, {2, 64, 69}}, {1024, 576, {2, 61}}, {2046, 2048, {2, 64, 576}}};
  for (const Shape& shape : shapes) {
    for (const std::int64_t page : shape.pages) {
      for (const std::int64_t heads : {8, 16, 32, 64, 128}) {
        for (const bool has_extra : {false, true}) {
          SparseCase c = {.batch = 4, .q_len = heads == 64 ? 3 : 1, .heads = heads};
          c.window = {.rows = shape.rows, .topk = shape.topk, .page_size = page};
          c.window.lengths = has_extra ? SparseLengths::kPerBatch : SparseLengths::kFull;
          if (has_extra) c.compressed = c.window;
          check(c);
        }
      }
    }
  }
}
TEST_P(SparseAttentionRunTest, ManySequences) {
  if (is_simulator()) GTEST_SKIP() << "too large for the simulator";
  for (const std::int64_t heads : {8, 64}) {
    check(with(small(heads), [](SparseCase& c) {
      c.batch = 321;
      c.q_len = 3;
      c.window.lengths = c.compressed.lengths = SparseLengths::kPerBatch;
    }));
  }
}

}  // namespace
}  // namespace tilewright::ops
