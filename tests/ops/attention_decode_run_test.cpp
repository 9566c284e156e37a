// The decode operator on every device: each feature against the float64 reference, under all checks
// of the simulator.
#include "device/graph.h"
#include "device/internal.h"
#include "ops/decode/bind.h"
#include "ops/decode/kernels.h"
#include "ops/operator/operator.h"
#include "tests/ops/attention_decode_case.h"
#include "tests/ops/operator_test.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {
namespace {

// 300 keys are 19 pieces; 37 end within one.
const DecodeCase kSmall = {
    {.batch = 2, .heads = 4, .kv_heads = 2, .head_dim = 64, .max_len = 320, .has_lse = true},
    {300, 37}};

DecodeCase with(DecodeCase c, auto change) {
  change(c.problem);
  return c;
}
DecodeCase paged(DecodeCase c, std::int64_t page_size) {
  AttentionDecodeProblem& p = c.problem;
  p.max_len = 0, p.page_size = page_size;
  std::int64_t most = 0, all = 0;
  for (const std::int32_t length : c.lengths) {
    const std::int64_t keys = length + (p.append.is_wanted ? p.q_len : 0);
    most = std::max(most, (keys + page_size - 1) / page_size);
    all += (keys + page_size - 1) / page_size;
  }
  p.max_pages = most + 1, p.num_pages = all + 3, p.table_stride = p.max_pages + 2;
  return c;
}
void to_codes(AttentionDecodeProblem& p) {
  p.kv_dtype = DType::kF8_E4M3;
}

/// Rows of codes that are no multiples of 16 bytes have gaps.
void to_head_dim(AttentionDecodeProblem& p, std::int64_t head_dim) {
  p.head_dim = head_dim;
  if (p.kv_dtype != DType::kF8_E4M3 || head_dim % 16 == 0) return;
  const std::int64_t row = (head_dim + 8) * p.kv_heads;
  p.cache_strides = {(p.page_size > 0 ? p.page_size : p.max_len) * row, row, head_dim + 8};
}

class AttentionDecodeRunTest : public ChipTest<AttentionDecodeRunTest> {
 protected:
  static void check(const DecodeCase& c) {
    SCOPED_TRACE(plan_attention_decode(*device_, c.problem).to_string());
    DecodeRun(*device_, c).check();
  }
  /// Names of the kernels that do it on this device.
  static std::vector<const char*> kernels_of(const DecodeCase& c) {
    std::vector<const char*> names;
    for (const DecodeKernel& kernel : decode_kernels())
      if (decode_obstacle(kernel, complete(c.problem), opened(*device_).info()).empty())
        names.push_back(kernel.name);
    EXPECT_GE(names.size(), 2u);
    return names;
  }
  /// The case with each of them, and with keys in boxes and gathered.
  static void check_with_every_kernel(DecodeCase c) {
    for (const char* const kernel : kernels_of(c)) {
      c.problem.kernel = kernel;
      check(c);
      if (is_blackwell()) check(paged(c, 3));
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionDecodeRunTest);

struct Types {
  DType dtype, kv_dtype;
};
constexpr Types kTypes[] = {{DType::kBF16, DType::kBF16},
                            {DType::kF16, DType::kF16},
                            {DType::kBF16, DType::kF8_E4M3},
                            {DType::kF16, DType::kF8_E4M3}};

TEST_P(AttentionDecodeRunTest, EveryTypeAtEveryHeadDim) {
  for (const Types types : kTypes) {
    for (const std::int64_t head_dim : {64, 128, 256})
      check_with_every_kernel(with(kSmall, [&](AttentionDecodeProblem& p) {
        p.dtype = types.dtype, p.kv_dtype = types.kv_dtype, p.head_dim = head_dim;
      }));
  }
}
// Those that are multiplied as 64, 96, 128, 192 and 256 elements, and are fewer.
TEST_P(AttentionDecodeRunTest, EveryTypeAtEveryMultipleOf8) {
  for (const Types types : {kTypes[0], kTypes[1], kTypes[2]}) {
    for (std::int64_t head_dim = 8; head_dim < 256; head_dim += 8) {
      if (head_dim == 64 || head_dim == 128) continue;
      check({with({{.heads = 2, .kv_heads = 1, .max_len = 32, .has_lse = true}, {21}},
                  [&](AttentionDecodeProblem& p) {
                    p.dtype = types.dtype, p.kv_dtype = types.kv_dtype;
                    to_head_dim(p, head_dim);
                  })});
    }
  }
}
// Tiles of 16, 32 and 64 rows, the last ones not filled.
TEST_P(AttentionDecodeRunTest, EveryKernelAtOtherHeadDims) {
  for (const Types types : {kTypes[0], kTypes[2]}) {
    for (const std::int64_t head_dim : {40, 80, 112, 192, 248})
      check_with_every_kernel(
          with({{.q_len = 5, .heads = 14, .kv_heads = 1, .max_len = 48, .has_lse = true}, {43}},
               [&](AttentionDecodeProblem& p) {
                 p.kv_dtype = types.kv_dtype;
                 to_head_dim(p, head_dim);
               }));
  }
}
// Every option at once, over pages, in clusters and in parts; and rows with gaps between them.
TEST_P(AttentionDecodeRunTest, OptionsCrossedAtOtherHeadDims) {
  for (const Types types : {kTypes[1], kTypes[3]}) {
    for (const std::int64_t head_dim : {48, 80, 96, 120, 160, 192, 224}) {
      for (const std::int64_t splits : {0, 3}) {
        check(paged(with(kSmall,
                         [&](AttentionDecodeProblem& p) {
                           p.dtype = types.dtype, p.kv_dtype = types.kv_dtype, p.splits = splits;
                           p.q_len = 3, p.has_sink = true, p.softcap = 2, p.scale = 0.3;
                           if (splits > 0) p.window_left = 90;
                           p.page_size = 16, p.max_len = 0;
                           to_head_dim(p, head_dim);
                           if (types.kv_dtype == DType::kF8_E4M3)
                             p.descale = ScaleSharing::kHead;
                           else
                             p.cache_strides = {16 * 2 * 264, 264, 16 * 264};
                         }),
                    16));
      }
    }
  }
}
// More queries than keys: those that stand before the first key see all of them if not causal.
TEST_P(AttentionDecodeRunTest, QueriesBeforeTheFirstKeyOfOtherHeadDims) {
  for (const bool causal : {true, false})
    check(with({{.batch = 2, .q_len = 7, .heads = 3, .max_len = 64, .has_lse = true}, {3, 40}},
               [&](AttentionDecodeProblem& p) { p.head_dim = 80, p.causal = causal; }));
}
TEST_P(AttentionDecodeRunTest, NewTokensOfOtherHeadDims) {
  for (const Types types : {kTypes[0], kTypes[3]}) {
    for (const std::int64_t head_dim : {80, 112}) {
      check(paged(with(kSmall,
                       [&](AttentionDecodeProblem& p) {
                         p.dtype = types.dtype, p.kv_dtype = types.kv_dtype, p.head_dim = head_dim;
                         p.q_len = 2, p.append = {true, RotaryPairs::kHalves, 32, 320};
                       }),
                  3));
    }
  }
}
// Tiles of 16, 32 and 64 rows, the last ones not filled.
TEST_P(AttentionDecodeRunTest, EveryKernelWithSeveralTilesOfRows) {
  for (const Types types : {kTypes[0], kTypes[2]}) {
    for (const std::int64_t head_dim : {64, 128, 256})
      check_with_every_kernel(with(
          {{.q_len = 5, .heads = 14, .kv_heads = 1, .head_dim = head_dim, .max_len = 100}, {83}},
          [&](AttentionDecodeProblem& p) { p.kv_dtype = types.kv_dtype, p.has_lse = true; }));
  }
}
TEST_P(AttentionDecodeRunTest, GroupsOfHeads) {
  for (const std::int64_t heads : {1, 3, 8, 16, 32})
    check(with(kSmall, [&](AttentionDecodeProblem& p) { p.heads = heads, p.kv_heads = 1; }));
  check(with(kSmall, [](AttentionDecodeProblem& p) { p.heads = p.kv_heads = 5; }));
}
TEST_P(AttentionDecodeRunTest, SeveralQueriesOfASequence) {
  for (const std::int64_t q_len : {2, 3, 16}) {
    for (const bool causal : {true, false})
      check(with(kSmall, [&](AttentionDecodeProblem& p) { p.q_len = q_len, p.causal = causal; }));
  }
}
TEST_P(AttentionDecodeRunTest, RaggedLengths) {
  DecodeCase c = kSmall;
  c.lengths = {0, 1, 319, 16, 17, 0, 128, 15, 200};
  c.problem.batch = 9;
  check(c);
  check(with(c, [](AttentionDecodeProblem& p) { p.q_len = 16; }));
  c.lengths.assign(9, 0);
  check(c);
  c.lengths.assign(9, 1);
  check(c);
}
// More sequences than lanes: each of these has several.
TEST_P(AttentionDecodeRunTest, ManySequences) {
  DecodeCase c = {{.batch = 70, .heads = 2, .kv_heads = 2, .head_dim = 64, .max_len = 64}, {}};
  for (int i = 0; i < 70; ++i) c.lengths.push_back(i * 37 % 65);
  check(c);
  check(with(c, [](AttentionDecodeProblem& p) { p.splits = 2; }));
}
TEST_P(AttentionDecodeRunTest, PagesOfEverySize) {
  for (const std::int64_t page : {1, 3, 16, 64, 256}) {
    check(paged(kSmall, page));
    check(paged(with(kSmall, to_codes), page));
  }
}
// Boxes of 16 keys, the last of which lie behind the end or before the window.
TEST_P(AttentionDecodeRunTest, BoxesOfPages) {
  for (const std::int64_t page : {0, 16, 48, 256}) {
    for (const Types types : {kTypes[0], kTypes[2]}) {
      for (const std::int64_t window : {-1, 5, 40}) {
        const DecodeCase c = with(kSmall, [&](AttentionDecodeProblem& p) {
          p.kernel = is_blackwell() ? "t16" : "r16_tma";
          p.kv_dtype = types.kv_dtype, p.window_left = window, p.q_len = 3;
        });
        check(page == 0 ? c : paged(c, page));
      }
    }
  }
  DecodeCase c = paged(kSmall, 16);
  c.problem.kernel = is_blackwell() ? "t16" : "r16_tma";
  c.problem.cache_strides = {2 * 16 * 72, 72, 16 * 72};
  check(c);
}
// What was worked out, and asked for, from lengths that another kernel changes meanwhile.
TEST_P(AttentionDecodeRunTest, AWrongGuessOfLengthsIsCorrected) {
  DecodeCase many = {{.batch = 40, .heads = 2, .kv_heads = 2, .head_dim = 64, .max_len = 64}, {}};
  for (int i = 0; i < 40; ++i) many.lengths.push_back(i * 37 % 65);
  const device::Device& inner = opened(*device_);
  for (const DecodeCase& base : {kSmall, paged(kSmall, 16), many}) {
    for (const char* const kernel : kernels_of(base)) {
      for (const std::int32_t wrong : {-1, 0, 1, 320, 2000000000}) {
        DecodeCase c = base;
        c.problem.kernel = kernel;
        const Buffer guess = Buffer::from(inner, std::vector(c.lengths.size(), wrong));
        SCOPED_TRACE(fmt::format("{}, {} sequences, guess {}", kernel, c.lengths.size(), wrong));
        DecodeRun(*device_, c)
            .check([&](const AttentionDecode& decode, const AttentionDecodeArguments& arguments,
                       const device::Stream& stream) {
              const DecodePlanned planned = make_decode_plan(inner.info(), decode.plan().problem);
              const auto entries = load_entries(inner, planned.plan.launches);
              for (std::size_t i = 0; i < entries.size(); ++i)
                launch_decode(inner, planned, arguments, i, entries[i], stream,
                              kernels::pointer_to<const std::int32_t>(guess));
            });
      }
    }
  }
}
TEST_P(AttentionDecodeRunTest, ForcedSplits) {
  for (const std::int64_t splits : {1, 2, 3, 7, 40}) {
    check(with(kSmall, [&](AttentionDecodeProblem& p) { p.splits = splits, p.has_sink = true; }));
    check(paged(
        with(kSmall, [&](AttentionDecodeProblem& p) { p.splits = splits, p.head_dim = 128; }), 16));
  }
}
TEST_P(AttentionDecodeRunTest, Windows) {
  for (const std::int64_t window : {0, 5, 40, 1000}) {
    for (const std::int64_t q_len : {1, 6})
      check(with(kSmall,
                 [&](AttentionDecodeProblem& p) { p.window_left = window, p.q_len = q_len; }));
    check(paged(with(kSmall, [&](AttentionDecodeProblem& p) { p.window_left = window; }), 3));
  }
}
// The last key before a border, on it and behind it; borders between queries of a sequence; fewer
// keys than queries; chunks that are no multiple of a piece, of one key, and longer than all.
TEST_P(AttentionDecodeRunTest, Chunks) {
  DecodeCase c = with(kSmall, [](AttentionDecodeProblem& p) { p.batch = 9, p.max_len = 200; });
  c.lengths = {63, 64, 65, 66, 127, 128, 129, 0, 1};
  for (const std::int64_t q_len : {1, 3}) {
    for (const bool causal : {true, false})
      check(with(
          c, [&](AttentionDecodeProblem& p) { p.chunk = 64, p.q_len = q_len, p.causal = causal; }));
  }
  for (const std::int64_t chunk : {1, 7, 43, 100000})
    check(paged(with(c, [&](AttentionDecodeProblem& p) { p.chunk = chunk, p.q_len = 2; }), 16));
}
TEST_P(AttentionDecodeRunTest, ChunksWithOtherOptions) {
  for (const Types types : kTypes) {
    for (const std::int64_t head_dim : {128, 96, 256}) {
      check_with_every_kernel(with(
          {{.batch = 2, .heads = 4, .kv_heads = 2, .max_len = 200, .has_lse = true}, {197, 130}},
          [&](AttentionDecodeProblem& p) {
            p.dtype = types.dtype, p.kv_dtype = types.kv_dtype, p.head_dim = head_dim;
            p.chunk = 64, p.q_len = 3, p.window_left = 40, p.has_sink = true;
            if (types.kv_dtype == DType::kF8_E4M3) p.descale = ScaleSharing::kHead;
            if (head_dim == 96) p.splits = 3;
          }));
    }
  }
  // New tokens that cross a border.
  DecodeCase c = with(kSmall, [](AttentionDecodeProblem& p) {
    p.chunk = 32, p.q_len = 4, p.append = {true, RotaryPairs::kHalves, 32, 320};
  });
  c.lengths = {62, 33};
  check(paged(c, 16));
}
TEST_P(AttentionDecodeRunTest, ScaleSoftcapAndSink) {
  for (const Types types : {kTypes[0], kTypes[2]}) {
    const DecodeCase base =
        with(kSmall, [&](AttentionDecodeProblem& p) { p.kv_dtype = types.kv_dtype; });
    check(with(base, [](AttentionDecodeProblem& p) { p.softcap = 2, p.scale = 0.3; }));
    check(with(base, [](AttentionDecodeProblem& p) { p.has_sink = true; }));
    DecodeCase extreme = with(base, [](AttentionDecodeProblem& p) { p.has_sink = true; });
    extreme.sink = {INFINITY, -INFINITY, 100, -100};
    check(extreme);
  }
}
// Every option at once, with every kernel, type and head_dim.
TEST_P(AttentionDecodeRunTest, OptionsCrossed) {
  for (const Types types : kTypes) {
    for (const std::int64_t head_dim : {64, 128, 256}) {
      const DecodeCase c = with(kSmall, [&](AttentionDecodeProblem& p) {
        p.dtype = types.dtype, p.kv_dtype = types.kv_dtype, p.head_dim = head_dim;
        p.q_len = 3, p.has_sink = true, p.window_left = 90;
        p.softcap = 2, p.scale = 0.3;
        if (types.kv_dtype == DType::kF8_E4M3) p.descale = ScaleSharing::kHead;
      });
      check_with_every_kernel(head_dim == 128 ? paged(c, 16) : c);
    }
  }
}
TEST_P(AttentionDecodeRunTest, NewTokensOfDescaledCodes) {
  for (const ScaleSharing descale : {ScaleSharing::kTensor, ScaleSharing::kHead}) {
    for (const std::int64_t head_dim : {64, 256}) {
      check(paged(with(kSmall,
                       [&](AttentionDecodeProblem& p) {
                         to_codes(p);
                         p.head_dim = head_dim, p.descale = descale, p.append.is_wanted = true;
                         p.has_sink = true, p.window_left = 40;
                       }),
                  16));
    }
  }
}
TEST_P(AttentionDecodeRunTest, DescaledCodes) {
  for (const ScaleSharing descale : {ScaleSharing::kTensor, ScaleSharing::kHead}) {
    for (const std::int64_t splits : {1, 3})
      check(with(kSmall, [&](AttentionDecodeProblem& p) {
        to_codes(p);
        p.descale = descale, p.splits = splits;
      }));
  }
}
TEST_P(AttentionDecodeRunTest, StridesOfACache) {
  // [page, head, slot, dim] with a gap behind every row, and [page, slot, k and v, head, dim].
  DecodeCase c = paged(kSmall, 16);
  c.problem.cache_strides = {2 * 16 * 72, 72, 16 * 72};
  check(c);
  c.problem.cache_strides = {16 * 256, 256, 64};
  check(c);
}
TEST_P(AttentionDecodeRunTest, NewTokensAreWrittenAndAttendedTo) {
  for (const Types types : kTypes) {
    for (const std::int64_t q_len : {1, 3}) {
      const DecodeCase c = with(kSmall, [&](AttentionDecodeProblem& p) {
        p.dtype = types.dtype, p.kv_dtype = types.kv_dtype, p.q_len = q_len;
        p.append.is_wanted = true;
      });
      check(c);
      check(paged(c, 16));
    }
  }
}
TEST_P(AttentionDecodeRunTest, NewTokensAreRotated) {
  for (const RotaryPairs pairs : {RotaryPairs::kInterleaved, RotaryPairs::kHalves}) {
    for (const std::int64_t dim : {64, 24}) {
      for (const bool is_exact : {true, false}) {
        DecodeCase c = paged(with(kSmall,
                                  [&](AttentionDecodeProblem& p) {
                                    p.q_len = 2;
                                    p.append = {true, pairs, dim, 320};
                                  }),
                             3);
        c.has_exact_numbers = is_exact;
        check(c);
        if (!is_exact) continue;
        to_codes(c.problem);
        c.problem.descale = ScaleSharing::kHead;
        check(c);
      }
    }
  }
}
TEST_P(AttentionDecodeRunTest, RowsOfEmptySequencesAreZeros) {
  DecodeCase c = kSmall;
  c.lengths = {0, -5};
  check(c);
  check(with(c, [](AttentionDecodeProblem& p) { p.has_sink = true, p.splits = 3; }));
}
TEST_P(AttentionDecodeRunTest, LengthsBeyondTheRoomCountAsTheRoom) {
  DecodeCase c = kSmall;
  c.lengths = {2000000000, 37};
  check(c);
}
// Behind the largest number no token has a place, and none before the first key.
TEST_P(AttentionDecodeRunTest, NewTokensBehindTheLargestLength) {
  for (const std::int64_t page_size : {0, 16}) {
    for (const RotaryPairs pairs : {RotaryPairs::kNone, RotaryPairs::kHalves}) {
      DecodeCase c = with(kSmall, [&](AttentionDecodeProblem& p) {
        p.q_len = 3, p.append.is_wanted = true;
        if (pairs != RotaryPairs::kNone) p.append = {true, pairs, 32, 320};
        if (page_size == 0) return;
        p.max_len = 0, p.page_size = page_size, p.max_pages = 5, p.num_pages = 9;
      });
      c.lengths = {std::numeric_limits<std::int32_t>::max(), 37};
      check(c);
    }
  }
}
TEST_P(AttentionDecodeRunTest, NothingToDo) {
  check(with(kSmall, [](AttentionDecodeProblem& p) { p.q_len = 0; }));
  DecodeCase none = kSmall;
  none.problem.batch = 0, none.lengths.clear();
  check(none);
  DecodeCase roomless = kSmall;
  roomless.problem.max_len = 0, roomless.lengths = {0, 0};
  check(roomless);
}
TEST_P(AttentionDecodeRunTest, CapturedInAGraphAndLaunchedTwice) {
  DecodeRun(*device_, paged(kSmall, 16))
      .check([](const AttentionDecode& decode, const AttentionDecodeArguments& arguments,
                const device::Stream& stream) {
        const auto graph = device::Graph::capture(stream, [&] { decode.run(arguments); });
        graph.launch(stream);
        graph.launch(stream);
      });
}
TEST_P(AttentionDecodeRunTest, TheSameBitsEveryTime) {
  DecodeCase c = kSmall;
  c.lengths = {311, 120};
  DecodeRun first(*device_, c), second(*device_, c);
  first.check();
  second.check();
  EXPECT_EQ(first.out(), second.out());
  EXPECT_EQ(std::memcmp(first.lse().data(), second.lse().data(), first.lse().size() * 4), 0);
}
// With a fixed number of parts a sequence's result does not depend on what else is in the batch.
TEST_P(AttentionDecodeRunTest, FixedSplitsDoNotDependOnTheBatch) {
  DecodeCase c = with(kSmall, [](AttentionDecodeProblem& p) { p.splits = 4; });
  DecodeRun both(*device_, c);
  both.check();
  c.problem.batch = 1, c.lengths = {300};
  DecodeRun alone(*device_, c);
  alone.check();
  ASSERT_FALSE(alone.out().empty());
  EXPECT_TRUE(std::equal(alone.out().begin(), alone.out().end(), both.out().begin()));
}

}  // namespace
}  // namespace tilewright::ops
