#include "reference/attention_bound.h"

#include "reference/error_bound.h"

#include <cmath>

namespace tilewright::reference {

namespace {

constexpr double kExp2Error = 7.5e-5;

double sum_error(const AttentionRow& row) {
  constexpr std::int64_t kSmallestTile = 64;
  const double rescalings = std::ceil(static_cast<double>(row.num_keys) / kSmallestTile);
  return std::expm1((static_cast<double>(row.num_keys) + 4) * std::log1p(kRoundoffFp32)) +
         rescalings * (0x1p-22 + kRoundoffFp32);
}

}  // namespace

double attention_score_error(const AttentionRow& row) {
  const double size = row.score_magnitude;
  double error = tensor_core_error(row.head_dim) * size + 6 * kRoundoffFp32 * 2 * size;
  if (row.softcap > 0) error += 0x1p-20 * row.softcap;
  return error;
}

double attention_out_bound(const AttentionRow& row, double exact, double magnitude) {
  const double scores = std::expm1(2 * (attention_score_error(row) + kExp2Error));
  const double sums = tensor_core_error(row.num_keys) + sum_error(row);
  const double relative = (1 + scores) * (1 + row.p_roundoff) * (1 + sums) - 1;
  const double lost = static_cast<double>(row.num_keys) * (row.p_subnormal / 2 + 0x1p-126);
  const double error = relative * magnitude + lost * row.value_max;
  return error + row.out_roundoff * (std::abs(exact) + error);
}

double attention_lse_bound(const AttentionRow& row, double exact) {
  return attention_score_error(row) + kExp2Error + sum_error(row) +
         4 * kRoundoffFp32 * (std::abs(exact) + std::abs(row.row_max)) + 0x1p-21;
}

}  // namespace tilewright::reference
