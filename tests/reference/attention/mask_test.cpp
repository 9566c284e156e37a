// Which keys a query of attention sees: causal, window, none.
#include "reference/attention/attention.h"
#include "tests/reference/attention/attention_inputs.h"
#include "tests/reference/golden.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace tilewright::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Doubles = std::vector<double>;

// Each row of a causal call equals a call without a mask on just the keys that the row may see.
TEST(AttentionMask, CausalRowsSeeTheKeysUpToTheirBottomRightPosition) {
  for (const int64_t kv_len : {9, 5, 3}) {
    AttentionParams params = one_sequence(5, kv_len);
    params.causal = true;
    const auto inputs = random_attention_inputs(params);
    const auto result = inputs.run(params);
    for (int64_t i = 0; i < 5; ++i) {
      SCOPED_TRACE(testing::Message() << "kv_len " << kv_len << ", row " << i);
      const int64_t visible = std::max<int64_t>(kv_len - (5 - 1 - i), 0);
      const AttentionInputs part = {rows_between(inputs.q, i, i + 1, 24),
                                    rows_between(inputs.k, 0, visible, 12),
                                    rows_between(inputs.v, 0, visible, 10)};
      const auto expected = part.run(one_sequence(1, visible));
      EXPECT_EQ(rows_between(result.out, i, i + 1, 20), expected.out);
      EXPECT_EQ(column(result.lse, 5, i), expected.lse);
    }
  }
}

TEST(AttentionMask, WindowedRowsSeeTheKeysAroundTheirBottomRightPosition) {
  for (const auto& [q_len, kv_len, left, right] :
       {std::tuple{6, 8, 2, 1}, {6, 8, 0, 0}, {6, 8, -1, 2}, {6, 8, 3, -1}, {7, 4, 1, 1}}) {
    AttentionParams params = one_sequence(q_len, kv_len);
    params.window_left = left;
    params.window_right = right;
    const auto inputs = random_attention_inputs(params);
    const auto result = inputs.run(params);
    for (int64_t i = 0; i < q_len; ++i) {
      SCOPED_TRACE(testing::Message() << "window " << left << ", " << right << ", row " << i);
      const int64_t position = i + kv_len - q_len;
      const int64_t end = right < 0 ? kv_len : std::clamp<int64_t>(position + right + 1, 0, kv_len);
      const int64_t begin = left < 0 ? 0 : std::clamp<int64_t>(position - left, 0, end);
      const AttentionInputs part = {rows_between(inputs.q, i, i + 1, 24),
                                    rows_between(inputs.k, begin, end, 12),
                                    rows_between(inputs.v, begin, end, 10)};
      const auto expected = part.run(one_sequence(1, end - begin));
      EXPECT_EQ(rows_between(result.out, i, i + 1, 20), expected.out);
      EXPECT_EQ(column(result.lse, q_len, i), expected.lse);
    }
  }
}

// DeepSeek-V4: token p sees positions max(0, p - 127) .. p, 128 keys with itself.
TEST(AttentionMask, WindowOf127BeforeTheTokenHolds128Keys) {
  AttentionParams params = tiny(300);
  params.q_len = 300;
  params.causal = true;
  params.window_left = 127;
  Doubles positions(300);
  std::iota(positions.begin(), positions.end(), 0);
  const auto result = attention(params, Doubles(300, 0), Doubles(300, 0), positions);
  for (int p = 0; p < 300; ++p) {
    const int first = std::max(0, p - 127);
    EXPECT_NEAR(result.lse[p], std::log(p - first + 1), 1e-14) << p;
    EXPECT_NEAR(result.out[p], 0.5 * (first + p), 1e-11) << p;  // mean of first .. p
  }
}

TEST(AttentionMask, MasksThatHideNothingChangeNothing) {
  AttentionParams params = one_sequence(4, 6);
  const auto inputs = random_attention_inputs(params);
  const auto expected = inputs.run(params).out;
  for (const int64_t window : {int64_t{5}, std::numeric_limits<int64_t>::max()}) {
    params.window_left = params.window_right = window;
    EXPECT_EQ(inputs.run(params).out, expected);
  }
  params.window_left = 4;  // the last query misses key 0
  EXPECT_NE(inputs.run(params).out, expected);

  AttentionParams decode = one_sequence(1, 6);
  const auto decode_inputs = random_attention_inputs(decode);
  const auto all = decode_inputs.run(decode).out;
  decode.causal = true;  // one query stands at the last key
  EXPECT_EQ(decode_inputs.run(decode).out, all);
}

TEST(AttentionMask, CausalIsAWindowThatEndsAtThePosition) {
  AttentionParams params = one_sequence(4, 6);
  const auto inputs = random_attention_inputs(params);
  params.window_right = 0;
  const auto expected = inputs.run(params).out;
  params.causal = true;
  EXPECT_EQ(inputs.run(params).out, expected);
  params.window_right = 3;  // causal is the stricter one
  EXPECT_EQ(inputs.run(params).out, expected);
}

TEST(AttentionMask, NanReachesTheRowsThatSeeItAndNoOthers) {
  AttentionParams params = tiny(3);
  params.q_len = 3;
  params.causal = true;
  for (int64_t at = 0; at < 3; ++at) {  // first, middle and last key
    Doubles k = {0.1, 0.2, 0.3};
    k[at] = kNan;
    const auto result = attention(params, Doubles{1, 1, 1}, k, Doubles{1, 2, 3});
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::isnan(result.out[i]), i >= at) << at << " " << i;
      EXPECT_EQ(std::isnan(result.lse[i]), i >= at) << at << " " << i;
    }
  }
}

TEST(AttentionMask, RowsWithoutKeysAreZero) {
  AttentionParams params = one_sequence(3, 0);
  const Doubles sink = {0.5, kInf, -kInf, -2};
  for (const bool has_sink : {false, true}) {
    if (has_sink) params.sink = sink;
    const auto result = random_attention_inputs(params).run(params);
    EXPECT_EQ(result.out, Doubles(3 * 4 * 5, 0));
    EXPECT_EQ(result.lse, Doubles(3 * 4, -kInf));
    EXPECT_EQ(result.row_max, Doubles(3 * 4, -kInf));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(column(result.lse_with_sink, 3, i), has_sink ? sink : Doubles(4, -kInf));
    }
  }
}

}  // namespace
}  // namespace tilewright::reference
