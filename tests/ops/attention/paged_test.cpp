// Attention over keys in pages, and with lengths that only the device knows: each option against
// the float64 reference over the keys gathered from their pages, under all checks of the simulator.
#include "tests/ops/attention/paged_case.h"

namespace tilewright::ops {
namespace {

class AttentionPagedTest : public ChipTest<AttentionPagedTest> {
 protected:
  static void check(const PagedCase& c) { PagedRun(*device_, c).check(); }
  // Of each kernel that was written by itself: Blackwell's pair of CTAs has heads above 128, all
  // others of a chip are one.
  template <class Run>
  static void with_each_kernel(const Run& run) {
    for (const std::int64_t head_dim : {64, 256}) {
      if (head_dim > 128 && !is_blackwell()) continue;
      SCOPED_TRACE(fmt::format("head_dim {}", head_dim));
      run(head_dim);
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionPagedTest);

TEST_P(AttentionPagedTest, PagesOfAnySize) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {2, 4, 7, 8, 32, 48, 100, 128, 256}) {
      SCOPED_TRACE(page_size);
      check(mixed(page_size, head_dim));
    }
  });
}
TEST_P(AttentionPagedTest, GatheredAndCopiedByWarpsAndByOneThread) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {1, 16, 64}) {
      SCOPED_TRACE(page_size);
      check(mixed(page_size, head_dim));
    }
  });
}
// Tiles of sequences that have several, one and none are drawn from two lists.
TEST_P(AttentionPagedTest, SeveralTilesBesideSingleOnes) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {1, 16, 64}) {
      SCOPED_TRACE(page_size);
      PagedCase c = mixed(page_size, head_dim);
      c.problem.heads = head_dim == 256 ? 8 : 4;
      c.problem.kv_heads = 2;
      c.q_rooms = {1, 100, 0, 2, 97, 1, 96};
      c.q_lengths = {1, 100, 0, 2, 96, 0, 97};
      c.kv_lengths = {97, 120, 50, 2, 96, 40, 100};
      check(c);
    }
  });
}
// One launch each, by which tools/mutate.py judges mutants: of the pair of CTAs and of the kernel
// for heads up to 128, over parts of pages, gathered rows, and rings that go around many times.
PagedCase launch(std::int64_t page_size, std::int64_t head_dim, std::int64_t keys) {
  PagedCase c = mixed(page_size, head_dim);
  c.problem.kv_len = keys;
  c.q_rooms = {70, 1}, c.kv_lengths = {static_cast<std::int32_t>(keys), 131};
  c.has_missing_page = true;
  return c;
}
TEST_P(AttentionPagedTest, OneLaunchOfWideHeads) {
  check(launch(16, 256, 600));
}
TEST_P(AttentionPagedTest, OneLongLaunchOfWideHeads) {
  check(launch(1, 256, 2100));
}
TEST_P(AttentionPagedTest, OneLaunchOfHeads) {
  check(launch(16, 64, 1100));
}
TEST_P(AttentionPagedTest, OneLongLaunchOfHeads) {
  check(launch(1, 64, 5000));
}

TEST_P(AttentionPagedTest, EveryFormOfTheKernel) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    // Gathered, copied by warps and by one thread.
    for (const auto& [head_dim, page_size] :
         {std::pair{64, 64}, std::pair{96, 1}, std::pair{96, 16}, std::pair{96, 64},
          std::pair{128, 4}, std::pair{128, 16}, std::pair{128, 64}, std::pair{192, 1},
          std::pair{192, 16}, std::pair{192, 96}, std::pair{256, 4}, std::pair{256, 16},
          std::pair{256, 80}}) {
      SCOPED_TRACE(fmt::format("{} {} pages of {}", to_string(dtype), head_dim, page_size));
      PagedCase c = mixed(page_size, head_dim);
      c.problem.dtype = dtype;
      check(c);
    }
  }
}
// Computed by the next wider form, with zeros that copies deliver. What lies behind a row of
// out is the next head's. Every second one is f16, every third one has no pages.
TEST_P(AttentionPagedTest, EveryMultipleOf8) {
  for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8) {
    SCOPED_TRACE(head_dim);
    const std::int64_t number = head_dim / 8;
    PagedCase c = mixed(number % 3 == 0 ? 0 : number % 5 == 0 ? 4 : 16, head_dim);
    c.problem.dtype = number % 2 == 0 ? DType::kBF16 : DType::kF16;
    c.problem.kv_len = 30;
    c.q_rooms = {20, 1, 0, 3};
    c.kv_lengths = {30, 11, 20, 0};
    check(c);
  }
}
// Values that are not as wide as keys: as the form has them, and narrower ones of both.
TEST_P(AttentionPagedTest, ValuesOfAnotherWidth) {
  for (const auto& [head_dim, value_dim, page_size] :
       {std::tuple{192, 128, 64}, std::tuple{192, 128, 1}, std::tuple{192, 128, 16},
        std::tuple{136, 104, 64}, std::tuple{40, 72, 8}, std::tuple{104, 240, 16}}) {
    SCOPED_TRACE(fmt::format("{} and {}, pages of {}", head_dim, value_dim, page_size));
    PagedCase c = mixed(page_size, head_dim);
    AttentionProblem& p = c.problem;
    p.value_dim = value_dim;
    p.dtype = page_size == 64 ? DType::kBF16 : DType::kF16;
    p.heads = 4;
    p.has_sink = true;
    if (page_size == 16) p.window_left = 40;
    if (page_size == 8) c.page_gap = 8;
    check(c);
  }
}
// Heads that share keys share tiles of rows, as far as a power of two divides their number.
TEST_P(AttentionPagedTest, GroupsOfHeads) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const auto& [heads, kv_heads] :
         {std::pair{2, 2}, std::pair{3, 1}, std::pair{12, 2}, std::pair{16, 2}, std::pair{64, 1}}) {
      for (const std::int64_t page_size : {16, 64}) {
        SCOPED_TRACE(fmt::format("heads {}/{}, pages of {}", heads, kv_heads, page_size));
        PagedCase c = mixed(page_size, head_dim);
        c.problem.heads = heads;
        c.problem.kv_heads = kv_heads;
        c.problem.has_sink = true;
        c.problem.window_left = 40;
        if (heads > 16) c.q_rooms = {5, 1, 0, 3};
        check(c);
      }
    }
  });
}
TEST_P(AttentionPagedTest, EveryOption) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const bool is_packed : {false, true}) {
      for (const int option : {0, 1, 2, 3, 4}) {
        SCOPED_TRACE(fmt::format("packed {}, option {}", is_packed, option));
        PagedCase c = mixed(16, head_dim);
        AttentionProblem& p = c.problem;
        if (!is_packed) {
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
        check(c);
      }
    }
  });
}
// Also of queries: what is behind them is not written. Lengths that make no sense count as none or
// all.
TEST_P(AttentionPagedTest, LengthsOfQueries) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {0, 16}) {
      for (const bool is_packed : {false, true}) {
        SCOPED_TRACE(fmt::format("pages of {}, packed {}", page_size, is_packed));
        PagedCase c = mixed(page_size, head_dim);
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
TEST_P(AttentionPagedTest, PagesThatAreNotThereAreZeros) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {4, 16}) {
      SCOPED_TRACE(page_size);
      PagedCase c = mixed(page_size, head_dim);
      c.has_missing_page = true;
      check(c);
    }
  });
}
// Whole prompts: the first tiles of queries see one tile of keys.
TEST_P(AttentionPagedTest, PromptsFromTheirBeginning) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    if (head_dim > 128 && !is_blackwell()) continue;
    for (const std::int64_t page_size : {1, 16, 128}) {
      SCOPED_TRACE(fmt::format("head_dim {}, pages of {}", head_dim, page_size));
      PagedCase c = mixed(page_size, head_dim);
      c.problem.kv_len = 300;
      c.q_rooms = c.kv_lengths = {300, 129, 256, 7};
      check(c);
    }
  }
}
// The last query stands at the last key, so queries that are more than the keys stand before the
// first one: a causal mask and a window leave some of them, or all, without a key. Their out is 0
// and their lse -inf, whatever the sink is.
TEST_P(AttentionPagedTest, QueriesThatSeeNoKey) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const auto& [left, right] : {std::pair{-1, 0}, std::pair{3, 0}, std::pair{2, 4}}) {
      for (const bool has_sink : {false, true}) {
        SCOPED_TRACE(fmt::format("window {}, {}, sink {}", left, right, has_sink));
        PagedCase c = mixed(16, head_dim);
        AttentionProblem& p = c.problem;
        p.causal = false;
        p.window_left = left;
        p.window_right = right;
        p.has_sink = has_sink;
        c.q_rooms = {70, 33, 1, 9};
        c.kv_lengths = {20, 0, 0, 9};
        check(c);
      }
    }
  });
}
// Chunks shorter than a tile of keys, as long as one, and longer; each begins where it begins, in a
// page or not, and without pages as well.
TEST_P(AttentionPagedTest, ChunksOfKeys) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const auto& [chunk, page_size] :
         {std::pair{1, 16}, std::pair{24, 16}, std::pair{96, 64}, std::pair{100, 1},
          std::pair{128, 64}, std::pair{149, 0}, std::pair{400, 16}}) {
      SCOPED_TRACE(fmt::format("chunks of {}, pages of {}", chunk, page_size));
      PagedCase c = mixed(page_size, head_dim == 64 && chunk % 16 == 0 ? 128 : head_dim);
      c.problem.chunk = chunk;
      if (chunk == 149) c.q_lengths = {70, 1, 0, 4};
      check(c);
    }
  });
}
TEST_P(AttentionPagedTest, ChunksAndWindows) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const auto& [left, right] : {std::pair{-1, -1}, std::pair{11, 30}, std::pair{70, 0}}) {
      SCOPED_TRACE(fmt::format("window {}, {}", left, right));
      PagedCase c = mixed(16, head_dim);
      AttentionProblem& p = c.problem;
      p.causal = false;
      p.window_left = left;
      p.window_right = right;
      p.chunk = 50;
      c.q_rooms = {70, 33, 1, 9};  // of the second, 13 stand before the first key
      c.kv_lengths = {150, 20, 0, 9};
      check(c);
    }
  });
}
// Strides that have no common measure as wide as a row: rows of short pages cannot be gathered as
// those of a matrix, and are copied one by one.
TEST_P(AttentionPagedTest, RowsOfNoMatrix) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {1, 2, 16}) {
      SCOPED_TRACE(page_size);
      PagedCase c = mixed(page_size, head_dim);
      c.row_gap = 8;
      check(c);
    }
  });
}
// More than the threads of a CTA, most of them without queries.
TEST_P(AttentionPagedTest, ManySequences) {
  with_each_kernel([](std::int64_t head_dim) {
    PagedCase c = mixed(16, head_dim);
    c.problem.kv_len = 20;
    c.q_rooms.assign(520, 0);
    c.kv_lengths.assign(520, 1);
    for (const std::size_t b :
         {std::size_t{3}, std::size_t{40}, std::size_t{511}, std::size_t{519}}) {
      c.q_rooms[b] = 2;
      c.kv_lengths[b] = 17;
    }
    check(c);
  });
}
// Heads of q and out with gaps between them, and heads outside of rows.
TEST_P(AttentionPagedTest, StridesOfQueries) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const bool is_packed : {false, true}) {
      for (const bool has_heads_outside : {false, true}) {
        SCOPED_TRACE(fmt::format("packed {}, heads outside {}", is_packed, has_heads_outside));
        PagedCase c = mixed(is_packed ? 16 : 64, head_dim);
        give_ragged_rooms(c, is_packed);
        c.has_heads_outside = has_heads_outside;
        c.query_gap = has_heads_outside ? 0 : 24;
        check(c);
      }
    }
  });
}
TEST_P(AttentionPagedTest, PagesApart) {
  with_each_kernel([](std::int64_t head_dim) {
    for (const std::int64_t page_size : {4, 16}) {
      SCOPED_TRACE(page_size);
      PagedCase c = mixed(page_size, head_dim);
      c.page_gap = 16;
      check(c);
    }
  });
}
TEST_P(AttentionPagedTest, NoPagesAtAll) {
  with_each_kernel([](std::int64_t head_dim) {
    PagedCase c = mixed(16, head_dim);
    c.problem.kv_len = 0;
    c.kv_lengths = {0, 5, 0, 0};
    check(c);
  });
}

}  // namespace
}  // namespace tilewright::ops
