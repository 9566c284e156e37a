#include "reference/moe/swiglu.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

TEST(Swiglu, ByHand) {
  // sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4
  const double l = std::log(3);
  expect_close(swiglu(Doubles{l, -l, 0, 40}, Doubles{2, 2, 5, -3}),
               Doubles{1.5 * l, -0.5 * l, 0, -120 / (1 + std::exp(-40))});
}

// The gate is clamped above only, the up value on both sides.
TEST(Swiglu, ClampIsOneSidedOnTheGate) {
  const SwigluParams v4{.limit = 10};
  const auto silu = [](double g) { return g / (1 + std::exp(-g)); };
  const Doubles gate = {10.5, 9.5, -10.5, -20, 1, 1, 1, 1};
  const Doubles up = {1, 1, 1, 1, 10.5, -10.5, 9.5, -9.5};
  expect_close(swiglu(gate, up, v4),
               Doubles{silu(10), silu(9.5), silu(-10.5), silu(-20), silu(1) * 10, silu(1) * -10,
                       silu(1) * 9.5, silu(1) * -9.5});
}

TEST(Swiglu, WithoutLimitNothingIsClamped) {
  const auto out = swiglu(Doubles{1e6, 1}, Doubles{1e6, -1e6});
  EXPECT_EQ(out[0], 1e12);
  expect_close(Doubles{out[1]}, Doubles{-1e6 / (1 + std::exp(-1))});
}

// gate * sigmoid(1.702 gate) * (up + 1); the offset comes after the clamp.
TEST(Swiglu, GptOssVariant) {
  const SwigluParams oss{.limit = 7, .alpha = 1.702, .up_offset = 1};
  expect_close(swiglu(Doubles{2, 8, 2}, Doubles{3, 3, 9}, oss),
               Doubles{2 / (1 + std::exp(-3.404)) * 4, 7 / (1 + std::exp(-11.914)) * 4,
                       2 / (1 + std::exp(-3.404)) * 8});
}

// silu(g) - silu(-g) = g
TEST(Swiglu, AntisymmetricPartIsTheGate) {
  const Doubles gate = random_doubles(1, 50, -30, 30);
  Doubles negated = gate;
  for (double& g : negated) g = -g;
  const Doubles ones(50, 1);
  const auto a = swiglu(gate, ones), b = swiglu(negated, ones);
  for (int i = 0; i < 50; ++i) EXPECT_NEAR(a[i] - b[i], gate[i], 1e-14);
}

TEST(Swiglu, ExtremeGatesStayFinite) {
  EXPECT_EQ(swiglu(Doubles{-1000, 1000}, Doubles{1, 1}), (Doubles{0, 1000}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto out = swiglu(Doubles{nan, 1}, Doubles{1, nan}, {.limit = 10});
  EXPECT_TRUE(std::isnan(out[0]));  // a clamp must not swallow NaN
  EXPECT_TRUE(std::isnan(out[1]));
}

TEST(Swiglu, BadArguments) {
  expect_invalid([] { swiglu(Doubles(3), Doubles(4)); }, {"swiglu: up has 4 elements; expected 3"});
  for (const double limit : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_invalid([&] { swiglu({}, {}, {.limit = limit}); }, {"swiglu: limit = ", "value > 0"});
  }
}

}  // namespace
}  // namespace tilewright::reference
