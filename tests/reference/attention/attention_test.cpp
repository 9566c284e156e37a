// Scores, softmax and LSE of attention. Masks, sinks and storage have files of their own.
#include "reference/attention/attention.h"

#include "tests/reference/attention/attention_inputs.h"
#include "tests/reference/golden.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

TEST(Attention, TwoKeysByHand) {
  const auto result = attention(tiny(2), Doubles{1}, Doubles{0, std::log(3)}, Doubles{0, 4});
  expect_close(result.out, Doubles{3});
  expect_close(result.lse, Doubles{std::log(4)});
  expect_close(result.lse_with_sink, Doubles{std::log(4)});
  expect_close(result.row_max, Doubles{std::log(3)});
}

TEST(Attention, OneKeyReturnsItsValueAndScore) {
  const AttentionParams params = one_sequence(3, 1);
  const auto inputs = random_attention_inputs(params);
  const auto result = inputs.run(params);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t h = 0; h < 4; ++h) {
      const auto out = rows_between(result.out, i * 4 + h, i * 4 + h + 1, 5);
      EXPECT_EQ(out, rows_between(inputs.v, h / 2, h / 2 + 1, 5));
      double dot = 0;
      for (int64_t c = 0; c < 6; ++c) {
        dot += inputs.q[(i * 4 + h) * 6 + c] * inputs.k[(h / 2) * 6 + c];
      }
      expect_close(Doubles{result.lse[h * 3 + i]}, Doubles{dot / std::sqrt(6.0)});
    }
  }
}

TEST(Attention, UniformScoresGiveTheMeanAndTheLogOfTheCount) {
  AttentionParams params = tiny(7);
  const Doubles v = random_doubles(1, 7);
  const auto result = attention(params, Doubles{0}, random_doubles(2, 7), v);
  expect_close(result.out, Doubles{std::accumulate(v.begin(), v.end(), 0.0) / 7});
  expect_close(result.lse, Doubles{std::log(7)});
}

TEST(Attention, ScaleDefaultsToTheInverseRootOfTheHeadDim) {
  AttentionParams params = one_sequence(2, 3);
  const auto inputs = random_attention_inputs(params);
  const auto by_default = inputs.run(params);
  params.scale = 1 / std::sqrt(6.0);
  EXPECT_EQ(by_default.out, inputs.run(params).out);
  params.scale = 0.4;  // not 0.408...
  EXPECT_GT(std::abs(by_default.lse[0] - inputs.run(params).lse[0]), 1e-6);
}

TEST(Attention, OrderOfKeysDoesNotMatter) {
  const AttentionParams params = one_sequence(3, 8);
  const auto inputs = random_attention_inputs(params);
  AttentionInputs permuted = inputs;
  for (int64_t j = 0; j < 8; ++j) {
    const int64_t from = (3 * j + 5) % 8;
    std::copy_n(&inputs.k[from * 12], 12, &permuted.k[j * 12]);
    std::copy_n(&inputs.v[from * 10], 10, &permuted.v[j * 10]);
  }
  const auto a = inputs.run(params);
  const auto b = permuted.run(params);
  expect_close(a.out, b.out);
  expect_close(a.lse, b.lse);
  EXPECT_EQ(a.row_max, b.row_max);
}

TEST(Attention, TheSameVectorAddedToEveryKeyMovesOnlyTheLse) {
  const AttentionParams params = one_sequence(2, 5);
  const auto inputs = random_attention_inputs(params);
  AttentionInputs moved = inputs;
  const Doubles shift = random_doubles(9, 6);
  for (size_t i = 0; i < moved.k.size(); ++i) moved.k[i] += shift[i % 6];
  const auto a = inputs.run(params);
  const auto b = moved.run(params);
  expect_close(a.out, b.out);
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t h = 0; h < 4; ++h) {
      double dot = 0;
      for (int64_t c = 0; c < 6; ++c) dot += inputs.q[(i * 4 + h) * 6 + c] * shift[c];
      EXPECT_NEAR(b.lse[h * 2 + i] - a.lse[h * 2 + i], dot / std::sqrt(6.0), 1e-14);
    }
  }
}

TEST(Attention, HugeScoresDoNotOverflow) {
  AttentionParams params = tiny(3);
  params.scale = 1e6;
  const auto result = attention(params, Doubles{1}, Doubles{-5, 7, 3}, Doubles{1, 2, 4});
  EXPECT_EQ(result.out, Doubles{2});
  EXPECT_EQ(result.lse, Doubles{7e6});
}

TEST(Attention, GroupedHeadsEqualRepeatedHeads) {
  const AttentionParams grouped = one_sequence(3, 5);  // 4 heads, 2 KV heads
  const auto inputs = random_attention_inputs(grouped);
  AttentionParams full = grouped;
  full.kv_heads = 4;
  AttentionInputs repeated{inputs.q, {}, {}};
  for (int64_t j = 0; j < 5; ++j) {
    for (int64_t h = 0; h < 4; ++h) {
      const auto k = rows_between(inputs.k, j * 2 + h / 2, j * 2 + h / 2 + 1, 6);
      const auto v = rows_between(inputs.v, j * 2 + h / 2, j * 2 + h / 2 + 1, 5);
      repeated.k.insert(repeated.k.end(), k.begin(), k.end());
      repeated.v.insert(repeated.v.end(), v.begin(), v.end());
    }
  }
  EXPECT_EQ(inputs.run(grouped).out, repeated.run(full).out);
  EXPECT_EQ(inputs.run(grouped).lse, repeated.run(full).lse);
}

TEST(Attention, SoftcapByHandAndItsLimits) {
  AttentionParams params = tiny(1);
  params.softcap = 2;
  const auto one = attention(params, Doubles{3}, Doubles{1}, Doubles{1});
  expect_close(one.lse, Doubles{2 * std::tanh(1.5)});

  params = one_sequence(3, 5);
  const auto inputs = random_attention_inputs(params);
  const auto uncapped = inputs.run(params);
  params.softcap = 1e9;  // tanh(x) = x - x^3/3: differs by 1e-18
  expect_close(inputs.run(params).out, uncapped.out);
  params.softcap = 1e-9;  // all scores nearly equal
  const auto flat = inputs.run(params);
  for (const double lse : flat.lse) EXPECT_NEAR(lse, std::log(5), 1.1e-9);
}

}  // namespace
}  // namespace tilewright::reference
