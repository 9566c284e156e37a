// Attention over caches of e4m3 in pages: queries of e4m3, and of 16 bits. Each option against the
// float64 reference of the numbers that codes and scales stand for, under all checks of the
// simulator.
#include "tests/ops/attention/paged_case.h"

namespace tilewright::ops {
namespace {

struct CacheKind {
  DType dtype;
  const char *hopper, *blackwell;  ///< kernels
};
constexpr CacheKind kE4m3Queries = {DType::kF8_E4M3, "k7_pages", "sm100_pages_e4m3"},
                    kWideQueries = {DType::kBF16, "k6_pages", "sm100_pages"};

class AttentionPagedE4m3Test : public ChipTest<AttentionPagedE4m3Test> {
 protected:
  static void check(const PagedCase& c) { PagedRun(*device_, c).check(); }
  static PagedCase mixed_of(const CacheKind& kind, std::int64_t page_size,
                            std::int64_t head_dim = 64) {
    PagedCase c = mixed(page_size, head_dim);
    c.problem.dtype = kind.dtype;
    c.problem.kv_dtype = DType::kF8_E4M3;
    c.problem.fp8.scales = ScaleSharing::kHead;
    c.kernel = is_blackwell() ? kind.blackwell : kind.hopper;
    return c;
  }
  // Blackwell's forms for queries of 16 bits are of 64, 128, and 192 with values of 128.
  static bool has_form(const CacheKind& kind, std::int64_t head_dim, std::int64_t value_dim = 0) {
    return !is_blackwell() || kind.dtype == DType::kF8_E4M3 || head_dim <= 128 ||
           (head_dim <= 192 && value_dim > 0 && value_dim <= 128);
  }
  template <class Check>
  static void with_both(const Check& run) {
    for (const CacheKind& kind : {kE4m3Queries, kWideQueries}) {
      SCOPED_TRACE(to_string(kind.dtype));
      run(kind);
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionPagedE4m3Test);

TEST_P(AttentionPagedE4m3Test, PagesOfAnySize) {
  with_both([](const CacheKind& kind) {
    for (const std::int64_t page_size : {1, 4, 7, 16, 48, 64, 100, 128, 256}) {
      SCOPED_TRACE(page_size);
      check(mixed_of(kind, page_size));
    }
  });
}
// One launch each, by which tools/mutate.py judges mutants: of e4m3 queries, and of queries of 16
// bits over codes that are widened.
TEST_P(AttentionPagedE4m3Test, OneLaunchOfE4m3Queries) {
  PagedCase c = mixed_of(kE4m3Queries, 16, 128);
  c.problem.kv_len = 700, c.q_rooms = {70, 1}, c.kv_lengths = {700, 131};
  c.has_missing_page = true;
  check(c);
}
TEST_P(AttentionPagedE4m3Test, OneLongLaunchOfE4m3Queries) {
  PagedCase c = mixed_of(kE4m3Queries, 1, 128);
  c.problem.kv_len = 3300, c.q_rooms = {70, 1}, c.kv_lengths = {3300, 131};
  check(c);
}
TEST_P(AttentionPagedE4m3Test, OneLaunchOfWidenedCodes) {
  PagedCase c = mixed_of(kWideQueries, 16, 64);
  c.problem.kv_len = 1100, c.q_rooms = {70, 1}, c.kv_lengths = {1100, 131};
  c.has_missing_page = true;
  check(c);
}
TEST_P(AttentionPagedE4m3Test, OneLongLaunchOfWidenedCodes) {
  PagedCase c = mixed_of(kWideQueries, 1, 64);
  c.problem.kv_len = 5000, c.q_rooms = {70, 1}, c.kv_lengths = {5000, 131};
  check(c);
}
// Both levels of sums, results of both types; gathered and copied in parts.
TEST_P(AttentionPagedE4m3Test, EveryFormOfE4m3Queries) {
  for (const Fp8Accumulation sums : {Fp8Accumulation::kOneLevel, Fp8Accumulation::kTwoLevel}) {
    for (const std::int64_t head_dim : {64, 128, 256}) {
      for (const std::int64_t page_size : {1, 16, 64}) {
        SCOPED_TRACE(fmt::format("{} levels, {}, pages of {}",
                                 sums == Fp8Accumulation::kOneLevel ? "one" : "two", head_dim,
                                 page_size));
        PagedCase c = mixed_of(kE4m3Queries, page_size, head_dim);
        c.problem.fp8.accumulation = sums;
        c.problem.out_dtype = page_size == 16 ? DType::kF16 : DType::kBF16;
        check(c);
      }
    }
  }
}
TEST_P(AttentionPagedE4m3Test, EveryFormOfWideQueries) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const auto& [head_dim, value_dim] :
         {std::pair{64, 0}, std::pair{96, 0}, std::pair{128, 0}, std::pair{192, 0},
          std::pair{256, 0}, std::pair{192, 128}}) {
      if (!has_form(kWideQueries, head_dim, value_dim)) continue;
      SCOPED_TRACE(fmt::format("{} {} {}", to_string(dtype), head_dim, value_dim));
      PagedCase c = mixed_of(kWideQueries, 16, head_dim);
      c.problem.dtype = dtype;
      c.problem.value_dim = value_dim;
      check(c);
    }
  }
}
// Computed by the next wider form, with zeros behind the ends of rows.
TEST_P(AttentionPagedE4m3Test, EveryMultipleOf16) {
  with_both([](const CacheKind& kind) {
    for (std::int64_t head_dim = 16; head_dim <= 256 && has_form(kind, head_dim); head_dim += 16) {
      SCOPED_TRACE(head_dim);
      PagedCase c = mixed_of(kind, head_dim % 48 == 0 ? 4 : 16, head_dim);
      c.problem.kv_len = 30;
      c.q_rooms = {20, 1, 0, 3};
      c.kv_lengths = {30, 11, 20, 0};
      check(c);
    }
  });
}
TEST_P(AttentionPagedE4m3Test, GroupsOfHeads) {
  with_both([](const CacheKind& kind) {
    for (const auto& [heads, kv_heads] : {std::pair{2, 2}, std::pair{12, 2}, std::pair{64, 1}}) {
      SCOPED_TRACE(fmt::format("heads {}/{}", heads, kv_heads));
      PagedCase c = mixed_of(kind, 16);
      c.problem.heads = heads;
      c.problem.kv_heads = kv_heads;
      c.problem.has_sink = true;
      c.problem.window_left = 40;
      if (heads > 16) c.q_rooms = {5, 1, 0, 3};
      check(c);
    }
  });
}
TEST_P(AttentionPagedE4m3Test, EveryOption) {
  with_both([](const CacheKind& kind) {
    for (const int option : {0, 1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("option {}", option));
      PagedCase c = mixed_of(kind, 16);
      AttentionProblem& p = c.problem;
      if (option % 2 == 0) {
        c.q_rooms.clear();
        p.q_len = 70;
      }
      p.causal = option != 0;
      if (option == 1) p.window_left = 33;
      if (option == 2) {
        p.causal = false;
        p.window_left = 20;
        p.window_right = 11;
      }
      if (option == 3) p.softcap = 5;
      p.has_sink = option == 4;
      p.has_lse = option != 4;
      if (option == 4) p.fp8.scales = ScaleSharing::kTensor;
      check(c);
    }
  });
}
TEST_P(AttentionPagedE4m3Test, LengthsOfQueriesWithAndWithoutPages) {
  with_both([](const CacheKind& kind) {
    for (const std::int64_t page_size : {0, 16}) {
      for (const bool is_packed : {false, true}) {
        SCOPED_TRACE(fmt::format("pages of {}, packed {}", page_size, is_packed));
        PagedCase c = mixed_of(kind, page_size);
        if (!is_packed) c.q_rooms.clear();
        if (is_packed) c.q_rooms = {70, 70, 70, 70};
        c.problem.q_len = 70;
        c.q_lengths = {67, 1, -3, 1 << 30};
        c.kv_lengths = {149, 1 << 30, -1, 77};
        check(c);
      }
    }
  });
}
TEST_P(AttentionPagedE4m3Test, PagesThatAreNotThereAreZerosAndPagesApart) {
  with_both([](const CacheKind& kind) {
    for (const std::int64_t page_size : {4, 16}) {
      SCOPED_TRACE(page_size);
      PagedCase c = mixed_of(kind, page_size);
      c.has_missing_page = true;
      c.page_gap = 16;
      check(c);
    }
  });
}
TEST_P(AttentionPagedE4m3Test, StridesOfQueries) {
  with_both([](const CacheKind& kind) {
    for (const bool is_packed : {false, true}) {
      SCOPED_TRACE(fmt::format("packed {}", is_packed));
      PagedCase c = mixed_of(kind, 16);
      give_ragged_rooms(c, is_packed);
      c.query_gap = 16;
      c.has_heads_outside = is_packed;
      check(c);
    }
  });
}
// Whole prompts: the first tiles of queries see one tile of keys, the last ones several.
TEST_P(AttentionPagedE4m3Test, PromptsFromTheirBeginning) {
  with_both([](const CacheKind& kind) {
    for (const std::int64_t page_size : {1, 64}) {
      SCOPED_TRACE(page_size);
      PagedCase c = mixed_of(kind, page_size, 128);
      c.problem.kv_len = 400;
      c.q_rooms = c.kv_lengths = {400, 129, 256, 7};
      check(c);
    }
  });
}
TEST_P(AttentionPagedE4m3Test, QueriesThatSeeNoKey) {
  with_both([](const CacheKind& kind) {
    PagedCase c = mixed_of(kind, 16);
    AttentionProblem& p = c.problem;
    p.causal = false;
    p.window_left = 2;
    p.window_right = 4;
    p.has_sink = true;
    c.q_rooms = {70, 33, 1, 9};
    c.kv_lengths = {20, 0, 0, 9};
    check(c);
  });
}
TEST_P(AttentionPagedE4m3Test, ChunksOfKeys) {
  with_both([](const CacheKind& kind) {
    for (const auto& [chunk, page_size] :
         {std::pair{24, 16}, std::pair{100, 1}, std::pair{128, 64}, std::pair{149, 0}}) {
      SCOPED_TRACE(fmt::format("chunks of {}, pages of {}", chunk, page_size));
      PagedCase c = mixed_of(kind, page_size, 128);
      c.problem.chunk = chunk;
      if (chunk == 149) c.q_lengths = {70, 1, 0, 4};
      check(c);
    }
  });
}
TEST_P(AttentionPagedE4m3Test, NoPagesAtAll) {
  with_both([](const CacheKind& kind) {
    PagedCase c = mixed_of(kind, 16);
    c.problem.kv_len = 0;
    c.kv_lengths = {0, 5, 0, 0};
    check(c);
  });
}

}  // namespace
}  // namespace tilewright::ops
