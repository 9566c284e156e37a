#include "reference/linear/linear.h"

#include "reference/error_bound.h"
#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

TEST(Linear, ByHand) {
  // x = [1 2 3; 4 5 6], w = [1 0 -1; 2 1 0], both K-contiguous
  const Doubles x = {1, 2, 3, 4, 5, 6}, w = {1, 0, -1, 2, 1, 0};
  EXPECT_EQ(linear({2, 2, 3}, x, w), (Doubles{-2, 4, -2, 13}));
  EXPECT_EQ(linear({2, 2, 3}, x, w, Doubles{10, 20}), (Doubles{8, 24, 8, 33}));
  EXPECT_EQ(linear_magnitude({2, 2, 3}, x, w), (Doubles{4, 4, 10, 13}));
  EXPECT_EQ(linear_magnitude({2, 2, 3}, Doubles{-1, -2, 3, 4, -5, 6}, w), (Doubles{4, 4, 10, 13}));
}

TEST(Linear, IdentityWeightCopiesAndLinearityHolds) {
  const Doubles x = random_doubles(1, 4 * 5), y = random_doubles(2, 4 * 5);
  Doubles identity(25, 0);
  for (int i = 0; i < 5; ++i) identity[i * 6] = 1;
  EXPECT_EQ(linear({4, 5, 5}, x, identity), x);

  const Doubles w = random_doubles(3, 3 * 5);
  Doubles sum, expected;
  for (size_t i = 0; i < x.size(); ++i) sum.push_back(x[i] + 2 * y[i]);
  const auto a = linear({4, 3, 5}, x, w), b = linear({4, 3, 5}, y, w);
  for (size_t i = 0; i < a.size(); ++i) expected.push_back(a[i] + 2 * b[i]);
  expect_close(linear({4, 3, 5}, sum, w), expected);
}

TEST(Linear, EmptySizes) {
  EXPECT_TRUE(linear({0, 3, 2}, {}, Doubles(6)).empty());
  EXPECT_EQ(linear({2, 1, 0}, {}, {}), Doubles(2, 0));
}

// A float32 evaluation stays within the bound that error_bound.h derives, element by element.
TEST(Linear, Float32EvaluationStaysWithinTheBound) {
  const LinearShape shape{8, 9, 257};
  const Doubles x = random_doubles(4, shape.m * shape.k), w = random_doubles(5, shape.n * shape.k);
  const auto exact = linear(shape, x, w);
  const auto magnitude = linear_magnitude(shape, x, w);
  const DotArithmetic arithmetic{.length = shape.k,
                                 .a_roundoff = kRoundoffFp32,
                                 .b_roundoff = kRoundoffFp32,
                                 .accumulate_roundoff = kRoundoffFp32};
  double largest_error = 0;
  for (int64_t at = 0; at < shape.m * shape.n; ++at) {
    float sum = 0;
    for (int64_t c = 0; c < shape.k; ++c) {
      sum += static_cast<float>(x[at / shape.n * shape.k + c]) *
             static_cast<float>(w[at % shape.n * shape.k + c]);
    }
    const double error = std::abs(sum - exact[at]);
    EXPECT_LE(error, dot_error_bound(arithmetic, exact[at], magnitude[at])) << at;
    largest_error = std::max(largest_error, error);
  }
  EXPECT_GT(largest_error, 1e-6);  // there was an error to bound
}

TEST(Linear, BadSizes) {
  expect_invalid(
      [] {
        linear({2, 2, 3}, Doubles(5), Doubles(6));
      },
      {"linear: x has 5 elements; expected 6 for [m, k] = [2, 3]"});
  expect_invalid(
      [] {
        linear({2, 2, 3}, Doubles(6), Doubles(7));
      },
      {"linear: w has 7 elements; expected 6 for [n, k] = [2, 3]"});
  expect_invalid(
      [] {
        linear({2, 2, 3}, Doubles(6), Doubles(6), Doubles(3));
      },
      {"linear: bias has 3 elements; expected 2 for [n] = [2]"});
  expect_invalid([] { linear_magnitude({2, 2, 3}, Doubles(6), Doubles(7)); }, {"w has 7 elements"});
  expect_invalid(
      [] {
        linear({-2, 2, -3}, Doubles(6), Doubles(6));
      },
      {"x cannot have the shape [m, k] = [-2, -3]"});
  const int64_t huge = int64_t{1} << 32;  // the product overflows
  expect_invalid([&] { linear({huge, 2, huge}, {}, {}); }, {"product below 2^63"});
}

}  // namespace
}  // namespace tilewright::reference
