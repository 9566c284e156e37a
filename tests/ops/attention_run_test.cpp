// The attention operator on every device: each feature against the float64 reference, under all
// checks of the simulator.
#include "device/graph.h"
#include "ops/attention/kernels.h"
#include "tests/ops/attention_case.h"
#include "tests/ops/operator_test.h"

namespace tilewright::ops {
namespace {

class AttentionRunTest : public HopperTest<AttentionRunTest> {
 protected:
  static void check(const AttentionCase& c) { AttentionRun(*device_, c).check(); }
  static void check(const AttentionProblem& problem) { check(AttentionCase{problem, {}, {}, {}}); }

  /// False if the kernel that is named has not what it takes.
  static bool is_possible(const AttentionProblem& problem) {
    try {
      plan_attention(*device_, problem);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
      return false;
    }
  }
};
TILEWRIGHT_ON_EVERY_HOPPER(AttentionRunTest);

// 70 queries cross a warpgroup, 150 keys a tile.
const AttentionProblem kSmall = {
    .heads = 2, .kv_heads = 2, .q_len = 70, .kv_len = 150, .head_dim = 64, .has_lse = true};

AttentionProblem with(AttentionProblem p, auto change) {
  change(p);
  return p;
}

TEST_P(AttentionRunTest, FullAndCausalAtEveryHeadDim) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(fmt::format("head_dim {}, causal {}", head_dim, causal));
      check(with(kSmall, [&](AttentionProblem& p) {
        p.head_dim = head_dim;
        p.causal = causal;
      }));
    }
  }
}
// Every kernel, at every head dimension that it has, with what all of them can do.
TEST_P(AttentionRunTest, EveryKernelOfTheLadder) {
  for (const AttentionKernel& kernel : hopper_attention_kernels()) {
    if (kernel.fp8 != AttentionFp8::kNone) continue;  // they round: attention_fp8_test.cpp
    for (const AttentionVariant& variant : kernel.variants) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(
            fmt::format("{}, head_dim {}, causal {}", kernel.name, variant.head_dim, causal));
        check({.batch = 2,
               .heads = 2,
               .kv_heads = 1,
               .q_len = 70,
               .kv_len = 140,
               .head_dim = variant.head_dim,
               .causal = causal,
               .has_lse = true,
               .kernel = kernel.name,
               .value_dim = variant.value_dim});
      }
    }
  }
}
TEST_P(AttentionRunTest, EveryKernelWithoutKeysAndWithFewerKeysThanQueries) {
  for (const AttentionKernel& kernel : hopper_attention_kernels()) {
    if (kernel.fp8 != AttentionFp8::kNone) continue;
    SCOPED_TRACE(kernel.name);
    const std::int64_t head_dim = kernel.variants[0].head_dim;
    for (const std::int64_t kv_len : {0, 1, 17}) {
      check({.heads = 1,
             .kv_heads = 1,
             .q_len = 30,
             .kv_len = kv_len,
             .head_dim = head_dim,
             .causal = true,
             .has_lse = true,
             .kernel = kernel.name});
    }
  }
}
// Each option with each kernel that has it, by name.
TEST_P(AttentionRunTest, EveryOptionOfEveryKernel) {
  int tried = 0;
  for (const AttentionKernel& kernel : hopper_attention_kernels()) {
    if (kernel.fp8 != AttentionFp8::kNone) continue;
    AttentionProblem base = kSmall;
    base.kernel = kernel.name, base.causal = true;
    base.head_dim = kernel.variants[0].head_dim;
    std::vector<AttentionProblem> problems;
    const auto add = [&](auto change) { problems.push_back(with(base, change)); };
    add([](auto& p) { p.dtype = DType::kF16, p.heads = 4; });
    add([](auto& p) { p.window_left = 20; });
    add([](auto& p) { p.causal = false, p.window_left = 3, p.window_right = 9; });
    add([](auto& p) { p.softcap = 2, p.scale = 0.3; });
    add([](auto& p) { p.has_sink = true; });
    add([](auto& p) { p.softcap = 5, p.has_sink = true, p.window_left = 40, p.has_lse = false; });
    add([](auto& p) {
      const std::int64_t row = p.head_dim + 8;
      p.q_strides = {70 * 2 * row + 8, row, 70 * row};
      p.v_strides = {150 * 4 * p.head_dim, 4 * p.head_dim, p.head_dim};
      p.out_strides = {70 * 2 * (row + 8), 2 * (row + 8), row + 8};
    });
    for (const AttentionProblem& p : problems) {
      if (!is_possible(p)) continue;
      SCOPED_TRACE(plan_attention(*device_, p).to_string());
      check(p);
      ++tried;
    }
    base.has_sink = true;
    AttentionCase several = packed(base, {0, 70, 5, 130}, {20, 0, 150, 100});
    for (const bool has_sink : {true, false}) {
      several.problem.has_sink = has_sink;
      if (!is_possible(several.problem)) continue;
      SCOPED_TRACE(kernel.name);
      check(several);
      ++tried;
    }
  }
  EXPECT_GT(tried, 12);
}
// What attention.h says of values that are not finite: behind the mask they may reach rows of the
// same sequence, in their own column alone.
TEST_P(AttentionRunTest, ANanBehindTheMaskStaysInItsColumnAndSequence) {
  for (const AttentionKernel& kernel : hopper_attention_kernels()) {
    if (kernel.fp8 != AttentionFp8::kNone) continue;
    SCOPED_TRACE(kernel.name);
    const AttentionProblem p = {.batch = 2,
                                .heads = 2,
                                .kv_heads = 2,
                                .q_len = 140,
                                .kv_len = 140,
                                .head_dim = kernel.variants[0].head_dim,
                                .causal = true,
                                .has_lse = true,
                                .kernel = kernel.name};
    for (const double value : {double{NAN}, double{INFINITY}}) {
      AttentionRun run(*device_, {p, {}, {}, {}});
      run.spoil_value(value, 1, 101, 0, 37);
      run.check();
    }
    AttentionProblem several = p;
    several.heads = several.kv_heads = 1;
    const AttentionCase sequences = packed(several, {70, 33, 60}, {70, 33, 60});
    if (!is_possible(sequences.problem)) continue;
    AttentionRun run(*device_, sequences);
    run.spoil_value(NAN, 0, 80, 0, 37);
    run.check();
  }
}
TEST_P(AttentionRunTest, SeveralTilesOfSeveralBatches) {
  check({.batch = 2,
         .heads = 2,
         .kv_heads = 1,
         .q_len = 200,
         .kv_len = 333,
         .head_dim = 64,
         .causal = true,
         .has_lse = true});
}
TEST_P(AttentionRunTest, GroupedHeads) {
  check(with(kSmall, [](AttentionProblem& p) { p.heads = 4; }));
  check(with(kSmall, [](AttentionProblem& p) { p.heads = 3, p.kv_heads = 1; }));
}
TEST_P(AttentionRunTest, Float16) {
  check(with(kSmall, [](AttentionProblem& p) { p.dtype = DType::kF16, p.causal = true; }));
}
TEST_P(AttentionRunTest, FewerKeysThanQueries) {
  check(with(kSmall, [](AttentionProblem& p) { p.kv_len = 30, p.causal = true; }));
  check(with(kSmall, [](AttentionProblem& p) { p.kv_len = 30; }));
}
TEST_P(AttentionRunTest, OneQueryAndOneKey) {
  check(with(kSmall, [](AttentionProblem& p) { p.q_len = 1, p.causal = true; }));
  check(with(kSmall, [](AttentionProblem& p) { p.kv_len = 1; }));
  check(with(kSmall, [](AttentionProblem& p) { p.q_len = p.kv_len = 1; }));
}
TEST_P(AttentionRunTest, NoKeysGiveZeros) {
  check(with(kSmall, [](AttentionProblem& p) { p.kv_len = 0; }));
  check(with(kSmall, [](AttentionProblem& p) { p.kv_len = 0, p.has_sink = true; }));
}
TEST_P(AttentionRunTest, NoQueriesLaunchNothing) {
  check(with(kSmall, [](AttentionProblem& p) { p.q_len = 0; }));
  check(with(kSmall, [](AttentionProblem& p) { p.batch = 0; }));
}
TEST_P(AttentionRunTest, Windows) {
  check(with(kSmall, [](AttentionProblem& p) { p.window_left = 20, p.causal = true; }));
  check(with(kSmall, [](AttentionProblem& p) { p.window_left = 3, p.window_right = 9; }));
  check(with(kSmall, [](AttentionProblem& p) { p.window_right = 0; }));
  check(with(kSmall, [](AttentionProblem& p) { p.window_left = 0, p.window_right = 0; }));
}
TEST_P(AttentionRunTest, SoftcapScaleAndSink) {
  check(with(kSmall, [](AttentionProblem& p) { p.softcap = 2, p.scale = 0.3; }));
  check(with(kSmall, [](AttentionProblem& p) { p.has_sink = true, p.causal = true; }));
  AttentionCase extreme = {kSmall, {}, {}, {INFINITY, -INFINITY}};
  extreme.problem.has_sink = true;
  check(extreme);
}
TEST_P(AttentionRunTest, PackedSequences) {
  const AttentionProblem base = {.heads = 2, .kv_heads = 1, .head_dim = 64, .has_lse = true};
  check(packed(base, {70, 1, 200, 33}, {70, 140, 129, 64}));
  check(packed(with(base, [](AttentionProblem& p) { p.causal = true; }), {0, 70, 0, 5, 130, 0},
               {20, 0, 0, 150, 100, 7}));
}
TEST_P(AttentionRunTest, StridesWithGaps) {
  // q [head, row, dim] with a gap behind every row; k and v interleaved in one tensor of pairs
  check(with(kSmall, [](AttentionProblem& p) {
    p.batch = 2;
    p.q_strides = {2 * 70 * 72 + 8, 72, 70 * 72};
    p.k_strides = {150 * 512, 512, 64};
    p.v_strides = {150 * 512 + 64, 512, 128};
    p.out_strides = {70 * 160, 160, 80};
  }));
}
TEST_P(AttentionRunTest, CapturedInAGraph) {
  AttentionCase c = {with(kSmall, [](AttentionProblem& p) { p.causal = true; }), {}, {}, {}};
  AttentionRun(*device_, c)
      .check([](const Attention& attention, const AttentionArguments& arguments,
                const device::Stream& stream) {
        const device::Graph graph =
            device::Graph::capture(stream, [&] { attention.run(arguments); });
        graph.launch(stream);
        graph.launch(stream);  // the counter of tiles starts anew
      });
}
TEST_P(AttentionRunTest, RefusesMissingAndMisalignedAddresses) {
  const Attention attention(*device_, kSmall);
  const auto message = [&](const AttentionArguments& arguments) -> std::string {
    try {
      attention.run(arguments);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto address = [](std::uintptr_t x) { return reinterpret_cast<float*>(x); };
  AttentionArguments a;
  EXPECT_THAT(message(a), testing::HasSubstr("the address of q is null"));
  a.q = a.k = a.v = address(4096);
  a.out = address(4104);
  EXPECT_THAT(message(a), testing::HasSubstr("out is 0x1008; expected a multiple of 16"));
  a.out = address(4096);
  EXPECT_THAT(message(a), testing::HasSubstr("the address of lse is null"));
}

}  // namespace
}  // namespace tilewright::ops
