#include "verify/attention/fp8_check.h"

#include "formats/minifloat.h"
#include "reference/attention/fp8_bound.h"
#include "reference/attention/prepare.h"
#include "reference/error_bound.h"
#include "verify/attention/fp8.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright::cli {

namespace {

constexpr float kLeastAmax = reference::AttentionPrepareParams{}.least_amax;

enum class Operand { kQ, kK, kV };

// No factor spans more than this, but that of a tensor: of one sequence, a head of keys or values,
// or the heads of queries that see it.
struct OperandPart {
  reference::AttentionPrepareParams params;
  std::vector<float> x;  // [rows, heads, head_dim]
};

OperandPart read_part(const AttentionData& data, const AttentionPrepareProblem& prepare,
                      std::span<const float> signs, Operand operand, std::int64_t batch,
                      std::int64_t kv_head) {
  const AttentionProblem& p = data.problem;
  const bool is_q = operand == Operand::kQ, is_v = operand == Operand::kV;
  const AttentionSequence sequence = find_sequence(data, batch);
  OperandPart part;
  part.params = {.batch = 1,
                 .heads = is_q ? p.heads / p.kv_heads : 1,
                 .kv_heads = 1,
                 .rows = is_q ? sequence.q_len : sequence.kv_len,
                 .head_dim = p.head_dim,
                 .scales = prepare.scales,
                 .block_rows = is_q ? kFp8QueryBlock : kFp8KeyBlock,
                 .has_pow2_scales = is_v && prepare.scales == ScaleSharing::kBlock,
                 .is_rotated = prepare.is_rotated && !is_v,
                 .signs = signs};
  const std::vector<std::uint16_t>& codes = is_q ? data.q : is_v ? data.v : data.k;
  const Strides& s = is_q ? p.q_strides : is_v ? p.v_strides : p.k_strides;
  const std::int64_t first = is_q ? sequence.q_first : sequence.kv_first;
  const FormatSpec format = attention_format(p.dtype);
  const std::int64_t heads = part.params.heads;
  part.x.reserve(static_cast<std::size_t>(part.params.rows * heads * p.head_dim));
  for (std::int64_t row = first; row < first + part.params.rows; ++row)
    for (std::int64_t head = kv_head * heads; head < (kv_head + 1) * heads; ++head) {
      const std::int64_t begin = batch * s.batch + row * s.row + head * s.head;
      for (std::int64_t c = begin; c < begin + p.head_dim; ++c)
        part.x.push_back(static_cast<float>(decode(format, codes[static_cast<std::size_t>(c)])));
    }
  return part;
}

// A part as codes.
class RoundedPart {
 public:
  RoundedPart(OperandPart part, float least_amax) : params_(part.params) {
    params_.least_amax = least_amax;
    operand_ = reference::prepare_attention_operand(params_, part.x);
  }

  std::int64_t rows() const { return params_.rows; }
  /// Appends the codes of a row as numbers; `head` counts from the part's first.
  void append(std::vector<double>& to, std::int64_t row, std::int64_t head) const {
    const auto begin = static_cast<std::size_t>((row * params_.heads + head) * params_.head_dim);
    for (std::size_t c = 0; c < static_cast<std::size_t>(params_.head_dim); ++c)
      to.push_back(decode(kE4m3, operand_.codes[begin + c]));
  }
  double factor(std::int64_t row, std::int64_t head) const {
    return reference::attention_descale(params_, operand_, 0, row, head);
  }

 private:
  reference::AttentionPrepareParams params_;
  reference::Fp8Operand operand_;
};

// Of a sequence and a head of keys: its queries; codes of keys, numbers of both, factors of keys.
struct RoundedKeys {
  RoundedPart q;
  std::vector<double> codes = {}, k = {}, v = {}, factors = {};
  double value_max = 0;
};

class RoundedOperands {
 public:
  RoundedOperands(const AttentionData& data, const Fp8Computation& computation)
      : data_(data),
        computation_(computation),
        signs_(attention_signs(computation.prepare.sign_seed, data.problem.head_dim)) {
    if (computation.prepare.scales == ScaleSharing::kTensor) find_amax();
  }

  RoundedKeys read(std::int64_t batch, std::int64_t kv_head) const {
    const auto dim = static_cast<std::size_t>(data_.problem.head_dim);
    const RoundedPart k = round(Operand::kK, batch, kv_head);
    const RoundedPart v = round(Operand::kV, batch, kv_head);
    RoundedKeys keys = {.q = round(Operand::kQ, batch, kv_head)};
    for (std::vector<double>* const numbers : {&keys.codes, &keys.k, &keys.v})
      numbers->reserve(static_cast<std::size_t>(k.rows()) * dim);
    double largest_code = 0, largest_factor = 0;
    for (std::int64_t row = 0; row < k.rows(); ++row) {
      k.append(keys.codes, row, 0);
      v.append(keys.v, row, 0);
      keys.factors.push_back(k.factor(row, 0));
      const double v_factor = v.factor(row, 0);
      largest_factor = std::max(largest_factor, v_factor);
      for (std::size_t at = keys.v.size() - dim; at < keys.v.size(); ++at) {
        largest_code = std::max(largest_code, std::abs(keys.v[at]));
        keys.k.push_back(keys.codes[at] * keys.factors.back());
        keys.v[at] *= v_factor;
      }
    }
    keys.value_max = largest_code * largest_factor;
    return keys;
  }

  void attend(const RoundedKeys& keys, ExactRow& row) const {
    const AttentionProblem& p = data_.problem;
    const auto dim = static_cast<std::size_t>(p.head_dim);
    const VisibleKeys visible = visible_keys(data_, row);
    const auto begin = static_cast<std::size_t>(visible.begin);
    const auto count = static_cast<std::size_t>(visible.count());
    std::vector<double> codes, factors;
    const std::int64_t head = row.head % (p.heads / p.kv_heads);
    keys.q.append(codes, row.row, head);
    const double q_factor = keys.q.factor(row.row, head);
    for (const double k_factor : std::span(keys.factors).subspan(begin, count))
      factors.push_back(*p.scale * q_factor * k_factor);
    std::vector<double> q = codes;
    for (double& x : q) x *= q_factor;
    const auto v = std::span(keys.v).subspan(begin * dim, count * dim);
    const reference::AttentionResult exact =
        attend_query(data_, row, q, std::span(keys.k).subspan(begin * dim, count * dim), v);
    const reference::AttentionFp8Losses losses = reference::attention_fp8_losses(
        {.q = codes,
         .k = std::span(keys.codes).subspan(begin * dim, count * dim),
         .factors = factors,
         .v = v,
         .softcap = p.softcap,
         .log_sum = exact.lse_with_sink[0],
         .sum_keys = sum_keys(visible.count()),
         .adds_all = computation_.flush_tiles == 0});
    set_results(row, exact, losses, bound_of(row, exact, losses, keys.value_max));
  }

 private:
  OperandPart read_part(Operand operand, std::int64_t batch, std::int64_t kv_head) const {
    return cli::read_part(data_, computation_.prepare, signs_, operand, batch, kv_head);
  }
  RoundedPart round(Operand operand, std::int64_t batch, std::int64_t kv_head) const {
    return {read_part(operand, batch, kv_head), amax_[static_cast<std::size_t>(operand)]};
  }
  // Of all parts: those of a tensor share a factor.
  void find_amax() {
    const AttentionProblem& p = data_.problem;
    for (const Operand operand : {Operand::kQ, Operand::kK, Operand::kV}) {
      float& most = amax_[static_cast<std::size_t>(operand)];
      for (std::int64_t part = 0; part < p.batch * p.kv_heads; ++part) {
        const OperandPart read = read_part(operand, part / p.kv_heads, part % p.kv_heads);
        const float amax = reference::attention_amax(read.params, read.x)[0];
        if (std::isnan(amax) || amax > most) most = amax;
      }
    }
  }

  // Tiles that keys lie in may begin before them and end behind them.
  std::int64_t num_tiles(std::int64_t keys) const { return keys / computation_.tile_keys + 2; }
  std::int64_t sum_keys(std::int64_t keys) const {
    const std::int64_t all = num_tiles(keys), flush = computation_.flush_tiles;
    return (flush > 0 ? std::min(all, flush) : all) * computation_.tile_keys;
  }

  reference::AttentionFp8Row bound_of(const ExactRow& row, const reference::AttentionResult& exact,
                                      const reference::AttentionFp8Losses& losses,
                                      double value_max) const {
    const AttentionProblem& p = data_.problem;
    const std::int64_t keys = visible_keys(data_, row).count();
    const double sink = p.has_sink ? std::abs(data_.sink[static_cast<std::size_t>(row.head)]) : 0;
    const bool is_half = p.dtype == DType::kF16;
    return {.num_keys = keys,
            .num_tiles = num_tiles(keys),
            .score_magnitude = exact.score_magnitude[0],
            .score_loss = losses.score,
            .sink = std::isfinite(sink) ? sink : 0,
            .softcap = p.softcap,
            .top_share = keys > 0 ? std::exp(exact.row_max[0] - exact.lse_with_sink[0]) : 0,
            .value_max = value_max,
            .out_roundoff = is_half ? reference::kRoundoffFp16 : reference::kRoundoffBf16,
            .out_subnormal = is_half ? 0x1p-24 : 0};
  }
  static void set_results(ExactRow& row, const reference::AttentionResult& exact,
                          const reference::AttentionFp8Losses& losses,
                          const reference::AttentionFp8Row& bound) {
    row.out = exact.out;
    row.out_magnitude = exact.out_magnitude;
    for (std::size_t c = 0; c < row.out.size(); ++c)
      row.out_bound.push_back(reference::attention_fp8_out_bound(
          bound, losses.values[c], exact.out[c], exact.out_magnitude[c]));
    row.lse = exact.lse[0];
    row.lse_bound = reference::attention_fp8_lse_bound(bound, row.lse);
  }

  const AttentionData& data_;
  const Fp8Computation& computation_;
  std::vector<float> signs_;
  std::array<float, 3> amax_ = {kLeastAmax, kLeastAmax, kLeastAmax};
};

}  // namespace

std::optional<Fp8Computation> fp8_computation(const AttentionData& data, const AttentionPlan& plan,
                                              bool is_rotated) {
  if (plan.accumulation == Fp8Accumulation::kAuto) return std::nullopt;
  const std::optional<AttentionPrepareProblem> own = prepare_problem(plan);
  return Fp8Computation{
      .prepare = own ? *own : prepare_problem(data.problem, plan.problem.fp8, is_rotated),
      .tile_keys = plan.tile_keys,
      .flush_tiles = plan.accumulation_keys / plan.tile_keys};
}

std::vector<ExactRow> exact_fp8_rows(const AttentionData& data, const Fp8Computation& computation,
                                     std::span<const ExactRow> of) {
  std::vector<ExactRow> rows;
  for (const ExactRow& row : of)
    rows.push_back({.batch = row.batch, .head = row.head, .row = row.row, .first = row.first});
  const RoundedOperands operands(data, computation);
  attend_rows(
      data, rows,
      [&](std::int64_t batch, std::int64_t kv_head) { return operands.read(batch, kv_head); },
      [&](const RoundedKeys& keys, ExactRow& row) { operands.attend(keys, row); });
  return rows;
}

}  // namespace tilewright::cli
