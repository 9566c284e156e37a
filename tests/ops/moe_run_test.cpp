// The Mixture-of-Experts operator on every device against the float64 reference, under all checks
// of the simulator.
#include "device/graph.h"
#include "device/internal.h"
#include "tests/ops/moe_case.h"
#include "tests/ops/operator_test.h"

namespace tilewright::ops {
namespace {

class MoeRunTest : public ChipTest<MoeRunTest> {
 protected:
  static void check(const MoeCase& c) {
    SCOPED_TRACE(to_text(c));
    MoeRun(*device_, c).check();
  }
};
TILEWRIGHT_ON_EVERY_CHIP(MoeRunTest);

MoeCase with(MoeCase c, auto change) {
  change(c);
  return c;
}

// A kernel and the activations that its weights are prepared for.
struct Way {
  const char* kernel;
  LinearActivations activations;
};
constexpr Way kBand = {"band", LinearActivations::kBf16};
constexpr Way kWide = {"wide", LinearActivations::kBf16};
constexpr Way kWide8 = {"wide8", LinearActivations::kFp8};
// Exact products of weights that may be multiplied by e4m3 as well.
constexpr Way kBandOfFp8 = {"band", LinearActivations::kFp8};
constexpr Way kWideOfFp8 = {"wide", LinearActivations::kFp8};
constexpr Way kWays[] = {kBand, kWide, kWide8};

// Those of a chip.
std::span<const Way> ways(bool is_blackwell) {
  return is_blackwell ? std::span(kWays).first(1) : std::span(kWays);
}

// hidden and inter are ragged in bricks, blocks of scales and tiles.
MoeCase small(const Way& way, NumberFormat format = NumberFormat::kNvfp4) {
  const bool is_mxfp4 = format == NumberFormat::kMxfp4;
  return {.problem = {.tokens = 7, .topk = 2, .kernel = way.kernel},
          .format = format,
          .activations = way.activations,
          .hidden = is_mxfp4 ? 224 : 208,
          .inter = is_mxfp4 ? 96 : 80};
}

constexpr NumberFormat kFormats[] = {NumberFormat::kNvfp4, NumberFormat::kMxfp4, NumberFormat::kFp8,
                                     NumberFormat::kBf16};

TEST_P(MoeRunTest, BandInEveryFormat) {
  for (const NumberFormat format : kFormats) check(small(kBand, format));
  check(small(kBandOfFp8));
}
TEST_P(MoeRunTest, WideInEveryFormat) {
  if (is_blackwell()) GTEST_SKIP() << "for sm_90a";
  for (const NumberFormat format : kFormats) check(small(kWide, format));
  check(small(kWideOfFp8, NumberFormat::kMxfp4));
}
TEST_P(MoeRunTest, Wide8InEveryFormat) {
  if (is_blackwell()) GTEST_SKIP() << "for sm_90a";
  for (const NumberFormat format : {kFormats[0], kFormats[1], kFormats[2]})
    check(small(kWide8, format));
}
TEST_P(MoeRunTest, FewAndManyTokensOfManyExperts) {
  for (const Way& way : ways(is_blackwell())) {
    for (const std::int64_t tokens : {0, 1, 40}) {
      check(with(small(way), [&](MoeCase& c) {
        c.experts = 33;
        c.problem.tokens = tokens;
        c.problem.topk = 5;
        c.hidden = 64, c.inter = 32;
      }));
    }
  }
}
TEST_P(MoeRunTest, AllTokensOnOneExpert) {
  for (const Way& way : ways(is_blackwell())) {
    check(with(small(way), [&](MoeCase& c) {
      c.problem.tokens = 150;  // more than a tile
      c.problem.topk = 1;
      c.hidden = 64, c.inter = 32;
      c.ids.assign(150, 5);
    }));
  }
}

// compare() bounds errors by the size of results, which one rounding too few hardly moves. Counted
// are tokens in which roundings went otherwise: up to 5 % of them, where a sum of the tensor core
// is near a tie; 70 % and more against a reference that leaves a rounding out.
TEST_P(MoeRunTest, NoRoundingIsMissing) {
  for (const Way& way : ways(is_blackwell())) {
    for (const NumberFormat format : kFormats) {
      if (way.kernel == kWide8.kernel && format == NumberFormat::kBf16) continue;
      SCOPED_TRACE(fmt::format("{} {}", way.kernel, to_string(format)));
      MoeRun run(*device_, with(small(way, format), [](MoeCase& c) {
        c.problem.tokens = 100;
        c.problem.topk = 1;
        c.problem.out_dtype = DType::kF32;
        c.hidden = 64, c.inter = 32;
      }));
      const auto out = run.run();
      const auto share = [&](const reference::MoeRounding& rounding) {
        return run.share_rounded_otherwise(out, run.expected(rounding));
      };
      EXPECT_LE(share(run.rounding()), 0.15);
      using reference::MoeRounding;
      for (bool MoeRounding::*const which : {&MoeRounding::x_e4m3, &MoeRounding::h_bf16,
                                             &MoeRounding::h_e4m3, &MoeRounding::y_bf16}) {
        MoeRounding other = run.rounding();
        if (!(other.*which)) continue;
        other.*which = false;
        EXPECT_GE(share(other), 0.5);
      }
    }
  }
}
// compare() lets any single number be off by a part of the rms, half of it with e4m3. A tie in a
// row of h moves all of one token; so every column must be right in most of the tokens, those at
// the end of a tile as well.
TEST_P(MoeRunTest, EveryColumnIsRightInMostTokens) {
  for (const Way& way : ways(is_blackwell())) {
    for (const NumberFormat format : kFormats) {
      if (way.kernel == kWide8.kernel && format == NumberFormat::kBf16) continue;
      SCOPED_TRACE(fmt::format("{} {}", way.kernel, to_string(format)));
      MoeRun run(*device_, with(small(way, format), [](MoeCase& c) {
        c.problem.tokens = 40, c.problem.topk = 1, c.problem.out_dtype = DType::kF32;
      }));
      const auto out = run.run();
      EXPECT_LE(run.worst_column(out, run.expected()), 0.35);
    }
  }
}
TEST_P(MoeRunTest, SharedExpertLimitAndRoutingByLogits) {
  for (const Way& way : ways(is_blackwell())) {
    check(with(small(way), [](MoeCase& c) {
      c.has_shared = true;
      c.problem.routing = MoeRouting::kLogits;
      c.problem.score = MoeScore::kSqrtSoftplus;
      c.problem.has_bias = true;
      c.problem.route_scale = 1.5;
      c.problem.swiglu_limit = 0.5;
    }));
  }
}
TEST_P(MoeRunTest, OptionsOfEveryFormat) {
  for (const Way& way : ways(is_blackwell())) {
    for (const NumberFormat format : kFormats) {
      if (way.kernel == kWide8.kernel && format == NumberFormat::kBf16) continue;
      for (const bool is_first : {true, false}) {
        check(with(small(way, format), [&](MoeCase& c) {
          c.has_shared = true;
          c.problem.routing = MoeRouting::kLogits;
          c.problem.score = is_first ? MoeScore::kSoftmax : MoeScore::kSqrtSoftplus;
          c.problem.normalize = !is_first;
          c.problem.has_bias = is_first;
          c.problem.logits_stride = 11;
          c.problem.swiglu_limit = is_first ? 0.5 : 10;
          c.problem.weight_after_down = is_first;
          c.problem.out_dtype = is_first ? DType::kF32 : DType::kBF16;
        }));
      }
    }
  }
}
TEST_P(MoeRunTest, NumbersThatFp32DoesNotHoldAreRefused) {
  MoeCase c = small(kBand);
  const MoeRun run(*device_, c);
  const auto refused = [&](auto change, const char* what) {
    MoeProblem p = c.problem;
    change(p);
    reference::expect_invalid([&] { Moe(run.weights(), p); }, {what, "normal"});
  };
  refused([](auto& p) { p.route_scale = 1e300; }, "route_scale = 1e+300");
  refused([](auto& p) { p.route_scale = 1e-320; }, "route_scale = ");
  refused([](auto& p) { p.swiglu_limit = 1e-320; }, "swiglu_limit = ");
  refused([](auto& p) { p.swiglu_limit = 1e300; }, "swiglu_limit = 1e+300");
}
TEST_P(MoeRunTest, HashRoutingWeightsAfterDownAndF32) {
  for (const Way& way : ways(is_blackwell())) {
    check(with(small(way), [](MoeCase& c) {
      c.problem.routing = MoeRouting::kHash;
      c.problem.vocab = 11;
      c.problem.weight_after_down = true;
      c.problem.out_dtype = DType::kF32;
    }));
  }
}

TEST_P(MoeRunTest, WrongIdsAddNothingAndAreReported) {
  expect_wrong_ids_reported(*device_, small(kBand));
}
TEST_P(MoeRunTest, NonFiniteActivationsStayWithTheirToken) {
  for (const Way& way : ways(is_blackwell())) {
    SCOPED_TRACE(way.kernel);
    expect_broken_tokens_alone(*device_, small(way));
  }
}

TEST_P(MoeRunTest, ManyRepetitionsInAGraphAreBitIdentical) {
  for (const Way& way : ways(is_blackwell())) {
    SCOPED_TRACE(way.kernel);
    MoeCase c = small(way);
    c.problem.tokens = 40;
    MoeRun run(*device_, c);
    const auto first = run.run();
    const int repetitions = is_simulator() ? 2 : 1000;
    const auto again =
        run.run([&](const Moe& moe, const MoeArguments& a, const device::Stream& stream) {
          const auto graph = device::Graph::capture(stream, [&] { moe.run(a); });
          const std::size_t bytes = static_cast<std::size_t>(c.problem.tokens * c.hidden) * 2;
          std::vector<std::byte> expected(bytes), found(bytes);
          const auto read = [&](std::vector<std::byte>& to) {
            stream.synchronize();
            const auto current = opened(*device_).make_current();
            const auto out = reinterpret_cast<device::abi::CUdeviceptr>(a.out);
            opened(*device_).check(opened(*device_).cu().memcpy_dtoh(to.data(), out, bytes),
                                   "cuMemcpyDtoH");
          };
          for (int i = 0; i < repetitions; ++i) {
            graph.launch(stream);
            read(i == 0 ? expected : found);
            if (i == 0) continue;
            ASSERT_EQ(found, expected) << "repetition " << i;
          }
        });
    EXPECT_EQ(again, first);
  }
}

TEST_P(MoeRunTest, LaunchByLaunchGivesTheSame) {
  for (const Way& way : ways(is_blackwell())) {
    SCOPED_TRACE(way.kernel);
    MoeRun run(*device_, small(way));
    const auto whole = run.run();
    const auto steps = run.run([](const Moe& moe, const MoeArguments& a, const device::Stream&) {
      for (std::size_t i = 0; i < moe.plan().launches.size(); ++i) moe.run_launch(i, a);
      reference::expect_invalid([&] { moe.run_launch(99, a); }, {"launch 99 of a plan with"});
    });
    EXPECT_EQ(steps, whole);
  }
}

}  // namespace
}  // namespace tilewright::ops
