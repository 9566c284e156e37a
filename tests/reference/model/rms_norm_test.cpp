#include "reference/model/rms_norm.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

TEST(RmsNorm, ByHand) {
  // mean square of (3, -4, 0, 5) = 12.5; eps brings it to 16
  const Doubles x = {3, -4, 0, 5};
  EXPECT_EQ(rms_norm({1, 4, 3.5}, x), (Doubles{0.75, -1, 0, 1.25}));
  EXPECT_EQ(rms_norm({1, 4, 3.5}, x, Doubles{2, 1, 5, -4}), (Doubles{1.5, -1, 0, -5}));
}

TEST(RmsNorm, RowsAreIndependentAndShareTheWeight) {
  const Doubles x = random_doubles(1, 3 * 8), weight = random_doubles(2, 8);
  const auto all = rms_norm({3, 8, 1e-6}, x, weight);
  for (int r = 0; r < 3; ++r) {
    const Doubles row(x.begin() + 8 * r, x.begin() + 8 * r + 8);
    EXPECT_EQ(rms_norm({1, 8, 1e-6}, row, weight),
              Doubles(all.begin() + 8 * r, all.begin() + 8 * r + 8));
  }
}

TEST(RmsNorm, ResultHasUnitMeanSquareAndIgnoresTheScaleOfTheRow) {
  const Doubles x = random_doubles(3, 64);
  Doubles scaled = x;
  for (double& value : scaled) value *= 1000;
  const auto y = rms_norm({1, 64, 0}, x);
  double mean_square = 0;
  for (const double value : y) mean_square += value * value / 64;
  EXPECT_NEAR(mean_square, 1, 1e-14);
  expect_close(rms_norm({1, 64, 0}, scaled), y);
}

// The default of 1e-6 is added to the mean square, not to the root and not to the sum.
TEST(RmsNorm, EpsIsAddedToTheMeanSquare) {
  EXPECT_EQ(RmsNormParams{}.eps, 1e-6);
  expect_close(rms_norm({1, 4, 1e-6}, Doubles(4, 1e-3)), Doubles(4, 1 / std::sqrt(2)));
  EXPECT_EQ(rms_norm({2, 3, 1e-6}, Doubles(6, 0)), Doubles(6, 0));
}

TEST(RmsNorm, BadArguments) {
  expect_invalid(
      [] {
        rms_norm({2, 3}, Doubles(5));
      },
      {"rms_norm: x has 5 elements; expected 6 for [rows, dim] = [2, 3]"});
  expect_invalid(
      [] {
        rms_norm({2, 3}, Doubles(6), Doubles(2));
      },
      {"rms_norm: weight has 2 elements; expected 3"});
  for (const double eps :
       {-1e-6, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    expect_invalid([&] { rms_norm({1, 1, eps}, Doubles(1)); }, {"rms_norm: eps = "});
  }
}

}  // namespace
}  // namespace tilewright::reference
