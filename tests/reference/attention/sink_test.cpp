// Sinks, and what attention returns beside out: LSE for merging, magnitudes for error bounds.
#include "reference/attention/attention.h"
#include "tests/reference/attention/attention_inputs.h"
#include "tests/reference/golden.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Doubles = std::vector<double>;

TEST(AttentionSink, SinkByHand) {
  AttentionParams params = tiny(2);
  const Doubles sink = {std::log(4)};
  params.sink = sink;
  const auto result = attention(params, Doubles{1}, Doubles{0, std::log(3)}, Doubles{0, 4});
  expect_close(result.out, Doubles{1.5});  // 4 * 3 / (1 + 3 + 4)
  expect_close(result.lse, Doubles{std::log(4)});
  expect_close(result.lse_with_sink, Doubles{std::log(8)});
  expect_close(result.row_max, Doubles{std::log(3)});  // of the keys, not of the sink
}

TEST(AttentionSink, SinkEqualsOneMoreKeyWithoutValue) {
  AttentionParams params = one_sequence(3, 5);
  params.scale = 0.5;
  const Doubles sink = {0.3, -1.2, 2.0, 0.7};
  params.sink = sink;
  const auto inputs = random_attention_inputs(params);
  const auto with_sink = inputs.run(params);

  // One more dimension, 1 in every q and 0 in every real k; in the extra key it holds sink / scale.
  // Every head has its own sink, so the KV heads are repeated.
  AttentionParams extended = one_sequence(3, 6);
  extended.scale = 0.5;
  extended.kv_heads = 4;
  extended.head_dim = 7;
  AttentionInputs more;
  for (int64_t row = 0; row < 3 * 4; ++row) {
    for (int64_t c = 0; c < 6; ++c) more.q.push_back(inputs.q[row * 6 + c]);
    more.q.push_back(1);
  }
  for (int64_t j = 0; j < 6; ++j) {
    for (int64_t h = 0; h < 4; ++h) {
      const int64_t row = j * 2 + h / 2;
      for (int64_t c = 0; c < 6; ++c) more.k.push_back(j < 5 ? inputs.k[row * 6 + c] : 0);
      more.k.push_back(j < 5 ? 0 : sink[h] / 0.5);
      for (int64_t c = 0; c < 5; ++c) more.v.push_back(j < 5 ? inputs.v[row * 5 + c] : 0);
    }
  }
  const auto expected = more.run(extended);
  expect_close(with_sink.out, expected.out);
  expect_close(with_sink.lse_with_sink, expected.lse);
  params.sink = {};
  EXPECT_EQ(with_sink.lse, inputs.run(params).lse);
}

TEST(AttentionSink, SinkScalesTheOutputByTheSigmoidOfLseMinusSink) {
  AttentionParams params = one_sequence(2, 4);
  const auto inputs = random_attention_inputs(params);
  const auto plain = inputs.run(params);
  const Doubles sink = {0.5, -3, 40, -40};
  params.sink = sink;
  const auto with_sink = inputs.run(params);
  Doubles expected = plain.out;
  for (int64_t at = 0; at < 2 * 4 * 5; ++at) {
    const int64_t i = at / 20;
    const int64_t h = at / 5 % 4;
    expected[at] /= 1 + std::exp(sink[h] - plain.lse[h * 2 + i]);
  }
  expect_close(with_sink.out, expected);
}

TEST(AttentionSink, InfiniteSinks) {
  AttentionParams params = tiny(2);
  const Doubles q = {1}, k = {0.5, -1}, v = {3, 4};
  const auto plain = attention(params, q, k, v);
  Doubles sink = {kInf};
  params.sink = sink;
  const auto all = attention(params, q, k, v);
  EXPECT_EQ(all.out, Doubles{0});
  EXPECT_EQ(all.lse, plain.lse);
  EXPECT_EQ(all.lse_with_sink, Doubles{kInf});
  sink[0] = -kInf;
  const auto none = attention(params, q, k, v);
  EXPECT_EQ(none.out, plain.out);
  EXPECT_EQ(none.lse_with_sink, plain.lse);
  sink[0] = 1e5;  // exp overflows on the way; out underflows to 0, nothing becomes NaN
  const auto large = attention(params, q, k, v);
  EXPECT_EQ(large.out, Doubles{0});
  EXPECT_EQ(large.lse_with_sink, Doubles{1e5});
}

// Split-KV decoding merges parts of the keys with w_i = exp(lse_i - max): out and lse must allow
// it.
TEST(AttentionSink, PartsOfTheKeysMergeThroughTheLse) {
  const AttentionParams params = one_sequence(2, 7);
  const auto inputs = random_attention_inputs(params);
  const auto whole = inputs.run(params);
  const auto part = [&](int64_t begin, int64_t end) {
    const AttentionInputs keys = {inputs.q, rows_between(inputs.k, begin, end, 12),
                                  rows_between(inputs.v, begin, end, 10)};
    return keys.run(one_sequence(2, end - begin));
  };
  const AttentionResult parts[] = {part(0, 3), part(3, 3), part(3, 7)};  // the middle one is empty
  Doubles out(whole.out.size(), 0), lse;
  for (size_t row = 0; row < whole.lse.size(); ++row) {
    double max = -kInf, sum = 0;
    for (const auto& p : parts) max = std::max(max, p.lse[row]);
    for (const auto& p : parts) sum += std::exp(p.lse[row] - max);
    lse.push_back(max + std::log(sum));
    const size_t h = row / 2, i = row % 2;
    for (const auto& p : parts) {
      for (size_t c = 0; c < 5; ++c) {
        out[(i * 4 + h) * 5 + c] += std::exp(p.lse[row] - lse[row]) * p.out[(i * 4 + h) * 5 + c];
      }
    }
  }
  expect_close(out, whole.out);
  expect_close(lse, whole.lse);
}

TEST(AttentionSink, MagnitudesAreThoseOfAbsoluteInputs) {
  AttentionParams params = one_sequence(3, 5);
  params.causal = true;
  auto inputs = random_attention_inputs(params);
  EXPECT_TRUE(inputs.run(params).out_magnitude.empty());
  EXPECT_TRUE(inputs.run(params).score_magnitude.empty());
  params.magnitudes = true;
  const auto result = inputs.run(params);
  AttentionInputs positive = inputs;
  for (double& value : positive.v) value = std::abs(value);
  expect_close(result.out_magnitude, positive.run(params).out);
  for (double& value : positive.q) value = std::abs(value);
  for (double& value : positive.k) value = std::abs(value);
  params.scale = -1 / std::sqrt(6.0);  // the sign of the scale does not enter a magnitude
  expect_close(inputs.run(params).score_magnitude, result.score_magnitude);
  params.scale = {};
  expect_close(result.score_magnitude, positive.run(params).row_max);
}

TEST(AttentionSink, PerturbedScoresStayWithinTheStatedBound) {
  AttentionParams params = one_sequence(4, 9);
  params.magnitudes = true;
  const Doubles sink = {0.1, 0.2, 0.3, 0.4};
  params.sink = sink;
  const auto inputs = random_attention_inputs(params);
  const auto exact = inputs.run(params);
  AttentionInputs perturbed = inputs;
  Random random(5);
  const double u = 0.01;  // every k moves by at most this much of itself, so a score by d
  for (double& value : perturbed.k) value *= 1 + random.uniform(-u, u);
  const auto result = perturbed.run(params);
  double largest_share = 0;
  for (int64_t at = 0; at < 4 * 4 * 5; ++at) {
    const double d = u * exact.score_magnitude[at / 5 % 4 * 4 + at / 20];
    const double bound = std::expm1(2 * d) * exact.out_magnitude[at];
    EXPECT_LE(std::abs(result.out[at] - exact.out[at]), bound) << at;
    largest_share = std::max(largest_share, std::abs(result.out[at] - exact.out[at]) / bound);
  }
  EXPECT_GT(largest_share, 0.05);  // the bound is not empty
}

}  // namespace
}  // namespace tilewright::reference
