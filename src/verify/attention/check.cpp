#include "verify/attention/check.h"

#include "formats/minifloat.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "verify/attention/fp8_check.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

std::size_t row_begin(const Strides& s, std::int64_t batch, std::int64_t row, std::int64_t head) {
  return static_cast<std::size_t>(batch * s.batch + row * s.row + head * s.head);
}

void append_row(std::vector<double>& to, const FormatSpec& format,
                std::span<const std::uint16_t> row) {
  for (const std::uint16_t code : row) to.push_back(decode(format, code));
}

// All keys and values that a group of rows may see, one after the other.
struct KeyValues {
  std::vector<double> k, v;
  double value_max = 0;
};

KeyValues read_keys(const AttentionData& data, std::int64_t batch, std::int64_t kv_head) {
  const AttentionProblem& p = data.problem;
  const FormatSpec& format = attention_format(p.dtype);
  const auto dim = static_cast<std::size_t>(p.head_dim);
  const auto v_dim = static_cast<std::size_t>(value_dim(p));
  KeyValues out;
  const AttentionSequence sequence = find_sequence(data, batch);
  for (std::int64_t i = 0; i < sequence.kv_len; ++i) {
    const std::int64_t j = sequence.kv_first + i;
    const std::span<const std::uint16_t> k(data.k), v(data.v);
    append_row(out.k, format, k.subspan(row_begin(p.k_strides, batch, j, kv_head), dim));
    append_row(out.v, format, v.subspan(row_begin(p.v_strides, batch, j, kv_head), v_dim));
  }
  for (const double x : out.v) out.value_max = std::max(out.value_max, std::abs(x));
  return out;
}

void attend_row(const AttentionData& data, const KeyValues& keys, ExactRow& row) {
  const AttentionProblem& p = data.problem;
  const auto dim = static_cast<std::size_t>(p.head_dim);
  const VisibleKeys visible = visible_keys(data, row);
  std::vector<double> q;
  const std::size_t q_begin = row_begin(p.q_strides, row.batch, row.first + row.row, row.head);
  append_row(q, attention_format(p.dtype), std::span(data.q).subspan(q_begin, dim));
  const auto v_dim = static_cast<std::size_t>(value_dim(p));
  const auto seen = [&](std::span<const double> all, std::size_t columns) {
    return all.subspan(static_cast<std::size_t>(visible.begin) * columns,
                       static_cast<std::size_t>(visible.count()) * columns);
  };
  const reference::AttentionResult exact =
      attend_query(data, row, q, seen(keys.k, dim), seen(keys.v, v_dim));
  const bool is_half = p.dtype == DType::kF16;
  const double roundoff = is_half ? reference::kRoundoffFp16 : reference::kRoundoffBf16;
  const reference::AttentionRow bound = {.head_dim = p.head_dim,
                                         .num_keys = visible.count(),
                                         .score_magnitude = exact.score_magnitude[0],
                                         .row_max = exact.row_max[0],
                                         .softcap = p.softcap,
                                         .value_max = keys.value_max,
                                         .p_roundoff = roundoff,
                                         .p_subnormal = is_half ? 0x1p-24 : 0,
                                         .out_roundoff = roundoff};
  row.out = exact.out;
  row.out_magnitude = exact.out_magnitude;
  for (std::size_t c = 0; c < v_dim; ++c)
    row.out_bound.push_back(
        reference::attention_out_bound(bound, exact.out[c], exact.out_magnitude[c]));
  row.lse = exact.lse[0];
  row.lse_bound = reference::attention_lse_bound(bound, row.lse);
}

// What NaN and infinities among the operands make of a result, where it is made of them too.
bool is_same_special(double x, double exact) {
  return std::isnan(exact) ? std::isnan(x) : std::isinf(exact) && x == exact;
}

std::size_t lse_index(const AttentionProblem& p, const ExactRow& row) {
  return static_cast<std::size_t>(p.is_packed
                                      ? row.head * p.total_q + row.first + row.row
                                      : (row.batch * p.heads + row.head) * p.q_len + row.row);
}

}  // namespace

std::vector<ExactRow> exact_rows(const AttentionData& data, std::int64_t count,
                                 std::uint64_t seed) {
  std::vector<ExactRow> rows = choose_rows(data, count, seed);
  attend_rows(
      data, rows,
      [&](std::int64_t batch, std::int64_t kv_head) { return read_keys(data, batch, kv_head); },
      [&](const KeyValues& keys, ExactRow& row) { attend_row(data, keys, row); });
  return rows;
}

AttentionErrors compare_rows(const AttentionProblem& p, std::span<const ExactRow> rows,
                             std::span<const std::uint16_t> out, std::span<const float> lse) {
  AttentionErrors errors;
  double error_norm = 0, norm = 0, dot = 0, out_norm = 0, bounds = 0, magnitudes = 0;
  for (const ExactRow& row : rows) {
    const std::size_t begin = row_begin(p.out_strides, row.batch, row.first + row.row, row.head);
    for (std::size_t c = 0; c < row.out.size(); ++c) {
      const double x = decode(attention_format(p.dtype), out[begin + c]), exact = row.out[c];
      const double error = std::abs(x - exact);
      if (is_same_special(x, exact)) continue;
      const double bound = row.out_bound[c];
      bounds += bound;
      magnitudes += row.out_magnitude[c];
      // A NaN is no small error.
      errors.max_abs = std::max(errors.max_abs, std::isnan(error) ? INFINITY : error);
      if (!(error <= bound * errors.worst))
        errors.worst = std::isnan(error) || bound == 0 ? INFINITY : error / bound;
      error_norm += error * error;
      norm += exact * exact;
      dot += x * exact;
      out_norm += x * x;
    }
    if (!lse.empty()) {
      const std::size_t at = lse_index(p, row);
      const auto got = static_cast<double>(lse[at]);
      if (is_same_special(got, row.lse)) continue;
      // Maxima drop what is no number, as in FlashAttention: such a row's lse is that of no keys.
      if (std::isnan(row.lse) && got == -INFINITY) continue;
      const bool is_empty = std::isinf(row.lse);
      const double error = is_empty ? INFINITY : std::abs(got - row.lse);
      errors.max_lse = std::max(errors.max_lse, std::isnan(error) ? INFINITY : error);
      const double bound = is_empty ? 1 : row.lse_bound;
      errors.worst_lse =
          std::max(errors.worst_lse, errors.max_lse == INFINITY ? INFINITY : error / bound);
    }
  }
  errors.rows = static_cast<std::int64_t>(rows.size());
  errors.is_decided = magnitudes == 0 || bounds < magnitudes;
  const double elems =
      std::max(1.0, static_cast<double>(rows.size()) * static_cast<double>(value_dim(p)));
  errors.rmse = std::sqrt(error_norm / elems);
  errors.relative_rms = norm > 0 ? std::sqrt(error_norm / norm) : std::sqrt(error_norm);
  errors.cosine = norm > 0 && out_norm > 0 ? dot / std::sqrt(norm * out_norm) : 1;
  return errors;
}

AttentionErrors check_attention(const AttentionData& data, const AttentionPlan& plan,
                                std::span<const ExactRow> exact, std::span<const std::uint16_t> out,
                                std::span<const float> lse, bool is_rotated) {
  AttentionErrors errors = compare_rows(data.problem, exact, out, lse);
  const std::optional<Fp8Computation> fp8 = fp8_computation(data, plan, is_rotated);
  if (!fp8) return errors;
  const AttentionErrors of_codes =
      compare_rows(data.problem, exact_fp8_rows(data, *fp8, exact), out, lse);
  errors.worst = of_codes.worst;
  errors.is_decided = of_codes.is_decided;
  errors.max_lse = of_codes.max_lse;
  errors.worst_lse = of_codes.worst_lse;
  return errors;
}

nlohmann::json to_json(const AttentionErrors& e) {
  // JSON has no infinity.
  const auto finite = [](double x) { return std::isfinite(x) ? x : 1e300; };
  return {{"rows", e.rows},
          {"max_abs", finite(e.max_abs)},
          {"relative_rms", finite(e.relative_rms)},
          {"rmse", finite(e.rmse)},
          {"cosine", std::isfinite(e.cosine) ? e.cosine : 0.0},
          {"worst_of_bound", finite(e.worst)},
          {"max_lse", finite(e.max_lse)},
          {"worst_lse_of_bound", finite(e.worst_lse)},
          {"decided", e.is_decided},
          {"ok", e.is_ok()}};
}

}  // namespace tilewright::cli
