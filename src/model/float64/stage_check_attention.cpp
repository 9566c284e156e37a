// StageCheck: queries, the indexer's choice, attention and its projection.
#include "model/float64/stage_check.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "reference/sparse_attention/indexer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::model {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The exponent of the last bit of a number that is a sum of few powers of two.
int last_bit(double x) {
  int exponent = 0;
  const double significand = std::frexp(std::abs(x), &exponent);
  const auto bits = static_cast<std::uint64_t>(std::ldexp(significand, 53));
  return exponent - 53 + std::countr_zero(bits);
}

// q . k of narrow codes. Tensor cores add e4m3 products 32 at a time and cut what lies 13 bits
// below the largest of them and the sum. Products of FP4 codes are multiples of a power of two: a
// sum of at most 2^13 of those loses nothing. Else every step cuts 33 terms.
void add_code_products(const double* q, const double* k, std::int64_t dim, double& dot,
                       double& error) {
  int last = std::numeric_limits<int>::max();
  double sum = 0, size = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const double product = q[i] * k[i];
    sum += product;
    size += std::abs(product);
    if (product != 0) last = std::min(last, last_bit(product));
  }
  dot = sum;
  error = kUnit * std::abs(sum);
  if (size == 0 || size <= std::ldexp(1.0, 13 + last)) return;
  error += std::ceil(static_cast<double>(dim) / 32) * 33 * 0x1p-13 * size;
}

}  // namespace

void StageCheck::check_latent(const Stage& stage) {
  compare(stage,
          by_rows(rows_, stage.shape[0],
                  [&](std::int64_t first, std::int64_t last) {
                    const auto x = Rows::part(now("attn_in"), config_.hidden, first, last);
                    return rms_norm({last - first, config_.q_rank, config_.norm_eps},
                                    linear(exactly(x), weights().wq_a, last - first),
                                    weights().q_norm);
                  }),
          reference::kRoundoffBf16);
}

// The projection stores bf16; norm of every head and rotation round once more.
void StageCheck::check_query(const Stage& stage) {
  const std::int64_t heads = config_.heads, dim = config_.head_dim;
  const Doubles frequencies = layer_frequencies(config_, kind());
  const auto tokens = positions();
  compare(stage,
          by_rows(rows_, stage.shape[0],
                  [&](std::int64_t first, std::int64_t last) {
                    const std::int64_t rows = last - first;
                    const auto qr = Rows::part(now("qr"), config_.q_rank, first, last);
                    Bounded q = round_to_bf16(linear(exactly(qr), weights().wq_b, rows));
                    q = rms_norm({rows * heads, dim, config_.norm_eps}, q);
                    return rope({rows, heads, dim, config_.rope_dim}, q,
                                Rows::part(tokens, 1, first, last), frequencies);
                  }),
          reference::kRoundoffBf16);
}

void StageCheck::check_index_weights(const Stage& stage) {
  Bounded w = linear(exactly(now("attn_in")), weights().indexer.weights_proj, stage.shape[0]);
  const double factor =
      reference::indexer_weight_factor({stage.shape[0], config_.index_heads, config_.index_dim});
  for (std::size_t i = 0; i < w.value.size(); ++i) {
    w.value[i] *= factor;
    w.error[i] = factor * w.error[i] + 2 * kUnit * std::abs(w.value[i]);
  }
  compare(stage, w, kUnit);
}

// sum_h relu(q_h . k) w_h: a chain of additions over the heads.
void StageCheck::check_index_scores(const Stage& stage) {
  const std::int64_t heads = config_.index_heads, dim = config_.index_dim;
  const std::int64_t entries = stage.shape[1];
  const bool has_queries = now_.contains("idx_q");  // those of FP8 have their scale in the weights
  scores_ = {};
  if (!has_queries) return;
  const Doubles &q = now("idx_q"), &w = now("idx_w"), &keys = memory().index_keys;
  const auto one = [&](std::int64_t t, std::int64_t j, Bounded& to) {
    if (j >= reference::visible_entries(numbers_[static_cast<std::size_t>(t)], 4)) {
      to.value.push_back(-kInfinity);
      to.error.push_back(0);
      return;
    }
    double score = 0, error = 0, size = 0;
    for (std::int64_t h = 0; h < heads; ++h) {
      double dot = 0, off = 0;
      add_code_products(&q[static_cast<std::size_t>((t * heads + h) * dim)],
                        &keys[static_cast<std::size_t>(j * dim)], dim, dot, off);
      const double weight = w[static_cast<std::size_t>(t * heads + h)];
      score += std::max(dot, 0.0) * weight;
      size += std::max(dot, 0.0) * std::abs(weight);
      error += off * std::abs(weight);
    }
    to.value.push_back(score);
    to.error.push_back(error + (static_cast<double>(heads) + 4) * kUnit * (size + error));
  };
  scores_ = by_rows(rows_, stage.shape[0], [&](std::int64_t first, std::int64_t last) {
    Bounded block;
    for (std::int64_t t = first; t < last; ++t)
      for (std::int64_t j = 0; j < entries; ++j) one(t, j, block);
    return block;
  });
  compare(stage, scores_, kUnit);
}

void StageCheck::check_selected(const Stage& stage) {
  StageVerdict& to = verdict(stage.name);
  to.is_code = true;
  const std::int64_t topk = stage.shape[1], rows = stage.shape[0];
  const auto entries = static_cast<std::int64_t>(scores_.value.size()) / rows;
  for (std::int64_t t = 0; t < rows; ++t) {
    ++to.rows;
    to.elems += topk;
    std::vector<std::int64_t> chosen;
    for (std::int64_t i = 0; i < topk; ++i) {
      const double id = stage.values[static_cast<std::size_t>(t * topk + i)];
      if (id >= 0) chosen.push_back(static_cast<std::int64_t>(id));
    }
    const std::int64_t visible =
        reference::visible_entries(numbers_[static_cast<std::size_t>(t)], 4);
    const auto wanted = static_cast<std::size_t>(std::min(topk, visible));
    if (chosen.size() != wanted || (wanted > 0 && chosen.back() >= visible)) {
      ++to.beyond_rows;
      note(to, stage, t,
           fmt::format("{} entries up to {}, expected {} of {}", chosen.size(),
                       chosen.empty() ? -1 : chosen.back(), wanted, visible));
      continue;
    }
    if (entries > 0) check_choice(stage, t, part(scores_, t * entries, entries), chosen);
  }
}

void StageCheck::attend() {
  const auto tokens = positions();
  AttendedRows rows = {.kv = memory().kv, .compressed = memory().compressed};
  std::vector<std::int32_t> entries;
  if (kind() == LayerKind::kCsa) {
    const Doubles& selected = now("idx_selected");
    entries.assign(selected.begin(), selected.end());
    rows.width = config_.index_topk;
  } else if (kind() == LayerKind::kHca) {
    entries = all_entries(tokens, static_cast<std::int64_t>(kind()), rows.width);
  }
  rows.entries = entries;
  rows.has_magnitudes = true;
  attended_ = attend64(config_, rows_, weights().sink, now("q"), tokens, rows);
}

namespace {

reference::AttentionRow attention_row(const Config& config,
                                      const reference::SparseAttentionResult& result,
                                      std::size_t row) {
  return {.head_dim = config.head_dim,
          .num_keys = config.window + config.index_topk,
          .score_magnitude = result.score_magnitude[row],
          .row_max = result.row_max[row],
          .p_roundoff = reference::kRoundoffBf16,
          .out_roundoff = reference::kRoundoffBf16};
}

}  // namespace

void StageCheck::check_lse(const Stage& stage) {
  attend();
  Bounded expected = exactly(attended_.lse);
  for (std::size_t i = 0; i < expected.value.size(); ++i)
    if (std::isfinite(expected.value[i]))
      expected.error[i] =
          reference::attention_lse_bound(attention_row(config_, attended_, i), expected.value[i]);
  compare(stage, expected, kUnit);
}

void StageCheck::check_attended(const Stage& stage) {
  Bounded expected = exactly(attended_.out);
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  for (std::size_t i = 0; i < expected.value.size(); ++i)
    expected.error[i] = reference::attention_out_bound(
        attention_row(config_, attended_, i / dim), expected.value[i], attended_.out_magnitude[i]);
  compare(stage, expected, kUnit);
}

// The last numbers of the stored output turned back.
void StageCheck::check_turned(const Stage& stage) {
  const std::int64_t heads = config_.heads, dim = config_.head_dim, turned = config_.rope_dim;
  const std::int64_t rows = stage.shape[0];
  Doubles last;
  for (std::int64_t r = 0; r < rows * heads; ++r) {
    const auto row =
        Rows::part(now("attn_o"), dim, r, r + 1).last(static_cast<std::size_t>(turned));
    last.insert(last.end(), row.begin(), row.end());
  }
  compare(stage,
          rope({rows, heads, turned, turned, reference::RopeDirection::kInverse}, exactly(last),
               positions(), layer_frequencies(config_, kind())),
          reference::kRoundoffBf16);
}

// wo_a of every group, stored as bf16, then wo_b.
void StageCheck::check_projected(const Stage& stage) {
  const std::int64_t heads = config_.heads, dim = config_.head_dim, turned = config_.rope_dim;
  const std::int64_t groups = config_.o_groups, width = heads / groups * dim;
  Doubles o = now("attn_o");
  const Doubles& last = now("attn_o_inv_rope");
  for (std::int64_t r = 0; r < stage.shape[0] * heads; ++r)
    std::copy_n(last.begin() + r * turned, turned, o.begin() + (r + 1) * dim - turned);
  compare(
      stage,
      by_rows(rows_, stage.shape[0],
              [&](std::int64_t first, std::int64_t end) {
                Bounded z;
                for (std::int64_t t = first; t < end; ++t)
                  for (std::int64_t g = 0; g < groups; ++g)
                    append(z,
                           linear(exactly(Rows::part(o, width, t * groups + g, t * groups + g + 1)),
                                  Rows::part(weights().wo_a, width, g * config_.o_rank,
                                             (g + 1) * config_.o_rank),
                                  1));
                return linear(round_to_bf16(z), weights().wo_b, end - first);
              }),
      kUnit);
}

}  // namespace tilewright::model
