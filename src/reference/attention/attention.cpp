#include "reference/attention/attention.h"

#include "reference/attention/layout.h"
#include "reference/dot.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Problem {
  const AttentionParams& params;
  std::span<const double> q, k, v;
  double scale;
  int64_t total_q;
};

// The visible keys of one query of one head.
struct VisibleKeys {
  std::vector<int64_t> rows;   // in k and v
  std::vector<double> scores;  // after scale and softcap
  double max_magnitude = 0;    // largest scale * sum |q k|
};

bool is_visible(const AttentionParams& p, const AttentionSequence& s, int64_t i, int64_t j) {
  const int64_t position = i + s.kv_len - s.q_len;
  if (p.causal && j > position) return false;
  if (p.window_left >= 0 && position - j > p.window_left) return false;
  if (p.window_right >= 0 && j - position > p.window_right) return false;
  return true;
}

std::span<const double> vector_at(std::span<const double> array, int64_t row, int64_t heads,
                                  int64_t head, int64_t dim) {
  return array.subspan((row * heads + head) * dim, dim);
}

double score(const Problem& problem, std::span<const double> q, std::span<const double> k) {
  const double scaled = problem.scale * dot(q.data(), k.data(), static_cast<int64_t>(q.size()));
  const double cap = problem.params.softcap;
  return cap > 0 ? cap * std::tanh(scaled / cap) : scaled;
}

double score_magnitude(const Problem& problem, std::span<const double> q,
                       std::span<const double> k) {
  double sum = 0;
  for (size_t c = 0; c < q.size(); ++c) sum += std::abs(q[c] * k[c]);
  return std::abs(problem.scale) * sum;
}

VisibleKeys visible_keys(const Problem& problem, const AttentionSequence& s, int64_t h,
                         int64_t kv_head, int64_t i) {
  const AttentionParams& p = problem.params;
  const auto q = vector_at(problem.q, s.q_begin + i, p.heads, h, p.head_dim);
  VisibleKeys keys;
  for (int64_t j = 0; j < s.kv_len; ++j) {
    if (!is_visible(p, s, i, j)) continue;
    const int64_t row = attention_kv_row(p, s, j);
    const auto k = vector_at(problem.k, row, p.kv_heads, kv_head, p.head_dim);
    keys.rows.push_back(row);
    keys.scores.push_back(score(problem, q, k));
    if (p.magnitudes) {
      keys.max_magnitude = std::max(keys.max_magnitude, score_magnitude(problem, q, k));
    }
  }
  return keys;
}

// ln(exp(a) + exp(b)); one of them may be infinite.
double log_add_exp(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// Offset of (sequence, head, query) in the per-row arrays.
int64_t row_offset(const Problem& problem, const AttentionSequence& s, int64_t h, int64_t i) {
  const AttentionParams& p = problem.params;
  if (p.cu_seqlens_q.empty()) return (s.index * p.heads + h) * p.q_len + i;
  return h * problem.total_q + s.q_begin + i;
}

// out[c] = sum_n exp(scores[n] - max) / denominator * v[rows[n], c]
void add_values(const Problem& problem, const VisibleKeys& keys, int64_t kv_head, double max,
                double denominator, int64_t out, AttentionResult& result) {
  const AttentionParams& p = problem.params;
  for (size_t n = 0; n < keys.rows.size(); ++n) {
    const double weight = std::exp(keys.scores[n] - max) / denominator;
    const auto v = vector_at(problem.v, keys.rows[n], p.kv_heads, kv_head, p.v_head_dim);
    for (int64_t c = 0; c < p.v_head_dim; ++c) result.out[out + c] += weight * v[c];
    if (!p.magnitudes) continue;
    for (int64_t c = 0; c < p.v_head_dim; ++c)
      result.out_magnitude[out + c] += weight * std::abs(v[c]);
  }
}

void attend(const Problem& problem, const AttentionSequence& s, int64_t h, int64_t i,
            AttentionResult& result) {
  const AttentionParams& p = problem.params;
  const int64_t kv_head = h / (p.heads / p.kv_heads);
  const VisibleKeys keys = visible_keys(problem, s, h, kv_head, i);
  const double sink = p.sink.empty() ? -kInfinity : p.sink[h];
  const int64_t row = row_offset(problem, s, h, i);
  if (p.magnitudes) result.score_magnitude[row] = keys.max_magnitude;
  if (keys.rows.empty()) {
    result.lse_with_sink[row] = sink;
    return;  // out stays 0, lse and row_max stay -inf
  }
  const double max = *std::max_element(keys.scores.begin(), keys.scores.end());
  double sum = 0;
  for (const double s_j : keys.scores) sum += std::exp(s_j - max);
  result.row_max[row] = max;
  result.lse[row] = max + std::log(sum);
  result.lse_with_sink[row] = log_add_exp(result.lse[row], sink);
  const int64_t out = ((s.q_begin + i) * p.heads + h) * p.v_head_dim;
  add_values(problem, keys, kv_head, max, sum + std::exp(sink - max), out, result);
}

}  // namespace

AttentionResult attention(const AttentionParams& params, std::span<const double> q,
                          std::span<const double> k, std::span<const double> v) {
  const auto sequences = attention_sequences(params, q, k, v);
  const double scale = params.scale.value_or(1 / std::sqrt(static_cast<double>(params.head_dim)));
  const int64_t total_q = static_cast<int64_t>(q.size()) / (params.heads * params.head_dim);
  const Problem problem{params, q, k, v, scale, total_q};
  const int64_t rows = total_q * params.heads;

  AttentionResult result;
  result.out.assign(rows * params.v_head_dim, 0);
  result.lse.assign(rows, -kInfinity);
  result.lse_with_sink.assign(rows, -kInfinity);
  result.row_max.assign(rows, -kInfinity);
  if (params.magnitudes) {
    result.out_magnitude.assign(rows * params.v_head_dim, 0);
    result.score_magnitude.assign(rows, 0);
  }
  for (const AttentionSequence& s : sequences) {
    for (int64_t h = 0; h < params.heads; ++h) {
      for (int64_t i = 0; i < s.q_len; ++i) attend(problem, s, h, i, result);
    }
  }
  return result;
}

}  // namespace tilewright::reference
