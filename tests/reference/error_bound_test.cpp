#include "reference/error_bound.h"

#include "tests/reference/inputs.h"

#include <cmath>

namespace tilewright::reference {
namespace {

// 1 + u + u + ... in float: every addition of u = 2^-24 is a tie that rounds to the even 1, so the
// whole n u is lost. The bound for that sum is about n u: it is sharp, not only safe.
TEST(DotErrorBound, IsReachedByASumThatLosesEveryTerm) {
  const int n = 1000;
  float sum = 1;
  for (int i = 0; i < n; ++i) sum += static_cast<float>(kRoundoffFp32);
  const double exact = 1 + n * kRoundoffFp32;
  const double error = exact - sum;
  EXPECT_EQ(error, n * kRoundoffFp32);
  const DotArithmetic arithmetic{.length = n + 1, .accumulate_roundoff = kRoundoffFp32};
  const double bound = dot_error_bound(arithmetic, exact, exact);
  EXPECT_LE(error, bound);
  EXPECT_GT(error, 0.99 * bound);
}

TEST(DotErrorBound, InputRoundingIsReachedAtTheMidpoint) {
  // 1 + u lies half-way between two bf16 numbers and rounds down to 1: |d| = u / (1 + u) on each
  // side.
  const double x = 1 + kRoundoffBf16;
  const DotArithmetic arithmetic{
      .length = 1, .a_roundoff = kRoundoffBf16, .b_roundoff = kRoundoffBf16};
  const double error = x * x - 1;
  const double bound = dot_error_bound(arithmetic, x * x, x * x);
  EXPECT_LE(error, bound);
  EXPECT_GT(error, 0.98 * bound);
}

TEST(DotErrorBound, FormulaByHand) {
  // (1 + 1/4)(1 + 1/2)(1 + 1/8)^2 - 1 = 1.373046875
  const DotArithmetic inexact{
      .length = 2, .a_roundoff = 0.25, .b_roundoff = 0.5, .accumulate_roundoff = 0.125};
  EXPECT_NEAR(dot_error_bound(inexact, -3, 4), 4 * 1.373046875, 1e-14);
  DotArithmetic stored = inexact;
  stored.output_roundoff = 0.5;
  EXPECT_NEAR(dot_error_bound(stored, -3, 4), 5.4921875 + 0.5 * (3 + 5.4921875), 1e-14);
  EXPECT_EQ(dot_error_bound({.length = 5}, 3, 4), 0);  // every step exact
}

TEST(DotErrorBound, IsAtMostGamma) {
  for (const int64_t n : {1, 100, 1000000}) {
    const double nu = static_cast<double>(n) * kRoundoffFp32;
    const double bound = dot_error_bound({.length = n, .accumulate_roundoff = kRoundoffFp32}, 0, 1);
    EXPECT_GE(bound, nu * (1 - 1e-12));
    EXPECT_LE(bound, nu / (1 - nu));
  }
}

TEST(DotErrorBound, RoundoffsAreHalfTheSpacingAboveOne) {
  EXPECT_EQ(std::nextafter(1.0, 2.0) - 1, 2 * kRoundoffFp64);
  EXPECT_EQ(std::nextafter(1.0f, 2.0f) - 1, 2 * kRoundoffFp32);
  EXPECT_EQ(kRoundoffFp16, std::ldexp(1, -10) / 2);  // 10 stored fraction bits
  EXPECT_EQ(kRoundoffBf16, std::ldexp(1, -7) / 2);
  EXPECT_EQ(kRoundoffE4m3, std::ldexp(1, -3) / 2);
  EXPECT_EQ(kRoundoffE2m1, std::ldexp(1, -1) / 2);
}

TEST(DotErrorBound, RefusesNegativeNumbers) {
  expect_invalid([] { dot_error_bound({.length = -1}, 1, 1); }, {"length = -1", "values >= 0"});
  expect_invalid([] { dot_error_bound({.a_roundoff = -0.5}, 1, 1); }, {"roundoffs = -0.5"});
  expect_invalid([] { dot_error_bound({.b_roundoff = -0.5}, 1, 1); }, {"-0.5"});
  expect_invalid([] { dot_error_bound({.accumulate_roundoff = -0.5}, 1, 1); }, {"-0.5"});
  expect_invalid([] { dot_error_bound({.output_roundoff = -0.5}, 1, 1); }, {"-0.5"});
  expect_invalid([] { dot_error_bound({.length = 1}, 1, -2); }, {"magnitude = -2"});
}

}  // namespace
}  // namespace tilewright::reference
