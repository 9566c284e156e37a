// The linear operator on every device: every kernel on ragged shapes against float64, under all
// checks of the simulator.
#include "tilewright/quantize.h"

#include "base/error.h"
#include "device/graph.h"
#include "device/internal.h"
#include "device/memory.h"
#include "formats/minifloat.h"
#include "ops/linear/kernel.h"
#include "reference/error_bound.h"
#include "reference/linear/linear.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/linear/case.h"
#include "tests/ops/operator_test.h"

#include <cmath>
#include <optional>

namespace tilewright::ops {
namespace {

using device::Buffer;
using kernels::pointer_to;

struct LinearCase {
  NumberFormat format = NumberFormat::kNvfp4;
  LinearActivations activations = LinearActivations::kBf16;
  std::int64_t n = 80, k = 112;
  LinearProblem problem = {};
};

class LinearRun {
 public:
  LinearRun(const Device& device, const LinearCase& c)
      : device_(device),
        case_problem_(c.problem),
        weight_(c.format, c.n, c.k, 7),
        host_(check_weight_source(weight_.source)) {
    prepared_ = LinearWeight::prepare(device, weight_.source, c.activations);
    linear_.emplace(*prepared_, c.problem);
    reference::Random random(3);
    const LinearProblem& p = problem();
    // Rows of different magnitude: a row must not take another's scale.
    for (std::int64_t i = 0; i < p.m * c.k; ++i) {
      const double x = random.uniform(-2, 2) * static_cast<double>(1 + i / c.k % 5);
      x_.push_back(static_cast<float>(round_to(kBf16, x)));
    }
    for (std::int64_t j = 0; j < c.n && p.has_bias; ++j)
      bias_.push_back(static_cast<float>(random.uniform(-20, 20)));
  }

  const LinearProblem& problem() const { return linear_->plan().problem; }
  std::vector<float>& x() { return x_; }

  /// out [m, n]; what lies between its rows must stay as it was.
  std::vector<double> run() const {
    const device::Device& inner = opened(device_);
    const LinearProblem& p = problem();
    const std::int64_t n = linear_->plan().weight.n, k = linear_->plan().weight.k;
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(p.m * p.x_stride), 0xffff);
    for (std::int64_t i = 0; i < p.m * k; ++i)
      codes[static_cast<std::size_t>(i / k * p.x_stride + i % k)] = static_cast<std::uint16_t>(
          encode(kBf16, static_cast<double>(x_[static_cast<std::size_t>(i)])));
    const Buffer x = Buffer::from(inner, codes), bias = Buffer::from(inner, bias_);
    Buffer workspace(inner, linear_->plan().workspace_bytes);
    workspace.poison();
    const auto elems = static_cast<std::size_t>(p.m * p.out_stride);
    const auto bytes = static_cast<std::size_t>(linear_elem_bytes());
    const kernels::Output<std::uint8_t> out(inner, elems * bytes);
    const device::Stream stream(inner);
    linear_->run({.x = pointer_to<const void>(x),
                  .bias = pointer_to<const float>(bias),
                  .out = out.pointer(),
                  .workspace = pointer_to<void>(workspace),
                  .stream = stream.handle()});
    stream.synchronize();
    return read(out.read(), n);
  }

  /// The same from e4m3 codes and scales that the quantise operator makes of x.
  std::vector<double> run_given() const {
    const LinearProblem& rounded = problem();
    const LinearWeightInfo& w = linear_->plan().weight;
    const bool has_blocks = rounded.activation_scales == ScaleSharing::kBlock;
    const std::int64_t columns = has_blocks ? (w.k + 127) / 128 * 128 : (w.k + 63) / 64 * 64;
    const std::int64_t padded_rows = (rounded.m + 3) / 4 * 4;  // of block-major scales
    std::vector<std::uint16_t> codes;
    for (const float v : x_) codes.push_back(static_cast<std::uint16_t>(encode(kBf16, double{v})));
    codes.resize(static_cast<std::size_t>((has_blocks ? padded_rows : rounded.m) * w.k), 0);
    const device::Device& inner = opened(device_);
    const Quantize quantize(device_, {.format = has_blocks ? "fp8_1x128" : "fp8_token",
                                      .rows = std::ssize(codes) / w.k,
                                      .cols = w.k,
                                      .out_cols = columns,
                                      .has_operand_order = true,
                                      .has_block_major_scales = has_blocks});
    const Buffer in = Buffer::from(inner, codes), bias = Buffer::from(inner, bias_);
    Buffer x(inner, quantize.plan().code_bytes), scales(inner, quantize.plan().scale_bytes),
        none(inner, quantize.plan().workspace_bytes);
    quantize.run({.in = pointer_to<const void>(in),
                  .codes = pointer_to<void>(x),
                  .scales = pointer_to<void>(scales),
                  .workspace = pointer_to<void>(none)});
    LinearProblem p = case_problem_;
    p.x_dtype = DType::kF8_E4M3, p.x_stride = columns;
    p.activation_scales = rounded.activation_scales;
    const Linear linear(*prepared_, p);
    EXPECT_LT(linear.plan().launches.size(), linear_->plan().launches.size());
    const auto elems = static_cast<std::size_t>(rounded.m * rounded.out_stride);
    const kernels::Output<std::uint8_t> out(inner, elems * std::size_t(linear_elem_bytes()));
    Buffer workspace(inner, linear.plan().workspace_bytes);
    workspace.poison();
    linear.run({.x = pointer_to<const void>(x),
                .x_scales = pointer_to<const float>(scales),
                .bias = pointer_to<const float>(bias),
                .out = out.pointer(),
                .workspace = pointer_to<void>(workspace)});
    device_.synchronize();
    return read(out.read(), w.n);
  }

  void check() const {
    const std::vector<double> out = run();
    const std::int64_t n = linear_->plan().weight.n, k = linear_->plan().weight.k;
    const reference::LinearShape shape = {problem().m, n, k};
    const bool is_fp8 = linear_->plan().kernel.starts_with("wide_e4m3");
    std::vector<double> x(x_.begin(), x_.end()), w = reference::dequantize(stored(host_));
    if (is_fp8) {
      const bool has_blocks = problem().activation_scales == ScaleSharing::kBlock;
      x = reference::round_to_fp8(x_, shape.m, k, has_blocks ? 128 : 0);
      w = reference::dequantize_as_e4m3(stored(host_));
    }
    const std::vector<double> bias(bias_.begin(), bias_.end());
    const std::vector<double> exact = reference::linear(shape, x, w, bias);
    const std::vector<double> magnitude = reference::linear_magnitude(shape, x, w);
    ASSERT_EQ(out.size(), exact.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double bound = reference::dot_error_bound(
          {.length = k + 2,
           // The FP8 tensor core truncates sums at 13 fraction bits of the largest of 32 products.
           .accumulate_roundoff = is_fp8 ? 0x1p-17 : 2 * reference::kRoundoffFp32,
           .output_roundoff = problem().out_dtype == DType::kBF16 ? reference::kRoundoffBf16
                                                                  : reference::kRoundoffFp32},
          exact[i], magnitude[i] + (bias.empty() ? 0 : std::abs(bias[i % bias.size()])));
      ASSERT_LE(std::abs(out[i] - exact[i]), bound)
          << "row " << i / static_cast<std::size_t>(n) << ", column "
          << i % static_cast<std::size_t>(n) << ": " << out[i] << " for " << exact[i];
    }
  }

 private:
  std::int64_t linear_elem_bytes() const { return problem().out_dtype == DType::kBF16 ? 2 : 4; }

  std::vector<double> read(const std::vector<std::uint8_t>& bytes, std::int64_t n) const {
    std::vector<double> out;
    const std::int64_t size = linear_elem_bytes();
    for (std::int64_t i = 0; i < problem().m * problem().out_stride; ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, &bytes[static_cast<std::size_t>(i * size)],
                  static_cast<std::size_t>(size));
      if (i % problem().out_stride < n) {
        out.push_back(size == 2 ? decode(kBf16, code)
                                : static_cast<double>(std::bit_cast<float>(code)));
      } else {
        EXPECT_EQ(code, size == 2 ? 0xffffu : 0xffffffffu) << "between the rows of out";
      }
    }
    return out;
  }

  const Device& device_;
  LinearProblem case_problem_;
  RandomWeight weight_;
  HostWeight host_;
  std::optional<LinearWeight> prepared_;
  std::optional<Linear> linear_;
  std::vector<float> x_, bias_;
};

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
  if (name == "wide_bf16_t128_r2_s2") return true;
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
            "wide_e4m3_fp4_g128", "wide_e4m3_t128", "wide_e4m3_g128"}) {
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
// bf16 weights on Blackwell: every tile, k divided by every number of CTAs that fits, rows and
// columns that fill no tile, several tiles, f32 and bias.
TEST_P(LinearRunTest, TensorMemoryKernelsForBf16) {
  if (!is_blackwell()) GTEST_SKIP() << "Hopper keeps bf16 weights packed";
  struct Shape {
    std::int64_t m, n, k;
  };
  for (const auto& kernel : linear_kernels()) {
    if (!kernel->reads_rows()) continue;
    for (const Shape& s : {Shape{1, 16, 16}, {7, 272, 208}, {70, 144, 528}, {200, 304, 80}}) {
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

// More rows than Hopper gives to the kernel of few.
TEST_P(LinearRunTest, ManyRows) {
  for (const NumberFormat format : kEveryFormat)
    check({.format = format, .n = 32, .k = 64, .problem = {.m = 530}});
}

// Codes and scales that the caller brings: the bits of the run that makes them itself.
TEST_P(LinearRunTest, ActivationsThatComeInE4m3) {
  if (is_blackwell()) GTEST_SKIP() << "no kernel of the chip reads rows of e4m3";
  int tried = 0;
  for (const auto& kernel : linear_kernels()) {
    if (!kernel->name().starts_with("wide_e4m3")) continue;
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
        EXPECT_EQ(run.run_given(), run.run());
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 4);
}

// Rows without infinities come out as if the others were not there.
TEST_P(LinearRunTest, NonFiniteActivationsStayInTheirRows) {
  for (const LinearActivations activations : kBothActivations) {
    for (const std::int64_t m : {9, 40}) {
      const LinearCase c = {.activations = activations, .problem = {.m = m}};
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
