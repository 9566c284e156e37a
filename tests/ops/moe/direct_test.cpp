// The direct kernels of Mixture-of-Experts layers, and layers of a single expert by every kernel,
// against the float64 reference, under all checks of the simulator.
#include "device/graph.h"
#include "tests/ops/moe_case.h"
#include "tests/ops/operator_test.h"

namespace tilewright::ops {
namespace {

class MoeDirectTest : public ChipTest<MoeDirectTest> {
 protected:
  static void check(const MoeCase& c) {
    SCOPED_TRACE(to_text(c));
    MoeRun run(*device_, c);
    const auto out = run.run();
    EXPECT_EQ(run.kernel(), c.problem.kernel);
    run.compare(out, run.expected());
  }
};
TILEWRIGHT_ON_EVERY_CHIP(MoeDirectTest);

struct DirectWay {
  NumberFormat format;
  LinearActivations activations = LinearActivations::kBf16;
};
constexpr DirectWay kDirectWays[] = {
    {NumberFormat::kNvfp4}, {NumberFormat::kNvfp4, LinearActivations::kFp8},
    {NumberFormat::kMxfp4}, {NumberFormat::kMxfp4, LinearActivations::kFp8},
    {NumberFormat::kFp8},   {NumberFormat::kBf16}};

// hidden and inter are ragged in K blocks, in parts of K and in blocks of scales.
MoeCase direct_case(const DirectWay& way, std::int64_t tokens = 7) {
  const bool is_mxfp4 = way.format == NumberFormat::kMxfp4;
  return {.problem = {.tokens = tokens, .topk = 2, .kernel = "direct"},
          .format = way.format,
          .activations = way.activations,
          .hidden = is_mxfp4 ? 544 : 528,
          .inter = is_mxfp4 ? 96 : 80};
}

TEST_P(MoeDirectTest, EveryFormatAndOption) {
  bool is_first = false;
  for (const DirectWay& way : kDirectWays) {
    is_first = !is_first;
    MoeCase c = direct_case(way);
    c.has_shared = is_first;
    c.problem.routing = is_first ? MoeRouting::kLogits : MoeRouting::kGiven;
    c.problem.score = MoeScore::kSoftmax;
    c.problem.has_bias = is_first;
    c.problem.logits_stride = is_first ? 11 : 0;
    c.problem.swiglu_limit = is_first ? 0.5 : 10;
    c.problem.weight_after_down = is_first;
    c.problem.out_dtype = is_first ? DType::kF32 : DType::kBF16;
    check(c);
  }
}

TEST_P(MoeDirectTest, SharesOfALongInnerWidth) {
  MoeCase c = direct_case({NumberFormat::kFp8}, 2);
  c.hidden = 80, c.inter = 528;
  check(c);
}

TEST_P(MoeDirectTest, OneToEightTokens) {
  for (const std::int64_t tokens : {0, 1, 2, 8}) {  // of up to 16 experts each
    MoeCase c = direct_case({NumberFormat::kMxfp4}, tokens);
    c.experts = 33;
    c.problem.topk = tokens == 2 ? 16 : 6;
    c.problem.routing = MoeRouting::kHash;
    c.problem.score = MoeScore::kSqrtSoftplus;
    c.problem.vocab = 11;
    c.hidden = 96, c.inter = 32;
    check(c);
  }
}

// Several rounds of sums, and rings that are filled again and again.
TEST_P(MoeDirectTest, MoreBlocksThanARingHolds) {
  MoeCase c = direct_case({NumberFormat::kMxfp4}, 8);
  c.experts = 24;
  c.problem.topk = 16;
  c.hidden = 128, c.inter = 160;
  check(c);
}

TEST_P(MoeDirectTest, AllTokensOnOneExpert) {
  MoeCase c = direct_case({NumberFormat::kNvfp4}, 8);
  c.problem.topk = 1;
  c.ids.assign(8, 5);
  check(c);
}

TEST_P(MoeDirectTest, NoRoundingIsMissing) {
  for (const DirectWay& way : {kDirectWays[2], kDirectWays[4]}) {
    MoeCase c = direct_case(way, 8);
    c.problem.topk = 1;
    c.problem.out_dtype = DType::kF32;
    c.hidden = 64, c.inter = 32;
    MoeRun run(*device_, c);
    const auto out = run.run();
    EXPECT_LE(run.share_rounded_otherwise(out, run.expected()), 0.25);
    for (bool reference::MoeRounding::*const which :
         {&reference::MoeRounding::h_bf16, &reference::MoeRounding::y_bf16}) {
      reference::MoeRounding other = run.rounding();
      other.*which = false;
      EXPECT_GE(run.share_rounded_otherwise(out, run.expected(other)), 0.5);
    }
  }
}

TEST_P(MoeDirectTest, WrongIdsAddNothingAndAreReported) {
  expect_wrong_ids_reported(*device_, direct_case({NumberFormat::kNvfp4}));
}

TEST_P(MoeDirectTest, NonFiniteActivationsStayWithTheirToken) {
  expect_broken_tokens_alone(*device_, direct_case({NumberFormat::kNvfp4}));
}

TEST_P(MoeDirectTest, PartsAddUpToTheWhole) {
  MoeCase c = direct_case({NumberFormat::kMxfp4});
  c.experts = 4;
  c.problem.routing = MoeRouting::kLogits;
  c.problem.out_dtype = DType::kF32;
  expect_shares_add_up(*device_, c);
}

// Rows of one expert by every kernel, in both types of results.
TEST_P(MoeDirectTest, ASingleExpert) {
  struct Way {
    const char* kernel;
    LinearActivations activations;
  };
  for (const Way& way :
       {Way{"direct", LinearActivations::kBf16}, Way{"band", LinearActivations::kBf16},
        Way{"wide", LinearActivations::kBf16}, Way{"wide8", LinearActivations::kFp8}}) {
    if (is_blackwell() && std::string_view(way.kernel).starts_with("wide")) continue;
    for (const DType out : {DType::kBF16, DType::kF32}) {
      MoeCase c = direct_case({NumberFormat::kFp8, way.activations});
      c.experts = 1;
      c.problem.topk = 1;
      c.problem.routing = MoeRouting::kSingle;
      c.problem.out_dtype = out;
      c.problem.kernel = way.kernel;
      c.problem.swiglu_limit = 10;
      check(c);
    }
  }
}

// Tokens of one expert, k of both products over CTAs of the grid: scales of gate and up that
// differ, powers of two and others; two tiles of tokens.
TEST_P(MoeDirectTest, ASingleExpertOverTheGrid) {
  if (is_blackwell()) GTEST_SKIP() << "is for Hopper";
  for (const NumberFormat format : {NumberFormat::kFp8, NumberFormat::kBf16}) {
    for (const bool has_power_scales : {false, true}) {
      if (has_power_scales && format != NumberFormat::kFp8) continue;
      MoeCase c = direct_case({format}, has_power_scales ? 40 : 66);
      c.inter = 272;
      c.experts = 1;
      c.problem.topk = 1;
      c.problem.routing = MoeRouting::kSingle;
      c.problem.out_dtype = has_power_scales ? DType::kF32 : DType::kBF16;
      c.problem.kernel = "spread";
      c.problem.swiglu_limit = 10;
      c.has_power_scales = has_power_scales;
      check(c);
    }
  }
}

// Routed experts of one format and a shared one of fp8: each as it is alone, bit for bit.
TEST_P(MoeDirectTest, RoutedAndSharedExpertsInTheSameLaunch) {
  for (const DirectWay& way : {kDirectWays[2], kDirectWays[5]}) {
    for (const bool is_direct : {true, false}) {
      if (!is_direct && way.format != NumberFormat::kMxfp4) continue;
      SCOPED_TRACE(fmt::format("{}, {}", to_string(way.format), is_direct));
      MoeCase routed = direct_case(way);
      routed.problem.routing = MoeRouting::kLogits;
      MoeCase single = direct_case({NumberFormat::kFp8}, 3);
      single.hidden = routed.hidden;
      single.experts = 1;
      single.problem.topk = 1;
      single.problem.routing = MoeRouting::kSingle;
      single.problem.out_dtype = DType::kF32;
      single.problem.kernel = is_direct ? "direct" : "band";
      MoeRun first(*device_, routed), second(*device_, single);
      const auto alone = first.run();
      std::vector<double> shared_together, shared_alone = second.run();
      const auto together =
          first.run([&](const Moe& moe, const MoeArguments& a, const device::Stream&) {
            shared_together = second.run(
                [&](const Moe& shared, const MoeArguments& b, const device::Stream& stream) {
                  MoeArguments both = a;
                  both.stream = stream.handle();
                  moe.run_with_shared(both, shared, b);
                });
          });
      EXPECT_EQ(together, alone);
      EXPECT_EQ(shared_together, shared_alone);
    }
  }
}

// Sums of more units of the shared expert than fit between two barriers, up and down.
TEST_P(MoeDirectTest, ASharedExpertInSeveralRounds) {
  MoeCase routed = direct_case({NumberFormat::kMxfp4}, 8);
  routed.experts = 3;
  routed.hidden = 64, routed.inter = 32;
  MoeCase single = direct_case({NumberFormat::kFp8}, 8);
  single.hidden = 64, single.inter = 1040;
  single.experts = 1;
  single.problem.topk = 1;
  single.problem.routing = MoeRouting::kSingle;
  MoeRun first(*device_, routed), second(*device_, single);
  std::vector<double> shared;
  const auto out = first.run([&](const Moe& moe, const MoeArguments& a, const device::Stream&) {
    shared =
        second.run([&](const Moe& beside, const MoeArguments& b, const device::Stream& stream) {
          MoeArguments both = a;
          both.stream = stream.handle();
          moe.run_with_shared(both, beside, b);
        });
  });
  first.compare(out, first.expected());
  second.compare(shared, second.expected());
}

TEST_P(MoeDirectTest, ChoosesExpertsByEveryScore) {
  for (const MoeScore score : {MoeScore::kSoftmax, MoeScore::kSqrtSoftplus}) {
    for (const bool has_bias : {true, false}) {
      MoeCase c = direct_case({NumberFormat::kMxfp4}, 2);
      c.experts = 70;
      c.problem.topk = 6;
      c.problem.routing = MoeRouting::kLogits;
      c.problem.score = score;
      c.problem.has_bias = has_bias;
      c.hidden = 64, c.inter = 32;
      check(c);
    }
  }
}

TEST_P(MoeDirectTest, RepeatsBitForBitInAGraph) {
  const MoeCase c = direct_case({NumberFormat::kMxfp4});
  MoeRun run(*device_, c);
  const auto first = run.run();
  const auto again = run.run([&](const Moe& moe, const MoeArguments& a, const device::Stream& s) {
    const auto graph = device::Graph::capture(s, [&] { moe.run(a); });
    graph.launch(s);
    graph.launch(s);
  });
  EXPECT_EQ(again, first);
}

TEST_P(MoeDirectTest, RefusesWhatItCannotDo) {
  const MoeWeightsInfo two = {
      .format = NumberFormat::kBf16, .experts = 2, .hidden = 64, .inter = 32};
  MoeWeightsInfo one = two;
  one.experts = 1;
  const auto refuses = [&](const MoeWeightsInfo& weights, const MoeProblem& problem,
                           const std::vector<std::string>& words) {
    reference::expect_invalid([&] { plan_moe(*device_, weights, problem); }, words);
  };
  refuses(two, {.tokens = 1, .topk = 1, .routing = MoeRouting::kSingle},
          {"experts = 2", "1 for the routing of a single expert"});
  refuses(one, {.tokens = 1, .topk = 1, .routing = MoeRouting::kSingle, .all_experts = 1},
          {"all_experts = 1", "not routed"});
  const auto why = [&](MoeWeightsInfo weights, std::int64_t tokens) {
    const MoePlan plan = plan_moe(*device_, weights, {.tokens = tokens, .topk = 1});
    return std::ranges::find(plan.candidates, "direct", &Candidate::name)->reason;
  };
  EXPECT_EQ(why(two, 9), "is for up to 8 tokens");
  MoeWeightsInfo broad = two;
  broad.hidden = 1 << 20;
  EXPECT_NE(why(broad, 8).find("keeps a CTA's columns of all rows of y in shared memory"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright::ops
