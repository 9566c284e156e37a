// How far a dequantised value may be from the original, and how far it is on average.
#include "formats/block_scale.h"
#include "tests/formats/block_data.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

// Worst case of one element, from the formats alone. Let s be the scale in use, amax the largest
// magnitude of the block (raised to min_amax), m the mantissa bits and u the smallest subnormal of
// the element format, and max its largest value with max_exponent e.
//
//   rounding    |x / s| rounds to the nearest code: off by |x / s| * 2^-(m+1), or u / 2 near zero
//   saturation  |x| - s * max, where the rule allows |x| > s * max:
//                 kCeilPow2   never
//                 kFloorPow2  |x| < s * 2^(e+1): at most |x| * (1 - max / 2^(e+1))
//                 kAmax       nvfp4: s may round down by the factor 1 - 2^-4: at most |x| * 2^-4
//   size of s   kAmax amax / max (nvfp4: times 1 + 2^-4); kCeilPow2 below 2 * amax / max;
//               kFloorPow2 at most amax / 2^e
//
// fp32 arithmetic adds at most 8 roundings of 2^-24, relative.
struct Bound {
  const char* name;
  double relative;  // times |x|
  double absolute;  // times amax
};
constexpr double kFp32Slack = 0x1p-21;
constexpr Bound kBounds[] = {
    {"fp8_1x128", 1.0 / 16, 0x1p-10 / 448},
    {"fp8_128x128", 1.0 / 16, 0x1p-10 / 448},
    {"fp8_1x128_ue8m0", 1.0 / 16, 0x1p-10 * 2 / 448},
    {"fp8_128x128_ue8m0", 1.0 / 16, 0x1p-10 * 2 / 448},
    {"fp8_64_pow2", 1.0 / 16, 0x1p-10 * 2 / 448},
    {"mxfp8", 1 - 448.0 / 512, 0x1p-10 / 256},
    {"mxfp8_ceil", 1.0 / 16, 0x1p-10 * 2 / 448},
    {"mxfp4", 1.0 / 4, 0.25 / 4},  // saturation: 1 - 6 / 8, the same
    {"mxfp4_ceil", 1.0 / 4, 0.25 * 2 / 6},
    {"nvfp4", 1.0 / 4, 0.25 / 6 * (1 + 0x1p-4)},
};

double amax_of_block(const BlockFormat& format, const std::vector<float>& values, int64_t cols,
                     int64_t row, int64_t col) {
  double amax = format.min_amax;
  const int64_t first_row = row / format.block_rows * format.block_rows;
  const int64_t first_col = col / format.block_cols * format.block_cols;
  for (int64_t r = first_row; r < first_row + format.block_rows; ++r) {
    for (int64_t c = first_col; c < first_col + format.block_cols; ++c) {
      amax = std::max(amax, std::fabs(double{values[r * cols + c]}));
    }
  }
  return amax;
}

TEST(BlockAccuracy, NoElementIsOffByMoreThanTheFormatAllows) {
  ASSERT_EQ(std::size(kBounds), std::size(kBlockFormats));
  constexpr int64_t kRows = 128, kCols = 512;
  for (const Bound& bound : kBounds) {
    const BlockFormat& format = block_format_by_name(bound.name);
    // Row sizes within 2^10 of each other keep nvfp4's block scales out of their subnormals.
    std::vector<float> values = rough_values(kRows, kCols, -5, 5, 31);
    const auto restored = dequantize(format, quantize(format, values, kRows, kCols));
    double worst = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t col = 0; col < kCols; col += format.block_cols) {
        const double amax = amax_of_block(format, values, kCols, row, col);
        for (int64_t i = row * kCols + col; i < row * kCols + col + format.block_cols; ++i) {
          const double x = std::fabs(values[i]);
          const double allowed = std::max(bound.relative * x, bound.absolute * amax);
          const double error = std::fabs(double{values[i]} - restored[i]);
          ASSERT_LE(error, allowed + kFp32Slack * x) << format.name << " " << values[i];
          worst = std::max(worst, error / allowed);
        }
      }
    }
    // The bound is one that values reach, not a loose one.
    EXPECT_GT(worst, 0.9) << format.name;
  }
}

// sqrt(sum (x' - x)^2 / sum x^2) of a N(0, 1) matrix, and the standard error of that estimate.
struct Rms {
  double value;
  double standard_error;
};

Rms relative_rms(const BlockFormat& format, const QuantizeOptions& options) {
  constexpr int64_t kRows = 1024, kCols = 2048;  // 2^21 values
  const std::vector<float> values = normal_values(kRows * kCols, 41);
  const auto restored = dequantize(format, quantize(format, values, kRows, kCols, options));
  // Blocks are independent, so the ratio of the sums of their error and signal energies has the
  // variance of the residuals error - ratio * signal, summed over the blocks (delta method).
  const int64_t block = format.block_cols, num_blocks = kRows * kCols / block;
  std::vector<double> error(num_blocks), signal(num_blocks);
  double error_sum = 0, signal_sum = 0;
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    const double off = double{restored[i]} - values[i];
    error[i / block] += off * off;
    signal[i / block] += double{values[i]} * values[i];
  }
  for (int64_t i = 0; i < num_blocks; ++i) error_sum += error[i], signal_sum += signal[i];
  const double ratio = error_sum / signal_sum;
  double variance = 0;
  for (int64_t i = 0; i < num_blocks; ++i) {
    variance += std::pow((error[i] - ratio * signal[i]) / signal_sum, 2);
  }
  return {std::sqrt(ratio), std::sqrt(variance) / (2 * std::sqrt(ratio))};
}

// Figures of a Monte-Carlo study of these formats, rounded to four digits. The tolerance is that
// rounding plus four standard errors of our sample; the last check keeps it from growing.
TEST(BlockAccuracy, NormalDataHasTheKnownError) {
  struct Case {
    BlockFormat format;
    ScaleChoice choice;
    double rms;
  };
  using enum ScaleChoice;
  const Case cases[] = {{kNvfp4, kNearest, 0.0951},        {kNvfp4, kFourOverSix, 0.0869},
                        {kNvfp4, kExactBest, 0.0974},      {kNvfp4, kExactNearest, 0.1009},
                        {kMxfp4, kNearest, 0.1149},        {kMxfp4Ceil, kNearest, 0.1153},
                        {kFp8Block1x128, kNearest, 0.0257}};
  for (const Case& c : cases) {
    const Rms rms = relative_rms(c.format, {.choice = c.choice});
    EXPECT_NEAR(rms.value, c.rms, 0.00005 + 4 * rms.standard_error)
        << c.format.name << " choice " << static_cast<int>(c.choice);
    EXPECT_LT(rms.standard_error, 0.001 * c.rms) << c.format.name;
  }
}

}  // namespace
}  // namespace tilewright
