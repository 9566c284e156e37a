#include "cli/attention_fp8_check.h"

#include "cli/attention_fp8.h"
#include "formats/minifloat.h"
#include "ops/attention_fp8.h"
#include "ops/attention_prepare.h"
#include "ops/attention_problem.h"
#include "reference/attention_fp8_bound.h"
#include "reference/attention_prepare.h"
#include "reference/error_bound.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cli {

namespace {

// One of q, k, v as codes.
class RoundedOperand {
 public:
  RoundedOperand(const AttentionData& data, const AttentionPrepareProblem& prepare,
                 std::span<const float> signs, int i)
      : is_packed_(prepare.is_packed) {
    const AttentionProblem& p = data.problem;
    const bool is_q = i == 0;
    params_ = {.batch = p.batch,
               .heads = is_q ? p.heads : p.kv_heads,
               .kv_heads = p.kv_heads,
               .rows = is_q ? p.q_len : p.kv_len,
               .head_dim = p.head_dim,
               .cu_seqlens = !is_packed_ ? std::span<const std::int32_t>()
                             : is_q      ? std::span(data.cu_q)
                                         : std::span(data.cu_kv),
               .scales = static_cast<reference::Fp8ScaleKind>(prepare.scales),
               .block_rows = is_q ? kernels::kQueryScaleBlock : kernels::kKeyScaleBlock,
               .has_pow2_scales = i == 2 && prepare.scales == Fp8ScaleKind::kBlock,
               .is_rotated = prepare.is_rotated && i < 2,
               .signs = signs};
    operand_ =
        reference::prepare_attention_operand(params_, is_q     ? gather(p, data.q, p.q_strides)
                                                      : i == 1 ? gather(p, data.k, p.k_strides)
                                                               : gather(p, data.v, p.v_strides));
  }

  /// Appends the codes of a row as numbers; `first` is that of its sequence if packed.
  void append(std::vector<double>& to, std::int64_t batch, std::int64_t first, std::int64_t row,
              std::int64_t head) const {
    const std::int64_t line = is_packed_ ? first + row : batch * params_.rows + row;
    const auto begin = static_cast<std::size_t>((line * params_.heads + head) * params_.head_dim);
    for (std::size_t c = 0; c < static_cast<std::size_t>(params_.head_dim); ++c)
      to.push_back(decode(kE4m3, operand_.codes[begin + c]));
  }
  double factor(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return reference::attention_descale(params_, operand_, batch, row, head);
  }

 private:
  std::vector<float> gather(const AttentionProblem& p, const std::vector<std::uint16_t>& codes,
                            const AttentionProblem::Strides& s) const {
    const std::int64_t batch = is_packed_ ? 1 : params_.batch;
    const std::int64_t rows = is_packed_ ? params_.cu_seqlens.back() : params_.rows;
    std::vector<float> x;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t head = 0; head < params_.heads; ++head)
          for (std::int64_t c = 0; c < params_.head_dim; ++c)
            x.push_back(static_cast<float>(decode(
                attention_format(p.dtype),
                codes[static_cast<std::size_t>(b * s.batch + row * s.row + head * s.head + c)])));
    return x;
  }

  bool is_packed_;
  reference::AttentionPrepareParams params_;
  reference::Fp8Operand operand_;
};

// Of a sequence and a head: codes of keys, numbers of both, factors of keys.
struct RoundedKeys {
  std::vector<double> codes, k, v, factors;
  double value_max = 0;
};

class RoundedOperands {
 public:
  RoundedOperands(const AttentionData& data, const Fp8Computation& computation)
      : data_(data),
        computation_(computation),
        signs_(attention_signs(computation.prepare.sign_seed, data.problem.head_dim)),
        q_(data, computation.prepare, signs_, 0),
        k_(data, computation.prepare, signs_, 1),
        v_(data, computation.prepare, signs_, 2) {}

  RoundedKeys read(std::int64_t batch, std::int64_t kv_head) const {
    const AttentionSequence sequence = find_sequence(data_, batch);
    const auto dim = static_cast<std::size_t>(data_.problem.head_dim);
    RoundedKeys keys;
    double largest_code = 0, largest_factor = 0;
    for (std::int64_t row = 0; row < sequence.kv_len; ++row) {
      k_.append(keys.codes, batch, sequence.kv_first, row, kv_head);
      v_.append(keys.v, batch, sequence.kv_first, row, kv_head);
      keys.factors.push_back(k_.factor(batch, row, kv_head));
      const double v_factor = v_.factor(batch, row, kv_head);
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
    q_.append(codes, row.batch, row.first, row.row, row.head);
    const double q_factor = q_.factor(row.batch, row.row, row.head);
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
    for (std::size_t c = 0; c < row.out.size(); ++c)
      row.out_bound.push_back(reference::attention_fp8_out_bound(
          bound, losses.values[c], exact.out[c], exact.out_magnitude[c]));
    row.lse = exact.lse[0];
    row.lse_bound = reference::attention_fp8_lse_bound(bound, row.lse);
  }

  const AttentionData& data_;
  const Fp8Computation& computation_;
  std::vector<float> signs_;
  RoundedOperand q_, k_, v_;
};

}  // namespace

std::optional<Fp8Computation> fp8_computation(const AttentionData& data, const AttentionPlan& plan,
                                              bool is_rotated) {
  if (plan.accumulation == Fp8Accumulation::kAuto) return std::nullopt;
  const ops::AttentionKernel& kernel = ops::find_attention_kernel(plan.kernel);
  const ops::AttentionFp8 kind = kernel.fp8;
  const AttentionProblem& p = plan.problem;
  const ops::Fp8Choice choice = ops::choose_fp8(kernel, ops::fp8_problem(kind, p));
  const bool has_two_levels = choice.accumulation == Fp8Accumulation::kTwoLevel;
  return Fp8Computation{.prepare = ops::attention_is_e4m3(p)
                                       ? ops::prepare_problem_of(data.problem, p.fp8, is_rotated)
                                       : ops::fp8_prepare_problem(kind, p),
                        .tile_keys = choice.variant->keys,
                        .flush_tiles = has_two_levels ? choice.flush_tiles : 0};
}

std::vector<ExactRow> exact_fp8_rows(const AttentionData& data, const Fp8Computation& computation,
                                     std::int64_t count, std::uint64_t seed) {
  std::vector<ExactRow> rows = choose_rows(data, count, seed);
  const RoundedOperands operands(data, computation);
  attend_rows(
      data, rows,
      [&](std::int64_t batch, std::int64_t kv_head) { return operands.read(batch, kv_head); },
      [&](const RoundedKeys& keys, ExactRow& row) { operands.attend(keys, row); });
  return rows;
}

}  // namespace tilewright::cli
