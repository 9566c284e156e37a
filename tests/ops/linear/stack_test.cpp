// Stacks of weights by few rows: every input against float64, under all checks of the simulator,
// and what they refuse.
#include "tilewright/linear.h"

#include "device/internal.h"
#include "device/memory.h"
#include "formats/minifloat.h"
#include "reference/error_bound.h"
#include "reference/round.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/gpu_infos.h"
#include "tests/ops/linear/case.h"
#include "tests/ops/operator_test.h"

#include <bit>
#include <cmath>

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using device::Buffer;
using kernels::pointer_to;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kPositions = 7;
constexpr double kEps = 1e-3;  // as large as the squares of some rows

struct StackCase {
  LinearStackProblem problem = {};
  std::int64_t k = 208, groups = 1;
  std::vector<std::pair<NumberFormat, std::int64_t>> weights = {{NumberFormat::kFp8, 144}};
};

class StackRun {
 public:
  StackRun(const Device& device, const StackCase& c) : device_(device), case_(c) {
    for (const auto& [format, n] : c.weights) {
      RandomWeight weight(format, n, c.k, 7 + weights_.size());
      weight.source.groups = c.groups;
      values_.push_back(reference::dequantize(stored(check_weight_source(weight.source))));
      weights_.push_back(LinearWeight::prepare(device, weight.source));
    }
    stack_.emplace(weights_, c.problem);
    reference::Random random(3);
    const std::int64_t all = problem().m * columns();
    for (std::int64_t i = 0; i < all; ++i) {
      // Rows of different magnitude: each has a norm of its own.
      const double x = random.uniform(-2, 2) * std::ldexp(1, static_cast<int>(i / columns()) * -3);
      x_.push_back(is_normalised() ? double{static_cast<float>(x)} : round_to(kBf16, x));
    }
    for (std::int64_t i = 0; i < c.k; ++i) norm_.push_back(round_to(kBf16, random.uniform(0.5, 2)));
    for (std::int64_t i = 0; i < problem().m; ++i)
      positions_.push_back(static_cast<std::int32_t>(i * 3 % kPositions));
    const std::int64_t pairs = problem().rope_dims / 2;
    for (std::int64_t i = 0; i < kPositions * pairs * 2; ++i)
      angles_.push_back(static_cast<float>(random.uniform(-1, 1)));
  }

  const LinearStackProblem& problem() const { return stack_->plan().problem; }
  std::vector<double>& x() { return x_; }
  std::vector<std::int32_t>& positions() { return positions_; }

  /// out [m, out_stride]; NaN where nothing was written.
  std::vector<double> run() const {
    const device::Device& inner = opened(device_);
    const LinearStackProblem& p = problem();
    const Buffer x = is_normalised() ? Buffer::from(inner, rows<std::uint32_t>(kFp32))
                                     : Buffer::from(inner, rows<std::uint16_t>(kBf16));
    std::vector<std::uint16_t> norm;
    for (const double value : norm_)
      norm.push_back(static_cast<std::uint16_t>(encode(kBf16, value)));
    const Buffer weights = Buffer::from(inner, norm), angles = Buffer::from(inner, angles_);
    const Buffer positions = Buffer::from(inner, positions_);
    const bool is_f32 = p.out_dtype == DType::kF32;
    const auto count = static_cast<std::size_t>(p.m * p.out_stride);
    const kernels::Output<std::uint32_t> out32(inner, is_f32 ? count : 0);
    const kernels::Output<std::uint16_t> out16(inner, is_f32 ? 0 : count);
    const device::Stream stream(inner);
    stack_->run({.x = pointer_to<const void>(x),
                 .norm = pointer_to<const void>(weights),
                 .positions = pointer_to<const std::int32_t>(positions),
                 .rope = {.angles = pointer_to<const float>(angles), .positions = kPositions},
                 .out = is_f32 ? static_cast<void*>(out32.pointer()) : out16.pointer(),
                 .stream = stream.handle()});
    stream.synchronize();
    std::vector<double> out;
    for (const std::uint32_t code : out32.read()) out.push_back(decode(kFp32, code));
    for (const std::uint16_t code : out16.read()) out.push_back(decode(kBf16, code));
    return out;
  }

  void check() const {
    const std::vector<double> out = run();
    const LinearStackProblem& p = problem();
    for (std::int64_t i = 0; i < p.m; ++i) {
      const Row row = input(i);
      std::vector<bool> is_written(static_cast<std::size_t>(p.out_stride), false);
      for (std::size_t w = 0; w < values_.size(); ++w) {
        const std::int64_t n = case_.weights[w].second, first = w == 0 ? 0 : p.second_column;
        for (std::int64_t j = 0; j < n; ++j) {
          is_written[static_cast<std::size_t>(first + j)] = true;
          compare(out[static_cast<std::size_t>(i * p.out_stride + first + j)], row, w, j);
        }
      }
      for (std::int64_t j = 0; j < p.out_stride; ++j) {
        if (is_written[static_cast<std::size_t>(j)]) continue;
        EXPECT_TRUE(std::isnan(out[static_cast<std::size_t>(i * p.out_stride + j)])) << j;
      }
    }
  }

 private:
  // What is multiplied, and how far rounding may have moved it.
  struct Row {
    std::vector<double> values, errors;
  };
  bool is_normalised() const { return problem().input == StackInput::kNormalised; }
  std::int64_t columns() const { return case_.k * case_.groups; }
  double at(std::int64_t i, std::int64_t c) const {
    return x_[static_cast<std::size_t>(i * columns() + c)];
  }

  template <class Code>
  std::vector<Code> rows(const FormatSpec& format) const {
    std::vector<Code> codes(static_cast<std::size_t>(problem().m * problem().x_stride),
                            static_cast<Code>(~Code{0}));
    for (std::int64_t i = 0; i < problem().m; ++i)
      for (std::int64_t c = 0; c < columns(); ++c)
        codes[static_cast<std::size_t>(i * problem().x_stride + c)] =
            static_cast<Code>(encode(format, at(i, c)));
    return codes;
  }

  // Rounded once to bf16, 2^-8 of the value; what f32 loses before is under 2^-18 of its parts.
  Row input(std::int64_t i) const {
    Row row;
    double squares = 0;
    for (std::int64_t c = 0; c < columns(); ++c) squares += at(i, c) * at(i, c);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(columns()) + kEps);
    const LinearStackProblem& p = problem();
    for (std::int64_t c = 0; c < columns(); ++c) {
      double value = at(i, c), parts = 0;
      const std::int64_t rotated = c % p.head_dim - (p.head_dim - p.rope_dims);
      const std::int32_t position = positions_[static_cast<std::size_t>(i)];
      if (is_normalised()) {
        value *= factor * norm_[static_cast<std::size_t>(c)];
        parts = std::abs(value);
      } else if (p.input == StackInput::kTurnedBack && rotated >= 0 && position >= 0) {
        const std::size_t angle = static_cast<std::size_t>(position * p.rope_dims + rotated / 2);
        const double cosine = double{angles_[angle]};
        const double sine = double{angles_[angle + static_cast<std::size_t>(p.rope_dims / 2)]};
        const double other = at(i, c % 2 == 0 ? c + 1 : c - 1);
        const double of_other = c % 2 == 0 ? other * sine : -other * sine;
        parts = std::abs(value * cosine) + std::abs(of_other);
        value = value * cosine + of_other;
      }
      row.values.push_back(value);
      row.errors.push_back(parts == 0 ? 0
                                      : std::ldexp(std::abs(value), -8) + std::ldexp(parts, -18));
    }
    return row;
  }

  void compare(double result, const Row& row, std::size_t weight, std::int64_t j) const {
    const std::int64_t n = case_.weights[weight].second;
    const std::int64_t first = j * case_.groups / n * case_.k;
    double exact = 0, magnitude = 0, moved = 0;
    for (std::int64_t c = 0; c < case_.k; ++c) {
      const double w = values_[weight][static_cast<std::size_t>(j * case_.k + c)];
      const auto at = static_cast<std::size_t>(first + c);
      exact += w * row.values[at];
      magnitude += std::abs(w) * (std::abs(row.values[at]) + row.errors[at]);
      moved += std::abs(w) * row.errors[at];
    }
    const double roundoff =
        problem().out_dtype == DType::kBF16 ? reference::kRoundoffBf16 : reference::kRoundoffFp32;
    const double bound =
        reference::dot_error_bound({.length = case_.k + 2,
                                    .accumulate_roundoff = 2 * reference::kRoundoffFp32,
                                    .output_roundoff = roundoff},
                                   std::abs(exact) + moved, magnitude);
    ASSERT_LE(std::abs(result - exact), bound + moved) << "weight " << weight << ", column " << j;
  }

  const Device& device_;
  StackCase case_;
  std::vector<std::vector<double>> values_;
  std::vector<LinearWeight> weights_;
  std::optional<LinearStack> stack_;
  std::vector<double> x_, norm_;
  std::vector<std::int32_t> positions_;
  std::vector<float> angles_;
};

constexpr auto kFp8 = NumberFormat::kFp8, kBf16Weight = NumberFormat::kBf16;

class LinearStackTest : public HopperTest<LinearStackTest> {
 protected:
  static void check(const StackCase& c) {
    SCOPED_TRACE(fmt::format("m {}, k {} x {}, {} weights, {}", c.problem.m, c.k, c.groups,
                             c.weights.size(), to_string(c.problem.input)));
    StackRun(*device_, c).check();
  }
};
TILEWRIGHT_ON_EVERY_HOPPER(LinearStackTest);

TEST_P(LinearStackTest, OneWeightOfEveryFormat) {
  for (const NumberFormat format : {kFp8, kBf16Weight}) {
    check({.problem = {.m = 1}, .k = 16, .weights = {{format, 16}}});
    check({.problem = {.m = 8, .out_dtype = DType::kF32, .x_stride = 216, .out_stride = 160},
           .weights = {{format, 144}}});
  }
}
TEST_P(LinearStackTest, TwoWeightsSideBySide) {
  for (const std::int64_t m : {1, 5})
    check({.problem = {.m = m,
                       .out_dtype = m == 1 ? DType::kF32 : DType::kBF16,
                       .out_stride = 304,
                       .second_column = 160},
           .weights = {{kFp8, 144}, {kBf16Weight, 112}}});
}
TEST_P(LinearStackTest, RowsAreNormalised) {
  for (const std::int64_t m : {1, 3, 8})
    check({.problem = {.m = m, .input = StackInput::kNormalised, .x_stride = 224, .eps = kEps}});
  check({.problem = {.m = 2, .input = StackInput::kNormalised, .second_column = 144, .eps = kEps},
         .weights = {{kFp8, 144}, {kBf16Weight, 48}}});
}
// The part of a group ends within a head.
TEST_P(LinearStackTest, HeadsAreTurnedBack) {
  for (const std::int64_t m : {1, 4})
    check({.problem = {.m = m, .input = StackInput::kTurnedBack, .head_dim = 64, .rope_dims = 32},
           .k = 96,
           .groups = 3,
           .weights = {{kFp8, 384}}});
}
TEST_P(LinearStackTest, PositionsThatAreNone) {
  StackRun run(*device_, {.problem = {.m = 3,
                                      .input = StackInput::kTurnedBack,
                                      .out_dtype = DType::kF32,
                                      .head_dim = 64,
                                      .rope_dims = 16},
                          .k = 128});
  run.positions() = {-1, 2, 5};
  run.check();
  run.positions()[1] = kPositions;
  const std::vector<double> out = run.run();
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(std::isnan(out[i]), i / 144 == 1) << "result " << i;
}
// The same launch in a chain reads the row that the one before it has just written.
TEST_P(LinearStackTest, ResultsRepeat) {
  const StackRun run(*device_, {.problem = {.m = 3, .input = StackInput::kNormalised}});
  const std::vector<double> first = run.run();
  for (int i = 0; i < (is_simulator() ? 2 : 1000); ++i) ASSERT_EQ(run.run(), first) << "run " << i;
}

TEST(LinearStackPlanTest, TellsAllThatIsWrong) {
  const Device device = Device::open("plan:h200");
  const std::vector<LinearWeightInfo> two = {{.format = kFp8, .n = 256, .k = 512},
                                             {.format = kBf16Weight, .n = 64, .k = 512}};
  const auto plan = [&](const LinearStackProblem& p, std::span<const LinearWeightInfo> weights) {
    return [&device, p, weights] { plan_linear_stack(device, weights, p); };
  };
  EXPECT_THAT(plan({.m = 9, .second_column = 8}, two),
              ThrowsMessage<Error>(
                  ::testing::AllOf(HasSubstr("m"), HasSubstr("9"), HasSubstr("second_column"))));
  EXPECT_THAT(
      plan({.input = StackInput::kTurnedBack, .head_dim = 40, .rope_dims = 48},
           std::span(two).first(1)),
      ThrowsMessage<Error>(::testing::AllOf(HasSubstr("head_dim"), HasSubstr("rope_dims"))));
  const std::vector<LinearWeightInfo> none = {{.format = NumberFormat::kNvfp4, .n = 256, .k = 512}};
  EXPECT_THAT(plan({}, none), ThrowsMessage<Error>(HasSubstr("is for FP8 and bf16 weights")));
  EXPECT_THAT(plan({}, {}), ThrowsMessage<Error>(HasSubstr("weights")));
  EXPECT_EQ(linear_stack_obstacle(device, two, {.second_column = 256}), "");
  EXPECT_THAT(linear_stack_obstacle(Device::open("plan:b200"), two, {.second_column = 256}),
              HasSubstr("compute capability 10.0"));
  const LinearStackPlan made = plan_linear_stack(device, two, {.second_column = 256});
  EXPECT_EQ(made.launches.size(), 1u);
  EXPECT_EQ(made.problem.out_stride, 320);
}

}  // namespace
}  // namespace tilewright::ops
