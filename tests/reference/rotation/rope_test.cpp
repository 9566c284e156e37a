#include "reference/rotation/rope.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

RopeParams params_of(int64_t tokens, int64_t heads, int64_t head_dim, int64_t rotary_dim,
                     RopeDirection direction = RopeDirection::kForward) {
  return {tokens, heads, head_dim, rotary_dim, direction};
}

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Seven digits of the DeepSeek-V4 tables: ratio-0 layers (theta 1e4), and all others (1.6e5, YaRN).
TEST(RopeFrequencies, DeepSeekV4CheckValues) {
  const auto plain = rope_frequencies(64, 1e4);
  ASSERT_EQ(plain.size(), 32u);
  EXPECT_EQ(plain[0], 1);
  EXPECT_NEAR(plain[1], 7.498942e-1, 5e-8);
  EXPECT_NEAR(plain[31], 1.333521e-4, 5e-11);

  const auto yarn = yarn_frequencies(64, 1.6e5);
  ASSERT_EQ(yarn.size(), 32u);
  EXPECT_EQ(yarn[0], 1);
  EXPECT_NEAR(yarn[1], 6.876560e-1, 5e-8);
  EXPECT_NEAR(yarn[15], 3.635539e-3, 5e-10);
  EXPECT_NEAR(yarn[16], 2.265625e-3, 5e-10);
  EXPECT_NEAR(yarn[20], 2.969778e-4, 5e-11);
  EXPECT_NEAR(yarn[24], 1.953125e-5, 5e-12);
  EXPECT_NEAR(yarn[25], 5.372313e-6, 5e-13);
  EXPECT_NEAR(yarn[31], 5.680529e-7, 5e-14);
}

// The ramp of DeepSeek-V4 runs from pair 15 to pair 25.
TEST(RopeFrequencies, YarnKeepsFastPairsAndDividesSlowOnes) {
  const auto plain = rope_frequencies(64, 1.6e5);
  const auto yarn = yarn_frequencies(64, 1.6e5);
  for (int i = 0; i <= 15; ++i) EXPECT_EQ(yarn[i], plain[i]) << i;
  for (int i = 25; i < 32; ++i) EXPECT_EQ(yarn[i], plain[i] / 16) << i;
  for (int i = 16; i < 25; ++i) {
    const double ramp = (i - 15) / 10.0;
    EXPECT_NEAR(yarn[i] / plain[i], 1 - ramp * 15 / 16, 1e-15) << i;
  }
}

// Why the ramp stands there: pair 15 makes more than 32 turns over the original 65536 positions and
// pair 16 fewer (or the rounding of the ramp's ends is wrong); likewise 1 turn at the other end.
TEST(RopeFrequencies, YarnRampSpansTheTurnsFromFastToSlow) {
  const auto plain = rope_frequencies(64, 1.6e5);
  const auto turns = [&](int pair) { return 65536 * plain[pair] / (2 * std::numbers::pi); };
  EXPECT_GT(turns(15), 32);
  EXPECT_LT(turns(16), 32);
  EXPECT_GT(turns(24), 1);
  EXPECT_LT(turns(25), 1);
}

TEST(RopeFrequencies, YarnOfFactorOneIsPlain) {
  expect_close(yarn_frequencies(64, 1e4, {.factor = 1}), rope_frequencies(64, 1e4), 1e-15);
}

TEST(Rope, QuarterTurnByHand) {
  // Positions 1 and 2, frequencies pi/2 and pi: pair 0 turns by 90 and 180 degrees, pair 1 by 180,
  // 360.
  const Doubles frequencies = {std::numbers::pi / 2, std::numbers::pi};
  const auto out =
      rope(params_of(2, 1, 4, 4), Doubles{1, 2, 3, 4, 1, 2, 3, 4}, Ints{1, 2}, frequencies);
  const Doubles expected = {-2, 1, -3, -4, -1, -2, 3, 4};
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 3e-15) << i;
}

TEST(Rope, RotatesOnlyTheLastDimensionsOfEveryHead) {
  const Doubles x = random_doubles(1, 2 * 3 * 10);
  const Doubles frequencies = rope_frequencies(4, 100);
  const auto out = rope(params_of(2, 3, 10, 4), x, Ints{7, 11}, frequencies);
  for (int64_t row = 0; row < 6; ++row) {
    const Doubles head(x.begin() + row * 10, x.begin() + row * 10 + 6);
    EXPECT_EQ(Doubles(out.begin() + row * 10, out.begin() + row * 10 + 6), head);
    const Doubles tail(x.begin() + row * 10 + 6, x.begin() + row * 10 + 10);
    const Ints position = {row < 3 ? 7 : 11};
    EXPECT_EQ(Doubles(out.begin() + row * 10 + 6, out.begin() + row * 10 + 10),
              rope(params_of(1, 1, 4, 4), tail, position, frequencies));
  }
}

TEST(Rope, PositionZeroIsTheIdentity) {
  const Doubles x = random_doubles(2, 2 * 8);
  EXPECT_EQ(rope(params_of(2, 1, 8, 8), x, Ints{0, 0}, rope_frequencies(8, 1e4)), x);
}

TEST(Rope, InverseUndoesAndEqualsNegativePositions) {
  const Doubles x = random_doubles(3, 3 * 2 * 512);
  const Doubles frequencies = yarn_frequencies(64, 1.6e5);
  const Ints positions = {1, 1000, 1048575}, negated = {-1, -1000, -1048575};
  const auto forward = rope(params_of(3, 2, 512, 64), x, positions, frequencies);
  const auto inverse = params_of(3, 2, 512, 64, RopeDirection::kInverse);
  expect_close(rope(inverse, forward, positions, frequencies), x, 1e-13);
  EXPECT_EQ(rope(inverse, x, positions, frequencies),
            rope(params_of(3, 2, 512, 64), x, negated, frequencies));
}

TEST(Rope, KeepsTheLengthOfEveryPair) {
  const Doubles x = random_doubles(4, 64);
  const auto out = rope(params_of(1, 1, 64, 64), x, Ints{12345}, rope_frequencies(64, 1e4));
  for (int i = 0; i < 32; ++i) {
    EXPECT_NEAR(std::hypot(out[2 * i], out[2 * i + 1]), std::hypot(x[2 * i], x[2 * i + 1]), 2e-15);
    EXPECT_NE(out[2 * i], x[2 * i]);
  }
}

TEST(Rope, DotProductsDependOnTheDistanceOnly) {
  const Doubles q = random_doubles(5, 64), k = random_doubles(6, 64);
  const Doubles frequencies = yarn_frequencies(64, 1.6e5);
  const auto at = [&](const Doubles& x, int32_t position) {
    return rope(params_of(1, 1, 64, 64), x, Ints{position}, frequencies);
  };
  const double expected = dot(at(q, 40), at(k, 0));
  for (const int32_t shift : {1, 17, 5000}) {
    EXPECT_NEAR(dot(at(q, 40 + shift), at(k, shift)), expected, 1e-10) << shift;
  }
  EXPECT_GT(std::abs(dot(at(q, 41), at(k, 0)) - expected), 1e-3);
}

// Scores of pairs (2i, 2i+1), the interleaved order; halves (i, i + n/2) would mix other elements.
TEST(Rope, PairsAreNeighbours) {
  Doubles x(8, 0);
  x[2] = 1;
  const auto out = rope(params_of(1, 1, 8, 8), x, Ints{1}, rope_frequencies(8, 16));
  const double f = std::pow(16, -0.25);
  expect_close(out, Doubles{0, 0, std::cos(f), std::sin(f), 0, 0, 0, 0});
}

TEST(RopeFrequencies, BadArguments) {
  expect_invalid([] { rope_frequencies(63, 1e4); }, {"rope: rotary_dim = 63; expected an even"});
  expect_invalid([] { rope_frequencies(-2, 1e4); }, {"rope: rotary_dim = -2"});
  for (const double theta : {1.0, 0.0, -1e4, std::numeric_limits<double>::quiet_NaN()}) {
    expect_invalid([&] { rope_frequencies(64, theta); }, {"rope: theta = ", "a value > 1"});
  }
  expect_invalid([] { yarn_frequencies(64, 1e4, {.factor = 0}); },
                 {"factor = 0", "expected values > 0"});
  expect_invalid([] { yarn_frequencies(64, 1e4, {.original_max_pos = -1}); },
                 {"original_max_pos = -1", "expected values > 0"});
  expect_invalid([] { yarn_frequencies(64, 1e4, {.beta_fast = 0}); },
                 {"beta_fast = 0", "expected values > 0"});
  expect_invalid([] { yarn_frequencies(64, 1e4, {.beta_slow = 0}); },
                 {"beta_slow = 0", "expected values > 0"});
  expect_invalid([] { yarn_frequencies(64, 1e4, {.beta_fast = 1, .beta_slow = 32}); },
                 {"YaRN ramp from pair", "beta_fast = 1, beta_slow = 32"});
}

TEST(Rope, BadArguments) {
  const Doubles two(2);
  expect_invalid([&] { rope(params_of(1, 1, 4, 3), Doubles(4), Ints(1), two); },
                 {"rope: rotary_dim = 3; expected an even"});
  expect_invalid([&] { rope(params_of(1, 1, 2, 4), Doubles(2), Ints(1), two); },
                 {"rotary_dim = 4 and head_dim = 2"});
  expect_invalid([&] { rope(params_of(1, 2, 4, 4), Doubles(4), Ints(1), two); },
                 {"x has 4 elements; expected 8 for [tokens, heads, head_dim] = [1, 2, 4]"});
  expect_invalid([&] { rope(params_of(1, 1, 4, 4), Doubles(4), Ints(2), two); },
                 {"positions has 2 elements; expected 1"});
  expect_invalid([&] { rope(params_of(1, 1, 4, 2), Doubles(4), Ints(1), two); },
                 {"frequencies has 2 elements; expected 1 for [rotary_dim / 2]"});
}

}  // namespace
}  // namespace tilewright::reference
