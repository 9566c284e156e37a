#include "reference/attention/fp8_bound.h"

#include "reference/dot.h"
#include "reference/error_bound.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {

namespace {

constexpr double kSlack = 1.01;  // for products of several 1 + u

double sum_error(const AttentionFp8Row& row) {
  return static_cast<double>(row.num_keys + 4 * row.num_tiles + 8) * kSlack * kRoundoffFp32;
}

double to_score(const AttentionFp8Keys& keys, std::size_t key, double product) {
  const double score = product * keys.factors[key];
  return keys.softcap > 0 ? keys.softcap * std::tanh(score / keys.softcap) : score;
}

}  // namespace

double attention_fp8_score_error(const AttentionFp8Row& row) {
  const double steps = static_cast<double>(row.num_tiles + 1) * kSlack;
  return row.score_loss + steps * (8 * kRoundoffFp32 * row.score_magnitude + 0x1p-22) +
         row.softcap * 0x1p-20 + 4 * kRoundoffFp32 * row.sink;
}

double attention_fp8_out_bound(const AttentionFp8Row& row, double value_loss, double exact,
                               double magnitude) {
  const double scores = std::expm1(2 * attention_fp8_score_error(row)), sums = sum_error(row);
  const double values = value_loss + 2 * static_cast<double>(row.num_tiles) * kRoundoffFp32;
  const double factors = (1 + sums) * (1 + values + sums) * (1 + kRoundoffE4m3) - 1;
  const double flushed = static_cast<double>(row.num_keys) * 0x1p-17 *
                         std::min(1.0, row.top_share * (1 + scores)) * row.value_max;
  const double before = (scores + (1 + scores) * factors) * magnitude + flushed;
  return before + row.out_roundoff * (std::abs(exact) + before) + row.out_subnormal / 2;
}

double attention_fp8_lse_bound(const AttentionFp8Row& row, double exact) {
  return attention_fp8_score_error(row) + sum_error(row) +
         0x1p-22 * (std::abs(exact) + row.score_magnitude + 8);
}

AttentionFp8Losses attention_fp8_losses(const AttentionFp8Keys& keys) {
  constexpr double kRounding = 0x1p-3;
  const std::size_t dims = keys.q.size();
  struct Column {
    double sum = 0, low = 0, high = 0, magnitude = 0;
  };
  std::vector<Column> columns(dims);
  AttentionFp8Losses losses;
  for (std::size_t key = 0; key < keys.factors.size(); ++key) {
    const auto k = keys.k.subspan(key * dims, dims), v = keys.v.subspan(key * dims, dims);
    const double lost = tensor_core_dot_error(kHopperE4m3TensorCore, keys.q, k);
    losses.score = std::max(losses.score, lost * std::abs(keys.factors[key]));
    const double product = dot(keys.q.data(), k.data(), static_cast<int64_t>(dims));
    const double p = std::exp(to_score(keys, key, product) - keys.log_sum);
    for (std::size_t c = 0; c < dims; ++c) {
      Column& column = columns[c];
      column.sum += p * v[c];
      column.low = std::min(column.low, column.sum);
      column.high = std::max(column.high, column.sum);
      column.magnitude += p * std::abs(v[c]);
    }
  }
  const double steps = std::ceil(static_cast<double>(keys.sum_keys) / kHopperE4m3TensorCore.depth);
  const double growth = std::expm1(steps * std::log1p(kHopperE4m3TensorCore.step_error()));
  for (const Column& column : columns) {
    double share = 1;  // of the magnitude, at most: A
    if (keys.adds_all && column.magnitude > 0)
      share = std::min(1.0, 2 * (column.high - column.low) / column.magnitude);
    losses.values.push_back(growth * (share + kRounding));
  }
  return losses;
}

}  // namespace tilewright::reference
