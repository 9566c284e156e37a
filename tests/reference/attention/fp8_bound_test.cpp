// Bounds of attention in e4m3 hold what a model of its arithmetic gives, and are not much wider.
#include "reference/attention/fp8_bound.h"

#include "formats/minifloat.h"
#include "reference/attention/attention.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "reference/rotation/rotary_table.h"
#include "reference/round.h"
#include "tests/reference/inputs.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tilewright::reference {
namespace {

double truncate(double x, int exponent, int bits) {
  const double unit = std::ldexp(1, exponent - bits);
  return std::trunc(x / unit) * unit;
}

// As the tensor core does it.
double multiply(const TensorCore& core, std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t begin = 0; begin < a.size(); begin += static_cast<std::size_t>(core.depth)) {
    const std::size_t end = std::min(begin + static_cast<std::size_t>(core.depth), a.size());
    double largest = std::abs(sum);
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(a[i] * b[i]));
    if (largest == 0) continue;
    const int exponent = std::ilogb(largest);
    sum = truncate(sum, exponent, core.fraction_bits);
    for (std::size_t i = begin; i < end; ++i)
      sum += truncate(a[i] * b[i], exponent, core.fraction_bits);
    if (sum != 0) sum = truncate(sum, std::ilogb(sum), core.result_bits);
  }
  return sum;
}

std::vector<double> draw_codes(Random& random, std::size_t count, double scale) {
  std::vector<double> x(count);
  for (double& value : x) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += random.uniform(-0.5, 0.5);
    value = round_to(kE4m3, sum * scale);
  }
  return x;
}

TEST(TensorCoreDotError, IsZeroForSmallIntegersAndHoldsWhatIsLost) {
  const std::vector<double> ones(100, 1), twos(100, -2);
  EXPECT_EQ(tensor_core_dot_error(kHopperE4m3TensorCore, ones, twos), 0);
  // Cut to multiples of 2: the first 1 is lost, and 2 at most of the sum.
  EXPECT_EQ(tensor_core_dot_error(kHopperE4m3TensorCore, std::vector<double>{128, 1},
                                  std::vector<double>{128, 1}),
            3);
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<double> a = draw_codes(random, 128, 100), b = draw_codes(random, 128, 100);
    double exact = 0;
    for (std::size_t c = 0; c < a.size(); ++c) exact += a[c] * b[c];
    const double error = std::abs(multiply(kHopperE4m3TensorCore, a, b) - exact);
    const double bound = tensor_core_dot_error(kHopperE4m3TensorCore, a, b);
    ASSERT_LE(error, bound);
    worst = std::max(worst, error / bound);
  }
  EXPECT_GT(worst, 0.05);
}

TEST(AttentionFp8Bound, HoldsRoundedWeightsAndIsOfTheirSize) {
  constexpr std::int64_t kKeys = 200, kDims = 64;
  constexpr double kFactor = 1.0 / 100, kValueFactor = 1.0 / 90;
  Random random(2);
  const std::vector<double> q = draw_codes(random, kDims, 100);
  const std::vector<double> k = draw_codes(random, kKeys * kDims, 100);
  const std::vector<double> codes = draw_codes(random, kKeys * kDims, 90);
  std::vector<double> v = codes, real_q = q, real_k = k, scores;
  for (double& x : v) x *= kValueFactor;
  for (double& x : real_q) x *= kFactor;
  for (double& x : real_k) x *= kFactor;
  const AttentionResult exact = attention({.batch = 1,
                                           .heads = 1,
                                           .kv_heads = 1,
                                           .q_len = 1,
                                           .kv_len = kKeys,
                                           .head_dim = kDims,
                                           .v_head_dim = kDims,
                                           .magnitudes = true},
                                          real_q, real_k, v);
  const std::vector<double> factors(kKeys, kFactor * kFactor / 8);
  const AttentionFp8Losses losses = attention_fp8_losses({.q = q,
                                                          .k = k,
                                                          .factors = factors,
                                                          .v = v,
                                                          .log_sum = exact.lse_with_sink[0],
                                                          .sum_keys = kKeys + 56,
                                                          .adds_all = true});
  const AttentionFp8Row row = {.num_keys = kKeys,
                               .num_tiles = 4,
                               .score_magnitude = exact.score_magnitude[0],
                               .score_loss = losses.score,
                               .top_share = std::exp(exact.row_max[0] - exact.lse_with_sink[0]),
                               .value_max = 448 * kValueFactor,
                               .out_roundoff = kRoundoffBf16};
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t j = 0; j < kKeys; ++j) {
    const double product =
        multiply(kHopperE4m3TensorCore, q, std::span(k).subspan(j * kDims, kDims));
    const double weight = 128 * std::exp(product * factors[j] - exact.row_max[0]);
    sum += weight;
    weights.push_back(round_to(kE4m3, weight));
  }
  for (std::size_t c = 0; c < kDims; ++c) {
    std::vector<double> column;
    for (std::size_t j = 0; j < kKeys; ++j) column.push_back(codes[j * kDims + c]);
    const double out =
        round_to(kBf16, multiply(kHopperE4m3TensorCore, weights, column) * kValueFactor / sum);
    const double magnitude = exact.out_magnitude[c];
    const double bound = attention_fp8_out_bound(row, losses.values[c], exact.out[c], magnitude);
    ASSERT_LE(std::abs(out - exact.out[c]), bound) << "column " << c;
    ASSERT_LT(bound, 0.15 * magnitude) << "column " << c;
  }
}

TEST(AttentionScoreShift, IsThatOfOperandsInDoubt) {
  // Half-way between two bf16 numbers, and a quarter.
  EXPECT_EQ(rounding_doubt(kBf16, 1 + 0x1p-8, 0x1p-20), 0x1p-7);
  EXPECT_EQ(rounding_doubt(kBf16, 1 + 0x1p-9, 0x1p-20), 0);
  const std::vector<double> q = {1, 2, 3, 4}, k = {5, -6, 1, 1};
  const AttentionParams params = {
      .batch = 1, .heads = 2, .kv_heads = 1, .q_len = 1, .kv_len = 2, .head_dim = 2, .scale = 0.5};
  EXPECT_EQ(attention_score_shift(params, q, std::vector<double>{0, 0, 0, 0.5}, k, {}),
            (std::vector<double>{0, 0.5 * 0.5 * 6}));
  EXPECT_EQ(attention_score_shift(params, q, std::vector<double>(4), k,
                                  std::vector<double>{0, 0, 0, 0.25}),
            (std::vector<double>{0.5 * 2 * 0.25, 0.5 * 4 * 0.25}));
}

TEST(RotaryTableError, IsThreeRoundingsOfBothProducts) {
  const std::vector<double> error = rotary_table_error(
      {.tokens = 1, .heads = 1, .head_dim = 3, .rotary_dim = 2}, std::vector<double>{3, -4, 7},
      std::vector<int64_t>{0}, std::vector<double>{0.5}, std::vector<double>{-2});
  EXPECT_EQ(error, (std::vector<double>{3 * 0x1p-24 * 9.5, 3 * 0x1p-24 * 8, 0}));
}

}  // namespace
}  // namespace tilewright::reference
