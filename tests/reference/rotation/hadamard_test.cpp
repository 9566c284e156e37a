#include "reference/rotation/hadamard.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

// H of size n by Sylvester's recursion: four copies, the last one negated.
Doubles sylvester(int64_t n) {
  Doubles h = {1};
  for (int64_t m = 1; m < n; m *= 2) {
    Doubles twice(4 * m * m);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        const double value = h[i * m + j];
        twice[i * 2 * m + j] = twice[i * 2 * m + j + m] = twice[(i + m) * 2 * m + j] = value;
        twice[(i + m) * 2 * m + j + m] = -value;
      }
    }
    h = twice;
  }
  return h;
}

// The fast transform: log2(n) passes of butterflies.
Doubles fast_transform(Doubles x) {
  const int64_t n = static_cast<int64_t>(x.size());
  for (int64_t step = 1; step < n; step *= 2) {
    for (int64_t i = 0; i < n; ++i) {
      if (i & step) continue;
      const double a = x[i], b = x[i + step];
      x[i] = a + b;
      x[i + step] = a - b;
    }
  }
  return x;
}

TEST(Hadamard, FourByHand) {
  EXPECT_EQ(hadamard({1, 4, 1.0}, Doubles{1, 2, 4, 8}), (Doubles{15, -5, -9, 3}));
  EXPECT_EQ(hadamard({1, 4, 0.5}, Doubles{1, 2, 4, 8}, Doubles{1, -1, 1, -1}),
            (Doubles{-2.5, 7.5, 1.5, -4.5}));
  EXPECT_EQ(hadamard({2, 1, 3.0}, Doubles{5, -7}), (Doubles{15, -21}));
}

TEST(Hadamard, RowsOfTheIdentityGiveSylvestersMatrix) {
  for (const int64_t n : {1, 2, 4, 16, 128}) {
    Doubles identity(n * n, 0);
    for (int64_t i = 0; i < n; ++i) identity[i * (n + 1)] = 1;
    EXPECT_EQ(hadamard({n, n, 1.0}, identity), sylvester(n)) << n;
  }
}

TEST(Hadamard, EqualsTheFastTransform) {
  for (const int64_t n : {2, 32, 512}) {
    const Doubles x = random_doubles(n, n);
    expect_close(hadamard({1, n, 1.0}, x), fast_transform(x), 1e-11);
  }
}

TEST(Hadamard, IsItsOwnInverseAtTheOrthogonalScale) {
  const Doubles x = random_doubles(1, 3 * 128);
  const HadamardParams params{3, 128, 1 / std::sqrt(128.0)};
  expect_close(hadamard(params, hadamard(params, x)), x, 1e-11);
}

// q D H . k D H = q . k: a rotation of both sides of a score leaves it alone; of one side it does
// not.
TEST(Hadamard, SignsAndScaleKeepDotProducts) {
  const Doubles q = random_doubles(2, 64), k = random_doubles(3, 64);
  Random random(4);
  Doubles signs;
  for (int i = 0; i < 64; ++i) signs.push_back(random.bits() % 2 ? 1 : -1);
  const HadamardParams params{1, 64, 0.125};
  const auto q_turned = hadamard(params, q, signs), k_turned = hadamard(params, k, signs);
  const auto dot = [](const Doubles& a, const Doubles& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  EXPECT_NEAR(dot(q_turned, k_turned), dot(q, k), 1e-12);
  EXPECT_GT(std::abs(dot(q_turned, k) - dot(q, k)), 0.1);
  EXPECT_GT(std::abs(dot(hadamard(params, q), k_turned) - dot(q, k)), 0.1);
}

TEST(Hadamard, SpreadsAnOutlierEvenly) {
  Doubles x(16, 0);
  x[5] = 8;
  for (const double value : hadamard({1, 16, 0.25}, x)) EXPECT_EQ(std::abs(value), 2);
}

TEST(Hadamard, BadArguments) {
  for (const int64_t dim : {0, -4, 3, 48}) {
    expect_invalid([&] { hadamard({1, dim}, {}); }, {"hadamard: dim = ", "a power of two"});
  }
  expect_invalid(
      [] {
        hadamard({2, 4}, Doubles(4));
      },
      {"hadamard: x has 4 elements; expected 8 for [rows, dim] = [2, 4]"});
  expect_invalid([] { hadamard({1, 4}, Doubles(4), Doubles(3, 1)); }, {"signs has 3 elements"});
  expect_invalid(
      [] {
        hadamard({1, 2}, Doubles(2), Doubles{1, 0.5});
      },
      {"hadamard: signs[1] = 0.5; expected +1 or -1"});
}

}  // namespace
}  // namespace tilewright::reference
