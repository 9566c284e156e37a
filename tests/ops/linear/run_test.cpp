// The linear operator on every device: every kernel on ragged shapes against float64, under all
// checks of the simulator.
#include "tilewright/block_scaled_linear.h"
#include "tilewright/moe.h"

#include "device/graph.h"
#include "tests/ops/linear/linear_run.h"
#include "tests/ops/operator_test.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LinearRunTest : public ChipTest<LinearRunTest> {
 protected:
  static void check(const LinearCase& c) {
    SCOPED_TRACE(fmt::format("{} for {}, m {}, n {}, k {}, {}", to_string(c.format),
                             to_string(c.activations), c.problem.m, c.n, c.k, c.problem.kernel));
    try {
      LinearRun(*device_, c).check();
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();  // with the trace
      throw;
    }
  }
  /// Whether a kernel can do it at all.
  static bool is_possible(const LinearCase& c) {
    const LinearPlan plan =
        plan_linear(*device_, {c.format, c.activations, c.n, c.k},
                    {.m = c.problem.m, .activation_scales = c.problem.activation_scales});
    return std::ranges::any_of(plan.candidates, [&](const Candidate& candidate) {
      return candidate.name == c.problem.kernel && candidate.is_possible;
    });
  }
};
TILEWRIGHT_ON_EVERY_CHIP(LinearRunTest);

bool is_for_e4m3(const std::string& kernel) {
  return kernel.starts_with("wide_e4m3");
}

constexpr LinearActivations kBothActivations[] = {LinearActivations::kBf16,
                                                  LinearActivations::kFp8};

// n and k are multiples of 16, not of 64.
TEST_P(LinearRunTest, EveryFormatAtEveryNumberOfRows) {
  for (const NumberFormat format : kEveryFormat) {
    for (const LinearActivations activations : kBothActivations) {
      if (format == NumberFormat::kBf16 && activations == LinearActivations::kFp8) continue;
      const std::int64_t k = format == NumberFormat::kMxfp4 ? 96 : 112;
      for (const std::int64_t m : {0, 1, 5, 17, 33, 65, 130}) {
        if (format != NumberFormat::kNvfp4 && m != 1 && m != 33 && m != 65) continue;
        check({.format = format, .activations = activations, .n = 80, .k = k, .problem = {.m = m}});
      }
    }
  }
}

bool is_wide_bf16_tested(const std::string& name, NumberFormat format) {
  if (name == "wide_bf16_t128_r2_s2" || name == "wide_bf16_spread") return true;
  return format == NumberFormat::kNvfp4 &&
         (name == "wide_bf16_t32_tall_s4" || name == "wide_bf16_t192_r2" ||
          name == "wide_bf16_t256_r4");
}

TEST_P(LinearRunTest, EveryKernelThatCan) {
  for (const auto& kernel : linear_kernels()) {
    for (const NumberFormat format : {NumberFormat::kNvfp4, NumberFormat::kFp8}) {
      // The kernels' own tests have every tile; here some of them, and one with every decoder.
      if (kernel->name().starts_with("wide_bf16_") && !is_wide_bf16_tested(kernel->name(), format))
        continue;
      for (const LinearActivations activations : kBothActivations) {
        for (const ScaleSharing scales : {ScaleSharing::kRow, ScaleSharing::kBlock}) {
          LinearCase c = {
              .format = format,
              .activations = activations,
              .n = 144,
              .k = 176,
              .problem = {.m = 70, .activation_scales = scales, .kernel = kernel->name()}};
          if (is_possible(c)) check(c);
        }
      }
    }
  }
}

TEST_P(LinearRunTest, BiasStridesAndFloat32) {
  for (const char* const kernel : {"band", "wide_bf16_t128_r2", "wide_e4m3_fp4_t128"}) {
    const LinearCase c = {
        .activations = is_for_e4m3(kernel) ? LinearActivations::kFp8 : LinearActivations::kBf16,
        .n = 48,
        .k = 144,
        .problem = {.m = 19,
                    .out_dtype = DType::kF32,
                    .has_bias = true,
                    .x_stride = 160,
                    .out_stride = 56,
                    .kernel = kernel}};
    if (is_possible(c)) check(c);
  }
}

TEST_P(LinearRunTest, BiasStridesAndFloat32OfEveryFormat) {
  for (const NumberFormat format : kEveryFormat) {
    for (const LinearActivations activations : kBothActivations) {
      for (const char* const kernel :
           {"band", "wide_bf16_t128_r2", "wide_bf16_t32_tall_s4", "wide_e4m3_fp4_t128",
            "wide_e4m3_fp4_g128", "wide_e4m3_t128", "wide_e4m3_g128", "tensor_e4m3_few",
            "tensor_e4m3_1cta_n128", "tensor_e4m3_2cta_n256"}) {
        for (const ScaleSharing scales : {ScaleSharing::kRow, ScaleSharing::kBlock}) {
          const LinearCase c = {.format = format,
                                .activations = activations,
                                .n = 48,
                                .k = 160,
                                .problem = {.m = 19,
                                            .activation_scales = scales,
                                            .out_dtype = DType::kF32,
                                            .has_bias = true,
                                            .x_stride = 176,
                                            .out_stride = 56,
                                            .kernel = kernel}};
          if (format == NumberFormat::kBf16 && activations == LinearActivations::kFp8) continue;
          if (is_possible(c)) check(c);
        }
      }
    }
  }
}
// Each group multiplies columns of x of its own: by one launch of the kernel for few rows, by a
// launch for each group of the others. Rows of a group fill no tile, but whole blocks of scales.
TEST_P(LinearRunTest, GroupsOfEveryFormat) {
  for (const NumberFormat format : kEveryFormat) {
    const std::int64_t rows = format == NumberFormat::kFp8 ? 128 : 48;
    for (const LinearActivations activations : kBothActivations) {
      if (format == NumberFormat::kBf16 && activations == LinearActivations::kFp8) continue;
      for (const std::int64_t m : {1, 19, 70})
        check({.format = format,
               .activations = activations,
               .n = 3 * rows,
               .k = 160,
               .problem = {.m = m,
                           .out_dtype = m == 19 ? DType::kF32 : DType::kBF16,
                           .has_bias = m == 19,
                           .x_stride = m == 19 ? 496 : 0,
                           .out_stride = m == 19 ? 3 * rows + 8 : 0},
               .groups = 3});
    }
  }
}

// k divided over CTAs of the grid: parts that add up all tokens or none, groups, several tiles of
// tokens, scales of any size and powers of two.
TEST_P(LinearRunTest, SpreadOverTheGrid) {
  if (is_blackwell()) GTEST_SKIP() << "is for Hopper";
  struct Shape {
    std::int64_t m, n, k, groups;
  };
  for (const NumberFormat format : {NumberFormat::kFp8, NumberFormat::kBf16}) {
    for (const Shape& s : {Shape{40, 384, 1088, 1}, {64, 256, 512, 2}, {70, 48, 272, 1}}) {
      for (const bool has_power_scales : {false, true}) {
        if (has_power_scales && format != NumberFormat::kFp8) continue;
        const bool is_f32 = s.m != 64;
        check({.format = format,
               .n = s.n,
               .k = s.k,
               .problem = {.m = s.m,
                           .out_dtype = is_f32 ? DType::kF32 : DType::kBF16,
                           .has_bias = is_f32,
                           .x_stride = s.k * s.groups + 8,
                           .out_stride = s.n + 8,
                           .kernel = "wide_bf16_spread"},
               .groups = s.groups,
               .has_power_scales = has_power_scales});
      }
    }
  }
}

TEST_P(LinearRunTest, OtherOperatorsRefuseGroups) {
  const RandomWeight weight(NumberFormat::kNvfp4, 64, 64, 1);
  LinearWeightSource source = weight.source;
  source.groups = 2;
  const auto text = HasSubstr("groups = 2; expected 1 here");
  EXPECT_THAT(
      [&] {
        MoeWeights::prepare(*device_, {{source}, {source}, {source}});
      },
      ThrowsMessage<Error>(text));
  EXPECT_THAT([&] { BlockScaledWeight::prepare(*device_, source); }, ThrowsMessage<Error>(text));
}

TEST_P(LinearRunTest, GroupsByKernel) {
  for (const char* const kernel : {"band", "band_large", "band_n64", "wide_bf16_t128_r2",
                                   "wide_e4m3_g128", "tensor_e4m3_few", "tensor_bf16_few"}) {
    const bool is_e4m3 = std::string(kernel).find("e4m3") != std::string::npos;
    LinearCase c = {.format = NumberFormat::kFp8,
                    .activations = is_e4m3 ? LinearActivations::kFp8 : LinearActivations::kBf16,
                    .n = 512,
                    .k = 144,
                    .problem = {.m = 9, .kernel = kernel},
                    .groups = 2};
    if (std::string(kernel).starts_with("tensor_bf16")) c.format = NumberFormat::kBf16;
    if (is_possible(c)) check(c);
  }
}

/// What the kernels of Blackwell that read rows of a weight are tried with: numbers that fill no
/// tile, several tiles, more steps than a ring has stages.
struct RowsShape {
  std::int64_t m, n, k;
};

// bf16 weights on Blackwell: every tile, k divided by every number of CTAs that fits, rows and
// columns that fill no tile, several tiles, f32 and bias.
TEST_P(LinearRunTest, TensorMemoryKernelsForBf16) {
  if (!is_blackwell()) GTEST_SKIP() << "Hopper keeps bf16 weights packed";
  for (const auto& kernel : linear_kernels()) {
    if (!kernel->name().starts_with("tensor_bf16")) continue;
    for (const RowsShape& s :
         {RowsShape{1, 16, 16}, {7, 272, 208}, {70, 144, 528}, {200, 304, 80}}) {
      for (const bool is_f32 : {false, true}) {
        check({.format = NumberFormat::kBf16,
               .n = s.n,
               .k = s.k,
               .problem = {.m = s.m,
                           .out_dtype = is_f32 ? DType::kF32 : DType::kBF16,
                           .has_bias = is_f32 == (s.m > 1),
                           .x_stride = s.k + 8,
                           .out_stride = s.n + 8,
                           .kernel = kernel->name()}});
      }
    }
  }
}

// fp8 weights by e4m3 on Blackwell, likewise, with a scale for 128 of a row and for all of it.
TEST_P(LinearRunTest, TensorMemoryKernelsForE4m3) {
  if (!is_blackwell()) GTEST_SKIP() << "Hopper keeps fp8 weights packed";
  for (const auto& kernel : linear_kernels()) {
    if (!kernel->name().starts_with("tensor_e4m3")) continue;
    for (const RowsShape& s :
         {RowsShape{1, 16, 16}, {7, 272, 208}, {70, 144, 1296}, {300, 528, 336}}) {
      const bool is_f32 = s.m % 2 == 0;
      check({.format = NumberFormat::kFp8,
             .activations = LinearActivations::kFp8,
             .n = s.n,
             .k = s.k,
             .problem = {.m = s.m,
                         .activation_scales = s.m == 7 ? ScaleSharing::kRow : ScaleSharing::kBlock,
                         .out_dtype = is_f32 ? DType::kF32 : DType::kBF16,
                         .has_bias = s.m > 1,
                         .x_stride = s.k + 8,
                         .out_stride = s.n + 8,
                         .kernel = kernel->name()}});
    }
  }
}

// Weights of 4 and 8 bits as they are, x quantised: every tile, rows and columns that fill none,
// several of them, rows apart from each other.
TEST_P(LinearRunTest, BlockScaledKernels) {
  if (!is_blackwell()) GTEST_SKIP() << "Hopper has no block-scaled tensor cores";
  struct Shape {
    std::int64_t m, n, k;
  };
  for (const auto& kernel : linear_kernels()) {
    if (!kernel->is_block_scaled()) continue;
    for (const NumberFormat format :
         {NumberFormat::kNvfp4, NumberFormat::kMxfp4, NumberFormat::kFp8}) {
      for (const Shape& s : {Shape{1, 16, 32}, {7, 272, 160}, {30, 48, 544}, {290, 144, 96}}) {
        check(
            {.format = format,
             .activations = LinearActivations::kBlockScaled,
             .n = s.n,
             .k = s.k,
             .problem = {
                 .m = s.m, .x_stride = s.k + 8, .out_stride = s.n + 8, .kernel = kernel->name()}});
      }
    }
  }
}

TEST_P(LinearRunTest, BlockScaledWeightsSayWhatTheyAreFor) {
  const auto message = [&](const LinearWeightInfo& weight, const LinearProblem& p) {
    try {
      return plan_linear(*device_, weight, p).kernel;
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  LinearWeightInfo w = {NumberFormat::kMxfp4, LinearActivations::kBlockScaled, 256, 1024};
  if (!is_blackwell()) {
    EXPECT_THAT(message(w, {.m = 8}), HasSubstr("sm_100"));
    return;
  }
  EXPECT_EQ(message(w, {.m = 8}), "tensor_blocks_few");
  EXPECT_THAT(message(w, {.m = 8, .out_dtype = DType::kF32}), HasSubstr("writes bf16"));
  EXPECT_THAT(message(w, {.m = 8, .has_bias = true}), HasSubstr("adds no bias"));
  EXPECT_THAT(message(w, {.m = 8, .kernel = "band"}), HasSubstr("prepare this one for bf16"));
  w.k = 1040;
  EXPECT_THAT(message(w, {.m = 8}), HasSubstr("multiple of 32"));
  w = {NumberFormat::kMxfp4, LinearActivations::kBf16, 8192, 8192};
  const LinearPlan plan = plan_linear(*device_, w, {.m = 4096});
  const auto blocks =
      std::ranges::find(plan.candidates, "tensor_blocks_2cta_n256", &Candidate::name);
  EXPECT_THAT(blocks->reason, HasSubstr("for block_scaled activations"));
  w.activations = LinearActivations::kBlockScaled;
  EXPECT_EQ(message(w, {.m = 4096}), "tensor_blocks_2cta_n256");
}

// More rows than Hopper gives to the kernel of few.
TEST_P(LinearRunTest, ManyRows) {
  for (const NumberFormat format : kEveryFormat)
    check({.format = format, .n = 32, .k = 64, .problem = {.m = 530}});
}

// Codes and scales that the caller brings: the bits of the run that makes them itself. For packed
// weights Blackwell makes bf16 of them: float64 of what that gives.
TEST_P(LinearRunTest, ActivationsThatComeInE4m3) {
  int tried = 0;
  for (const auto& kernel : linear_kernels()) {
    const bool is_widened = kernel->name().starts_with("band");  // which only Blackwell does
    const bool is_e4m3 = kernel->name().find("e4m3") != std::string::npos;
    if (!is_e4m3 && !(is_widened && is_blackwell())) continue;
    for (const NumberFormat format :
         {NumberFormat::kNvfp4, NumberFormat::kMxfp4, NumberFormat::kFp8}) {
      for (const ScaleSharing scales : {ScaleSharing::kRow, ScaleSharing::kBlock}) {
        const LinearCase c = {
            .format = format,
            .activations = LinearActivations::kFp8,
            .n = 144,
            .k = 160,
            .problem = {
                .m = 70, .activation_scales = scales, .has_bias = true, .kernel = kernel->name()}};
        if (!is_possible(c)) continue;
        SCOPED_TRACE(fmt::format("{} {}", to_string(format), kernel->name()));
        const LinearRun run(*device_, c);
        if (is_widened) {
          run.check_given();
        } else {
          EXPECT_EQ(run.run_given(), run.run());
        }
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 4);
}

// Rows without infinities come out as if the others were not there.
TEST_P(LinearRunTest, NonFiniteActivationsStayInTheirRows) {
  const std::pair<NumberFormat, LinearActivations> kinds[] = {
      {NumberFormat::kNvfp4, LinearActivations::kBf16},
      {NumberFormat::kNvfp4, LinearActivations::kFp8},
      {NumberFormat::kFp8, LinearActivations::kFp8}};
  for (const auto& [format, activations] : kinds) {
    for (const std::int64_t m : {9, 40}) {
      const LinearCase c = {.format = format, .activations = activations, .problem = {.m = m}};
      LinearRun clean(*device_, c), spoilt(*device_, c);
      for (std::int64_t i = 0; i < c.k; ++i) {
        clean.x()[static_cast<std::size_t>(3 * c.k + i)] = 0;
        spoilt.x()[static_cast<std::size_t>(3 * c.k + i)] = i % 2 == 0 ? INFINITY : NAN;
      }
      const std::vector<double> a = clean.run(), b = spoilt.run();
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (static_cast<std::int64_t>(i) / c.n == 3)
          ASSERT_FALSE(std::isfinite(b[i]));
        else
          ASSERT_EQ(a[i], b[i]);
      }
    }
  }
}

TEST_P(LinearRunTest, BadCallsAreRefused) {
  const RandomWeight random(NumberFormat::kNvfp4, 32, 64);
  const LinearWeight weight = LinearWeight::prepare(*device_, random.source);
  const auto make = [&](const LinearProblem& p) { return [&] { Linear(weight, p); }; };
  reference::expect_invalid(make({.m = -1}), {"m = -1"});
  reference::expect_invalid(make({.m = 1, .x_dtype = DType::kF8_E4M3}), {"Prepare the weight"});
  reference::expect_invalid(make({.m = 1, .out_dtype = DType::kF16}), {"out_dtype = F16"});
  reference::expect_invalid(make({.m = 1, .activation_scales = ScaleSharing::kHead}),
                            {"activation_scales = head", "expected auto, row or block"});
  reference::expect_invalid(make({.m = 2, .x_stride = 68}), {"x_stride = 68", "multiple of 8"});
  reference::expect_invalid(make({.m = 2, .out_stride = 16}), {"out_stride = 16", "from 32"});
  reference::expect_invalid(make({.m = 2, .kernel = "best"}), {"no kernel \"best\"", "band"});
  const Linear linear(weight, {.m = 2, .has_bias = true});
  const Buffer some(opened(*device_), 1024);
  void* const good = pointer_to<void>(some);
  void* const odd = pointer_to<std::uint8_t>(some) + 8;
  reference::expect_invalid([&] { linear.run({.bias = pointer_to<float>(some), .out = good}); },
                            {"address of x is null"});
  reference::expect_invalid(
      [&] { linear.run({.x = odd, .bias = pointer_to<float>(some), .out = good}); },
      {"address of x", "multiple of 16"});
  reference::expect_invalid([&] { linear.run({.x = good, .out = good}); }, {"bias is null"});
}

TEST_P(LinearRunTest, PreparesWeightsThatLieOnTheDevice) {
  RandomWeight random(NumberFormat::kNvfp4, 32, 64);
  const Buffer values = Buffer::from(opened(*device_), random.values);
  const Buffer scales = Buffer::from(opened(*device_), random.scales);
  const LinearWeight from_host = LinearWeight::prepare(*device_, random.source);
  random.source.values.data = pointer_to<const void>(values);
  random.source.scales.data = pointer_to<const void>(scales);
  const LinearWeight from_device = LinearWeight::prepare(*device_, random.source);
  EXPECT_EQ(Internal::of(from_host).bricks.to_vector<std::uint8_t>(),
            Internal::of(from_device).bricks.to_vector<std::uint8_t>());
}

// Captured once, launched twice, with a dependent chain of two layers inside.
TEST_P(LinearRunTest, RunsInAGraph) {
  const RandomWeight random(NumberFormat::kNvfp4, 64, 64);
  const LinearWeight weight = LinearWeight::prepare(*device_, random.source);
  const Linear linear(weight, {.m = 5});
  const device::Device& inner = opened(*device_);
  std::vector<std::uint16_t> codes(5 * 64);
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::uint16_t>(encode(kBf16, 0.01 * static_cast<double>(i % 37)));
  const Buffer x = Buffer::from(inner, codes);
  Buffer middle(inner, x.size_bytes()), out(inner, x.size_bytes());
  const device::Stream stream(inner);
  const auto enqueue = [&] {
    linear.run({.x = pointer_to<const void>(x),
                .out = pointer_to<void>(middle),
                .stream = stream.handle()});
    linear.run({.x = pointer_to<const void>(middle),
                .out = pointer_to<void>(out),
                .stream = stream.handle()});
  };
  enqueue();
  stream.synchronize();
  const auto first = out.to_vector<std::uint16_t>();
  const device::Graph graph = device::Graph::capture(stream, enqueue);
  for (int i = 0; i < 2; ++i) {
    middle.poison();
    out.poison();
    graph.launch(stream);
    stream.synchronize();
    EXPECT_EQ(out.to_vector<std::uint16_t>(), first);
  }
}

// On a GPU a thousand times, at a size that fills it; the simulator's order never changes.
TEST_P(LinearRunTest, RepeatsToTheBit) {
  const bool is_gpu = !device_->is_simulated();
  for (const char* const kernel :
       {"band", "band_large", "band_n64", "wide_bf16_t64_s2", "wide_bf16_t256_r2",
        "wide_bf16_t64_tall_s2", "wide_bf16_t128_r2", "wide_e4m3_fp4_t128", "wide_e4m3_fp4_g128"}) {
    SCOPED_TRACE(kernel);
    const bool has_blocks = std::string(kernel).find("_g") != std::string::npos;
    const LinearCase c = {
        .activations = is_for_e4m3(kernel) ? LinearActivations::kFp8 : LinearActivations::kBf16,
        .n = is_gpu ? 2048 : 48,
        .k = is_gpu ? 2048 : 128,
        .problem = {.m = 33,
                    .activation_scales = has_blocks ? ScaleSharing::kBlock : ScaleSharing::kRow,
                    .kernel = kernel}};
    if (!is_possible(c)) continue;
    LinearRun run(*device_, c);
    const std::vector<double> first = run.run();
    for (int i = 0; i < (is_gpu ? 1000 : 1); ++i) ASSERT_EQ(run.run(), first) << "repetition " << i;
  }
}

}  // namespace
}  // namespace tilewright::ops
