#include "reference/sparse_attention/sparse_attention.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One query, two heads of two dimensions, rows (1, 0), (0, 1), (1, 1); scale 1.
const Doubles kRows = {1, 0, 0, 1, 1, 1};
const Doubles kQuery = {std::log(2), 0, 0, std::log(3)};

SparseAttentionParams one_query() {
  return {.queries = 1, .heads = 2, .head_dim = 2, .scale = 1};
}

TEST(SparseAttention, ByHand) {
  // head 0: scores ln 2, 0, ln 2; head 1: 0, ln 3, ln 3
  const Ints all = {0, 1, 2};
  const auto result = sparse_attention(one_query(), kQuery, {kRows, all, 3});
  expect_close(result.lse, Doubles{std::log(5), std::log(7)});
  expect_close(result.out, Doubles{4 / 5.0, 3 / 5.0, 4 / 7.0, 6 / 7.0});
  expect_close(result.row_max, Doubles{std::log(2), std::log(3)});
}

// As ByHand, with a third number that adds ln 2 to the scores of the last row and is no value.
TEST(SparseAttention, ValuesAreTheFirstNumbers) {
  const Doubles rows = {1, 0, 0, 0, 1, 0, 1, 1, 1};
  const Doubles query = {std::log(2), 0, std::log(2), 0, std::log(3), std::log(2)};
  const Ints all = {0, 1, 2};
  SparseAttentionParams params = one_query();
  params.head_dim = 3;
  params.v_head_dim = 2;
  const auto result = sparse_attention(params, query, {rows, all, 3});
  expect_close(result.lse, Doubles{std::log(7), std::log(10)});
  expect_close(result.out, Doubles{6 / 7.0, 5 / 7.0, 7 / 10.0, 9 / 10.0});
  params.v_head_dim = 4;
  expect_invalid([&] { sparse_attention(params, query, {rows, all, 3}); }, {"head_dim", "3"});
}

TEST(SparseAttention, TwoListsAreOneSoftmax) {
  const Ints all = {0, 1, 2}, first = {0}, second = {0, 1};
  const Doubles window(kRows.begin(), kRows.begin() + 2), rest(kRows.begin() + 2, kRows.end());
  const Doubles sink = {0.5, -1};
  SparseAttentionParams params = one_query();
  params.sink = sink;
  const auto together = sparse_attention(params, kQuery, {kRows, all, 3});
  const auto apart = sparse_attention(params, kQuery, {window, first, 1}, {rest, second, 2});
  EXPECT_EQ(apart.out, together.out);
  EXPECT_EQ(apart.lse, together.lse);
}

TEST(SparseAttention, MaskedEntries) {
  const Ints right = {2, 0}, wrong = {2, -1, 3, 0, 1, std::numeric_limits<int32_t>::min()};
  const Ints length = {4};  // cuts off entry 1
  const auto expected = sparse_attention(one_query(), kQuery, {kRows, right, 2});
  const auto result = sparse_attention(one_query(), kQuery, {kRows, wrong, 6, length});
  EXPECT_EQ(result.out, expected.out);
  EXPECT_EQ(result.lse, expected.lse);
}

TEST(SparseAttention, NoKeyAndInfiniteSinks) {
  const Ints none = {-1}, all = {0, 1, 2}, negative = {-3};
  for (const auto& keys :
       {SparseKeys{kRows, none, 1}, SparseKeys{kRows, all, 3, negative}, SparseKeys{}}) {
    const auto empty = sparse_attention(one_query(), kQuery, keys);
    EXPECT_EQ(empty.out, Doubles(4, 0));
    EXPECT_EQ(empty.lse, Doubles(2, -kInfinity));
    SparseAttentionParams positive = one_query();
    positive.positive_empty_lse = true;
    EXPECT_EQ(sparse_attention(positive, kQuery, keys).lse, Doubles(2, kInfinity));
  }
  const auto plain = sparse_attention(one_query(), kQuery, {kRows, all, 3});
  const Doubles sink = {kInfinity, -kInfinity};
  SparseAttentionParams params = one_query();
  params.sink = sink;
  const auto result = sparse_attention(params, kQuery, {kRows, all, 3});
  EXPECT_EQ(result.lse, plain.lse);
  EXPECT_EQ(Doubles(result.out.begin(), result.out.begin() + 2), Doubles(2, 0));
  EXPECT_EQ(Doubles(result.out.begin() + 2, result.out.end()),
            Doubles(plain.out.begin() + 2, plain.out.end()));
}

TEST(SparseAttention, WindowAndVisibleEntries) {
  EXPECT_EQ(window_indices(Ints{0, 2, 3}, 3), (Ints{0, -1, -1, 0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(window_indices(Ints{5}, 3, 3), (Ints{0, 1, 2}));
  EXPECT_EQ(visible_entries(2, 4), 0);
  EXPECT_EQ(visible_entries(3, 4), 1) << "the token that completes the group sees it";
  EXPECT_EQ(visible_entries(127, 128), 1);
}

TEST(SparseAttention, BadArguments) {
  const Ints two = {0, 1};
  expect_invalid(
      [&] {
        sparse_attention(one_query(), kQuery, {kRows, two, 3});
      },
      {"indices has 2 elements", "[queries, topk] = [1, 3]"});
  expect_invalid(
      [&] {
        sparse_attention(one_query(), kQuery, {kRows, two, 2, two});
      },
      {"lengths has 2 elements"});
}

}  // namespace
}  // namespace tilewright::reference
