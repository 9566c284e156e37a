#include "reference/attention/bound.h"

#include "reference/error_bound.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {

namespace {

constexpr double kExp2Error = 0x1p-22;

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
  error += row.score_shift;
  if (row.softcap > 0) error += 0x1p-20 * row.softcap;
  return error;
}

double attention_out_bound(const AttentionRow& row, double exact, double magnitude) {
  const double scores = std::expm1(2 * (attention_score_error(row) + kExp2Error));
  const double sums = tensor_core_error(row.num_keys) + sum_error(row);
  const double relative = (1 + scores) * (1 + row.p_roundoff) * (1 + sums) - 1;
  const double lost = static_cast<double>(row.num_keys) * (row.p_subnormal / 2 + 0x1p-126) *
                      std::min(1.0, row.top_share * (1 + scores));
  const double error = relative * magnitude + lost * row.value_max;
  return error + row.out_roundoff * (std::abs(exact) + error);
}

std::vector<double> attention_score_shift(const AttentionParams& p, std::span<const double> q,
                                          std::span<const double> q_doubt,
                                          std::span<const double> k,
                                          std::span<const double> k_doubt) {
  const double scale = p.scale.value_or(1 / std::sqrt(static_cast<double>(p.head_dim)));
  const auto is_zero = [](double x) { return x == 0; };
  std::vector<double> shifts(static_cast<std::size_t>(p.heads * p.q_len));
  for (int64_t i = 0; i < p.q_len * p.heads; ++i) {
    const int64_t head = i % p.heads, kv_head = head / (p.heads / p.kv_heads);
    const auto q_off = q_doubt.subspan(i * p.head_dim, p.head_dim);
    const bool is_q_sure = std::ranges::all_of(q_off, is_zero);
    if (is_q_sure && k_doubt.empty()) continue;
    double& shift = shifts[head * p.q_len + i / p.heads];
    for (int64_t j = 0; j < p.kv_len; ++j) {
      const int64_t at = (j * p.kv_heads + kv_head) * p.head_dim;
      double off = 0;
      for (int64_t c = 0; c < p.head_dim; ++c) {
        const double k_off = k_doubt.empty() ? 0 : k_doubt[at + c];
        off += q_off[c] * (std::abs(k[at + c]) + k_off) + std::abs(q[i * p.head_dim + c]) * k_off;
      }
      shift = std::max(shift, scale * off);
    }
  }
  return shifts;
}

double attention_lse_bound(const AttentionRow& row, double exact) {
  return attention_score_error(row) + kExp2Error + sum_error(row) +
         4 * kRoundoffFp32 * (std::abs(exact) + std::abs(row.row_max)) + 0x1p-21;
}

}  // namespace tilewright::reference
