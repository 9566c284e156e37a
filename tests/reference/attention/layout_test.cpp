// Where attention finds its queries and keys: batch, lengths, packed sequences, pages.
#include "reference/attention/attention.h"
#include "tests/reference/attention/attention_inputs.h"
#include "tests/reference/golden.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

// Elements of one token.
constexpr int64_t kQ = 4 * 3, kK = 2 * 3, kV = 2 * 5, kOut = 4 * 5;

// Rows [q0, q1) against keys [kv0, kv1), as a call of its own.
AttentionResult alone(const AttentionInputs& inputs, int64_t q0, int64_t q1, int64_t kv0,
                      int64_t kv1) {
  const AttentionInputs part = {rows_between(inputs.q, q0, q1, kQ),
                                rows_between(inputs.k, kv0, kv1, kK),
                                rows_between(inputs.v, kv0, kv1, kV)};
  return part.run(causal_batch(1, q1 - q0, kv1 - kv0));
}

TEST(AttentionLayout, BatchEqualsSeparateCalls) {
  const AttentionParams params = causal_batch(3, 2, 4);
  const auto inputs = random_attention_inputs(params);
  const auto result = inputs.run(params);
  for (int64_t b = 0; b < 3; ++b) {
    const auto expected = alone(inputs, 2 * b, 2 * b + 2, 4 * b, 4 * b + 4);
    EXPECT_EQ(rows_between(result.out, 2 * b, 2 * b + 2, kOut), expected.out);
    EXPECT_EQ(rows_between(result.lse, b, b + 1, 4 * 2), expected.lse);  // [batch, heads, q_len]
  }
}

TEST(AttentionLayout, PackedEqualsSeparateCalls) {
  AttentionParams params = causal_batch(5, -7, -7);  // q_len and kv_len are not read
  const Ints cu_q = {0, 3, 3, 4, 8, 10};
  const Ints cu_kv = {0, 5, 9, 9, 11, 18};
  params.cu_seqlens_q = cu_q;
  params.cu_seqlens_kv = cu_kv;
  const auto inputs = random_attention_inputs(params, 10, 18);
  const auto result = inputs.run(params);
  ASSERT_EQ(result.lse.size(), 4 * 10u);
  for (int64_t b = 0; b < 5; ++b) {
    SCOPED_TRACE(b);
    const auto expected = alone(inputs, cu_q[b], cu_q[b + 1], cu_kv[b], cu_kv[b + 1]);
    EXPECT_EQ(rows_between(result.out, cu_q[b], cu_q[b + 1], kOut), expected.out);
    const int64_t q_len = cu_q[b + 1] - cu_q[b];
    for (int64_t i = 0; i < q_len; ++i) {  // [heads, total_q]
      EXPECT_EQ(column(result.lse, 10, cu_q[b] + i), column(expected.lse, q_len, i));
      EXPECT_EQ(column(result.row_max, 10, cu_q[b] + i), column(expected.row_max, q_len, i));
    }
  }
}

TEST(AttentionLayout, KvLensEqualShorterSequences) {
  AttentionParams params = causal_batch(3, 2, 6);
  auto inputs = random_attention_inputs(params);
  const Ints kv_lens = {6, 0, 3};
  params.kv_lens = kv_lens;
  for (int64_t b = 0; b < 3; ++b) {  // what lies past the length must not be read
    std::fill(inputs.k.begin() + (6 * b + kv_lens[b]) * kK, inputs.k.begin() + 6 * (b + 1) * kK,
              kNan);
    std::fill(inputs.v.begin() + (6 * b + kv_lens[b]) * kV, inputs.v.begin() + 6 * (b + 1) * kV,
              kNan);
  }
  const auto result = inputs.run(params);
  for (int64_t b = 0; b < 3; ++b) {
    const auto expected = alone(inputs, 2 * b, 2 * b + 2, 6 * b, 6 * b + kv_lens[b]);
    EXPECT_EQ(rows_between(result.out, 2 * b, 2 * b + 2, kOut), expected.out);
  }
}

TEST(AttentionLayout, KvLensShortenPackedSequences) {
  AttentionParams params = causal_batch(2, 2, 0);
  const Ints cu_kv = {0, 5, 9};
  const Ints kv_lens = {3, 4};
  params.cu_seqlens_kv = cu_kv;
  params.kv_lens = kv_lens;
  const auto inputs = random_attention_inputs(params, 4, 9);
  const auto result = inputs.run(params);
  EXPECT_EQ(rows_between(result.out, 0, 2, kOut), alone(inputs, 0, 2, 0, 3).out);
  EXPECT_EQ(rows_between(result.out, 2, 4, kOut), alone(inputs, 2, 4, 5, 9).out);
}

// Copies keys of dense sequences of `kv_len` into pages; what no key fills is NaN.
AttentionInputs paged(const AttentionInputs& dense, int64_t kv_len, const AttentionParams& p,
                      int64_t num_pages) {
  AttentionInputs out = {dense.q, Doubles(num_pages * p.page_size * kK, kNan),
                         Doubles(num_pages * p.page_size * kV, kNan)};
  const int64_t pages_per_row = static_cast<int64_t>(p.page_table.size()) / p.batch;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t j = 0; j < p.kv_lens[b]; ++j) {
      const int64_t page = p.page_table[b * pages_per_row + j / p.page_size];
      const int64_t row = page * p.page_size + j % p.page_size;
      std::copy_n(&dense.k[(b * kv_len + j) * kK], kK, &out.k[row * kK]);
      std::copy_n(&dense.v[(b * kv_len + j) * kV], kV, &out.v[row * kV]);
    }
  }
  return out;
}

TEST(AttentionLayout, PagedEqualsContiguous) {
  AttentionParams params = causal_batch(3, 2, 7);
  const Ints kv_lens = {7, 3, 0};
  params.kv_lens = kv_lens;
  params.window_left = 3;
  const auto dense = random_attention_inputs(params);
  const auto expected = dense.run(params);

  const Ints page_table = {5, 0, 3, 1, 6, -1, -1, -9, 99};  // entries past the keys are not read
  params.page_table = page_table;
  params.page_size = 3;
  params.kv_len = -1;  // not read either
  const auto result = paged(dense, 7, params, 7).run(params);
  EXPECT_EQ(result.out, expected.out);
  EXPECT_EQ(result.lse, expected.lse);
}

TEST(AttentionLayout, SequencesMaySharePages) {
  AttentionParams params = causal_batch(2, 1, 4);
  const Ints page_table = {0, 1, 0, 2};
  params.page_table = page_table;
  params.page_size = 2;
  const auto inputs = random_attention_inputs(params, 2, 6);
  const auto result = inputs.run(params);  // kv_len = 4 for both
  AttentionInputs second = {rows_between(inputs.q, 1, 2, kQ), rows_between(inputs.k, 0, 2, kK),
                            rows_between(inputs.v, 0, 2, kV)};
  second.k.insert(second.k.end(), inputs.k.begin() + 4 * kK, inputs.k.end());
  second.v.insert(second.v.end(), inputs.v.begin() + 4 * kV, inputs.v.end());
  EXPECT_EQ(rows_between(result.out, 0, 1, kOut), alone(inputs, 0, 1, 0, 4).out);
  EXPECT_EQ(rows_between(result.out, 1, 2, kOut), second.run(causal_batch(1, 1, 4)).out);
}

TEST(AttentionLayout, PagesOfOneKeyAreAListOfKeys) {
  AttentionParams params = causal_batch(2, 1, 0);
  const Ints lists = {4, 1, 2, 0, -1, -1};
  const Ints kv_lens = {3, 1};
  params.page_table = lists;
  params.page_size = 1;
  params.kv_lens = kv_lens;
  const auto inputs = random_attention_inputs(params, 2, 5);
  const auto result = inputs.run(params);
  AttentionInputs listed = {rows_between(inputs.q, 0, 1, kQ), {}, {}};
  for (const int row : {4, 1, 2}) {
    const auto k = rows_between(inputs.k, row, row + 1, kK);
    const auto v = rows_between(inputs.v, row, row + 1, kV);
    listed.k.insert(listed.k.end(), k.begin(), k.end());
    listed.v.insert(listed.v.end(), v.begin(), v.end());
  }
  EXPECT_EQ(rows_between(result.out, 0, 1, kOut), listed.run(causal_batch(1, 1, 3)).out);
  EXPECT_EQ(rows_between(result.out, 1, 2, kOut), alone(inputs, 1, 2, 0, 1).out);
}

TEST(AttentionLayout, PackedQueriesOnPagedKeys) {
  AttentionParams params = causal_batch(2, 0, 6);
  const Ints kv_lens = {6, 4};
  const Ints cu_q = {0, 1, 4};
  const Ints page_table = {2, 0, 1, 3};
  params.kv_lens = kv_lens;
  params.cu_seqlens_q = cu_q;
  params.page_table = page_table;
  params.page_size = 4;
  const auto dense = random_attention_inputs(params, 4, 12);
  const auto result = paged(dense, 6, params, 4).run(params);
  EXPECT_EQ(rows_between(result.out, 0, 1, kOut), alone(dense, 0, 1, 0, 6).out);
  EXPECT_EQ(rows_between(result.out, 1, 4, kOut), alone(dense, 1, 4, 6, 10).out);
}

TEST(AttentionLayout, NoSequencesGiveEmptyResults) {
  const auto result = attention(causal_batch(0, 2, 3), {}, {}, {});
  EXPECT_TRUE(result.out.empty());
  EXPECT_TRUE(result.lse.empty());
}

}  // namespace
}  // namespace tilewright::reference
