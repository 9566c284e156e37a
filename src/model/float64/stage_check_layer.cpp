// StageCheck: streams, their mix, experts and the head.
#include "base/error.h"
#include "model/float64/stage_check.h"
#include "reference/error_bound.h"
#include "reference/model/hyper_connection.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::model {

namespace {

constexpr std::int64_t kStreams = 4, kMix = 24, kComb = 16;
using Square = std::array<double, kComb>;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// e of a logit moves a sigmoid by e / 4 at most; expf, the sum and the division lose 8 u.
void add_sigmoid(Bounded& to, double logit, double error, double factor, double eps) {
  const double value = factor * sigmoid(logit) + eps;
  to.value.push_back(value);
  to.error.push_back(factor * error / 4 + 8 * kUnit * value);
}

Square balanced(Square c, const Config& config) {
  reference::sinkhorn(c, kStreams, config.sinkhorn_iters, config.hyper_eps);
  return c;
}

// What every logit's error does to every entry, one logit at a time: errors are so small (1e-5)
// that their products do not count. Every pass of rows and columns loses 16 u, and passes after it
// do not enlarge that (Sinkhorn's map is a contraction).
void add_balanced(Bounded& to, const Square& logits, const Square& errors, const Config& config) {
  const Square center = balanced(logits, config);
  Square error = {};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    Square up = logits, down = logits;
    up[i] += errors[i];
    down[i] -= errors[i];
    up = balanced(up, config);
    down = balanced(down, config);
    for (std::size_t j = 0; j < error.size(); ++j)
      error[j] += std::max(std::abs(up[j] - center[j]), std::abs(down[j] - center[j]));
  }
  const double rounding = 16 * kUnit * static_cast<double>(config.sinkhorn_iters);
  for (std::size_t j = 0; j < error.size(); ++j) {
    to.value.push_back(center[j]);
    to.error.push_back(error[j] + rounding * center[j]);
  }
}

}  // namespace

void StageCheck::begin_streams() {
  require(numbers_.back() < std::ssize(tokens_), ErrorKind::kInvalidArgument,
          "stage check: stages of position {}, but it was given {} tokens only", numbers_.back(),
          tokens_.size());
  stored_streams_.clear();
  for (const std::int32_t position : positions()) {
    const auto row = Rows::part(embed_, config_.hidden, tokens_[static_cast<std::size_t>(position)],
                                tokens_[static_cast<std::size_t>(position)] + 1);
    for (std::int64_t i = 0; i < kStreams; ++i)
      stored_streams_.insert(stored_streams_.end(), row.begin(), row.end());
  }
}

// m = (vec(x) . fn^T) rsqrt(mean(vec(x)^2) + eps), and from it s m + b. x is as it was stored, and
// fn is as exact as fp32; sums are those of a tensor core, and of slices and warps in fp32.
Bounded StageCheck::mix_logits(const Hyper64& hyper, std::int64_t rows) const {
  const auto n = static_cast<std::size_t>(kStreams * config_.hidden);
  const std::size_t outputs = hyper.base.size();
  const Doubles& x = stored_streams_;
  const double relative = (kChain + 3) * kUnit;  // of the root mean square
  const double growth = reference::tensor_core_error(static_cast<std::int64_t>(n)) + kChain * kUnit;
  return by_rows(rows_, rows, [&](std::int64_t first, std::int64_t last) {
    Bounded logits;
    for (auto t = static_cast<std::size_t>(first); t < static_cast<std::size_t>(last); ++t) {
      double squares = 0;
      for (std::size_t i = t * n; i < (t + 1) * n; ++i) squares += x[i] * x[i];
      const double rms = std::sqrt(squares / static_cast<double>(n) + config_.norm_eps);
      for (std::size_t o = 0; o < outputs; ++o) {
        double dot = 0, size = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const double product = x[t * n + i] * hyper.fn[o * n + i];
          dot += product;
          size += std::abs(product);
        }
        const double scale = hyper.scale[o < 4 ? 0 : o < 8 ? 1 : 2];
        const double m = dot / rms, logit = m * scale + hyper.base[o];
        const double error = growth * size / rms * (1 + relative) + std::abs(m) * relative;
        logits.value.push_back(logit);
        logits.error.push_back(std::abs(scale) * error +
                               2 * kUnit * (std::abs(m * scale) + std::abs(logit)));
      }
    }
    return logits;
  });
}

void StageCheck::check_mix(const Stage& stage) {
  const bool is_attn = stage.name == "attn_mix";
  if (is_attn && stage.layer == 0) begin_streams();
  const std::int64_t rows = stage.shape[0];
  const Bounded logits = mix_logits(is_attn ? weights().hc_attn : weights().hc_ffn, rows);
  const Bounded expected = by_rows(rows_, rows, [&](std::int64_t first, std::int64_t last) {
    Bounded mix;
    for (std::int64_t t = first; t < last; ++t) {
      const auto row = static_cast<std::size_t>(t * kMix);
      for (std::size_t i = 0; i < 8; ++i)
        add_sigmoid(mix, logits.value[row + i], logits.error[row + i], i < 4 ? 1 : 2,
                    i < 4 ? config_.hyper_eps : 0);
      Square values = {}, errors = {};
      std::copy_n(&logits.value[row + 8], kComb, values.begin());
      std::copy_n(&logits.error[row + 8], kComb, errors.begin());
      add_balanced(mix, values, errors, config_);
    }
    return mix;
  });
  compare(stage, expected, kUnit);
}

void StageCheck::check_head_mix(const Stage& stage) {
  const Bounded logits = mix_logits(hc_head_, stage.shape[0]);
  Bounded expected;
  for (std::size_t i = 0; i < logits.value.size(); ++i)
    add_sigmoid(expected, logits.value[i], logits.error[i], 1, config_.hyper_eps);
  compare(stage, expected, kUnit);
}

// y = sum_i pre_i x_i of the stored streams: four products and sums.
void StageCheck::check_input(const Stage& stage) {
  const std::int64_t rows = stage.shape[0], hidden = config_.hidden;
  const bool is_head = stage.name == "final_norm";
  const Doubles& mix = now(is_head ? "head_mix" : stage.name == "attn_in" ? "attn_mix" : "ffn_mix");
  const std::int64_t stride = is_head ? kStreams : kMix;
  Bounded y = exactly(Doubles(static_cast<std::size_t>(rows * hidden)));
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t c = 0; c < kStreams * hidden; ++c) {
      const auto at = static_cast<std::size_t>(t * hidden + c % hidden);
      const double product = mix[static_cast<std::size_t>(t * stride + c / hidden)] *
                             stored_streams_[static_cast<std::size_t>(t * kStreams * hidden + c)];
      y.value[at] += product;
      y.error[at] += 5 * kUnit * std::abs(product);
    }
  }
  const Doubles& norm = is_head                   ? norm_
                        : stage.name == "attn_in" ? weights().attn_norm
                                                  : weights().ffn_norm;
  compare(stage, rms_norm({rows, hidden, config_.norm_eps}, y, norm), reference::kRoundoffBf16);
}

// x'_k = post_k f + sum_j comb[j, k] x_j: five products and sums, one more if f is a sum of two.
void StageCheck::check_streams(const Stage& stage) {
  const bool is_mid = stage.name == "streams_mid";
  const Doubles& f = now(is_mid ? "attn_out" : "moe_out");
  const Doubles& mix = now(is_mid ? "attn_mix" : "ffn_mix");
  const auto hidden = static_cast<std::size_t>(config_.hidden);
  Bounded merged;
  for (std::size_t t = 0; t < static_cast<std::size_t>(stage.shape[0]); ++t) {
    const double* const weights = &mix[t * kMix];
    for (std::size_t k = 0; k < kStreams; ++k) {
      for (std::size_t c = 0; c < hidden; ++c) {
        double value = weights[4 + k] * f[t * hidden + c], size = std::abs(value);
        for (std::size_t j = 0; j < kStreams; ++j) {
          const double product =
              weights[8 + 4 * j + k] * stored_streams_[(t * kStreams + j) * hidden + c];
          value += product;
          size += std::abs(product);
        }
        merged.value.push_back(value);
        merged.error.push_back(7 * kUnit * size);
      }
    }
  }
  compare(stage, merged, reference::kRoundoffBf16);
  stored_streams_.assign(stage.values.begin(), stage.values.end());
}

// sqrt(softplus(z)) grows with z.
void StageCheck::check_router_scores(const Stage& stage) {
  const auto score = [](double z) {
    return std::sqrt(std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))));
  };
  const Bounded logits = linear(exactly(now("ffn_in")), weights().gate, stage.shape[0]);
  scores_ = {};
  for (std::size_t i = 0; i < logits.value.size(); ++i) {
    const double z = logits.value[i], e = logits.error[i], s = score(z);
    scores_.value.push_back(s);
    scores_.error.push_back(std::max(score(z + e) - s, s - score(z - e)));
  }
  compare(stage, scores_, kUnit);
}

// exp, log, square root and the sum with the bias: 32 u.
void StageCheck::check_router_ids(const Stage& stage) {
  StageVerdict& to = verdict(stage.name);
  to.is_code = true;
  const auto experts = static_cast<std::size_t>(config_.experts);
  const auto chosen_of = static_cast<std::size_t>(config_.experts_per_token);
  for (std::size_t t = 0; t < static_cast<std::size_t>(stage.shape[0]); ++t) {
    std::vector<std::int64_t> chosen;
    for (std::size_t i = 0; i < chosen_of; ++i)
      chosen.push_back(static_cast<std::int64_t>(stage.values[t * chosen_of + i]));
    ++to.rows;
    to.elems += static_cast<std::int64_t>(chosen_of);
    if (config_.is_hash_routed(layer_)) {
      const auto token = static_cast<std::size_t>(tokens_[static_cast<std::size_t>(numbers_[t])]);
      std::vector<std::int64_t> wanted(
          weights().tid2eid.begin() + static_cast<std::ptrdiff_t>(token * chosen_of),
          weights().tid2eid.begin() + static_cast<std::ptrdiff_t>((token + 1) * chosen_of));
      std::ranges::sort(wanted);
      std::ranges::sort(chosen);
      if (chosen == wanted) continue;
      ++to.beyond_rows;
      note(to, stage, static_cast<std::int64_t>(t), "another choice than the table's");
      continue;
    }
    Bounded scores =
        part(scores_, static_cast<std::int64_t>(t * experts), static_cast<std::int64_t>(experts));
    for (std::size_t e = 0; e < experts; ++e) {
      scores.error[e] += 32 * kUnit * scores.value[e];
      if (weights().bias.empty()) continue;
      scores.value[e] += weights().bias[e];
      scores.error[e] += kUnit * std::abs(scores.value[e]);
    }
    check_choice(stage, static_cast<std::int64_t>(t), scores, chosen);
  }
}

void StageCheck::check_router_weights(const Stage& stage) {
  const Doubles &scores = now("router_scores"), &ids = now("router_ids");
  const auto topk = static_cast<std::size_t>(config_.experts_per_token);
  Bounded expected;
  for (std::size_t t = 0; t < static_cast<std::size_t>(stage.shape[0]); ++t) {
    const auto score = [&](std::size_t i) {
      return scores[t * static_cast<std::size_t>(config_.experts) +
                    static_cast<std::size_t>(ids[t * topk + i])];
    };
    double sum = 0;
    for (std::size_t i = 0; i < topk; ++i) sum += score(i);
    for (std::size_t i = 0; i < topk; ++i)
      expected.value.push_back(sum > 0 ? config_.routed_scale * score(i) / sum : 0);
  }
  expected.error.assign(expected.value.size(), 0);
  compare(stage, expected, (32 + static_cast<double>(topk)) * 2 * kUnit);
}

// Of one token: h, times its weight, is stored as bf16, and so is y. Weights of an expert are
// doubles for as long as it takes: all of a layer of V4-Flash would be 51 GB.
Bounded StageCheck::expert(std::span<const double> x, std::int64_t id, double weight) const {
  const Layer64& shared = weights();
  const bool is_shared = id < 0;
  const auto times = [&](const Bounded& input, const Doubles& of_shared,
                         Matrix ExpertWeights::*matrix) {
    if (is_shared) return linear(input, of_shared, 1);
    const FfnWeights& ffn = source_->layers[static_cast<std::size_t>(layer_)].ffn;
    return linear(input, to_doubles(ffn.experts[static_cast<std::size_t>(id)].*matrix), 1);
  };
  const Bounded input = exactly(x);
  const Bounded gate = times(input, shared.shared_gate, &ExpertWeights::gate);
  const Bounded up = times(input, shared.shared_up, &ExpertWeights::up);
  const Bounded h = round_to_bf16(swiglu(gate, up, config_.swiglu_limit, weight));
  Bounded y = times(h, shared.shared_down, &ExpertWeights::down);
  if (!is_shared) return round_to_bf16(y);
  // As an expert that is routed to it is rounded, as a single one it is not.
  for (std::size_t c = 0; c < y.value.size(); ++c)
    y.error[c] += reference::kRoundoffBf16 * (std::abs(y.value[c]) + y.error[c]);
  return y;
}

void StageCheck::check_moe(const Stage& stage) {
  const Doubles &x = now("ffn_in"), &ids = now("router_ids"), &weights = now("router_weights");
  const std::int64_t topk = config_.experts_per_token, hidden = config_.hidden;
  const auto one = [&](std::int64_t t) {
    const auto row = Rows::part(x, hidden, t, t + 1);
    Bounded sum = exactly(Doubles(static_cast<std::size_t>(hidden)));
    const auto add = [&](std::int64_t id, double weight) {
      const Bounded y = expert(row, id, weight);
      for (std::size_t c = 0; c < sum.value.size(); ++c) {
        sum.value[c] += y.value[c];
        sum.error[c] += y.error[c] + static_cast<double>(topk + 1) * kUnit * std::abs(y.value[c]);
      }
    };
    for (std::int64_t i = t * topk; i < (t + 1) * topk; ++i)
      add(static_cast<std::int64_t>(ids[static_cast<std::size_t>(i)]),
          weights[static_cast<std::size_t>(i)]);
    if (config_.shared_experts > 0) add(-1, 1);
    return sum;
  };
  const Bounded expected =
      by_rows(rows_, stage.shape[0], [&](std::int64_t first, std::int64_t last) {
        Bounded block;
        for (std::int64_t t = first; t < last; ++t) append(block, one(t));
        return block;
      });
  compare(stage, expected, kUnit);
}

void StageCheck::check_logits(const Stage& stage) {
  const auto row = std::ranges::find(final_, numbers_.front()) - final_.begin();
  const auto x = Rows::part(now("final_norm"), config_.hidden, row, row + stage.shape[0]);
  compare(stage, linear(exactly(x), head_, stage.shape[0]), kUnit);
}

}  // namespace tilewright::model
