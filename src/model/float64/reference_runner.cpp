#include "model/float64/reference_runner.h"

#include "model/float64/attention64.h"
#include "model/float64/stages.h"
#include "model/float64/weights64.h"
#include "model/sequences.h"
#include "reference/model/hyper_connection.h"
#include "reference/model/rms_norm.h"
#include "reference/moe/moe.h"
#include "reference/moe/router.h"

#include <fmt/format.h>

namespace tilewright::model {
namespace {

class ReferenceRunner final : public Runner {
 public:
  ReferenceRunner(std::shared_ptr<const Weights> weights, const RunnerOptions& options);

  const Config& config() const override { return source_->config(); }
  std::string description() const override;
  RunnerLimits limits() const override { return book_.limits(); }
  void start(std::int64_t num_sequences) override;
  bool begin(std::int64_t sequence, std::int64_t tokens) override;
  void end(std::int64_t sequence) override;
  void take_back(std::int64_t sequence, std::int64_t tokens) override;
  Logits run(std::span<const std::vector<std::int32_t>> tokens,
             std::span<const std::int64_t> logit_rows) override;
  Logits draft(std::span<const std::vector<std::int32_t>> next,
               std::span<const std::int64_t> logit_rows) override;

 private:
  struct Sequence {
    std::int64_t length = 0;
    std::vector<LayerMemory64> layers;  // the draft layer last
    Doubles streams;                    // of the last tokens, where there is a draft layer
  };

  Sequence empty_sequence() const;
  Doubles run_sequence(const std::vector<std::int32_t>& tokens, Sequence& sequence, Stages& stages,
                       std::int64_t logit_rows);
  Doubles feed_forward(std::int64_t layer, const std::vector<std::int32_t>& tokens,
                       std::span<const double> x, const Stages& stages);
  Doubles draft_sequence(const std::vector<std::int32_t>& next, std::int64_t first,
                         Sequence& sequence, std::int64_t logit_rows);
  Doubles draft_streams(const std::vector<std::int32_t>& next, std::int64_t first,
                        std::span<const double> streams) const;
  Doubles final_logits(std::span<const double> streams, std::int64_t tokens, const Stages& stages,
                       const Hyper64& head, const Doubles& norm, std::int64_t logit_rows);
  // The draft layer stands behind the others.
  const Layer64& layer_weights(std::int64_t layer) const {
    return layer < config().num_layers() ? weights_.layers[layer] : weights_.drafts[0].layer;
  }
  void run_layer(std::int64_t layer, const std::vector<std::int32_t>& tokens, std::int64_t first,
                 Sequence& sequence, const Stages& stages, Doubles& streams);
  reference::HyperParams hyper_params(std::int64_t tokens) const;
  reference::HyperMix mix(std::span<const double> streams, std::int64_t tokens,
                          const Hyper64& weights) const;

  std::shared_ptr<const Weights> source_;
  RunnerOptions options_;
  Weights64 weights_;
  ThreadPool pool_;
  Rows rows_{pool_};
  std::vector<Attention64> attention_;
  Sequences book_;
  std::vector<Sequence> sequences_;
};

ReferenceRunner::ReferenceRunner(std::shared_ptr<const Weights> weights,
                                 const RunnerOptions& options)
    : source_(std::move(weights)),
      options_(options),
      weights_(to_doubles(*source_)),
      book_(source_->config(), options) {
  for (std::int64_t i = 0; i < config().num_layers(); ++i)
    attention_.emplace_back(config(), options_, config().kind(i), weights_.layers[i], rows_);
  if (!options_.has_draft) return;
  require(!weights_.drafts.empty(), ErrorKind::kInvalidArgument,
          "model: has_draft, but the weights have no draft layer; expected a checkpoint with mtp.0 "
          "opened with WeightsOptions::has_drafts");
  attention_.emplace_back(config(), options_, LayerKind::kWindow, weights_.drafts[0].layer, rows_);
}

std::string ReferenceRunner::description() const {
  const char* const kv = !options_.kv                      ? "nothing rounded"
                         : *options_.kv == KvFormat::kBf16 ? "bf16 cache"
                         : *options_.kv == KvFormat::kFp8  ? "fp8 cache"
                                                           : "nvfp4 cache";
  return fmt::format("float64 on {} threads, {}, {} experts", pool_.num_threads(), kv,
                     source_->expert_format());
}

void ReferenceRunner::start(std::int64_t num_sequences) {
  book_.start(num_sequences);
  sequences_.clear();
  for (std::int64_t i = 0; i < num_sequences; ++i) sequences_.push_back(empty_sequence());
}

ReferenceRunner::Sequence ReferenceRunner::empty_sequence() const {
  Sequence sequence;
  for (const LayerKind kind : config().layers) sequence.layers.emplace_back(config(), kind);
  if (options_.has_draft) sequence.layers.emplace_back(config(), LayerKind::kWindow);
  return sequence;
}

bool ReferenceRunner::begin(std::int64_t sequence, std::int64_t tokens) {
  const bool has_room = book_.begin(sequence, tokens);
  sequences_[sequence] = empty_sequence();
  return has_room;
}

void ReferenceRunner::end(std::int64_t sequence) {
  book_.end(sequence);
  sequences_[sequence] = empty_sequence();
}

void ReferenceRunner::take_back(std::int64_t sequence, std::int64_t tokens) {
  const std::int64_t drafted = book_[sequence].drafted;
  book_.take_back(sequence, tokens);
  Sequence& from = sequences_[sequence];
  from.length -= tokens;
  for (std::int64_t i = 0; i < config().num_layers(); ++i) from.layers[i].take_back(tokens);
  if (options_.has_draft) from.layers.back().take_back(drafted - book_[sequence].drafted);
}

Logits ReferenceRunner::run(std::span<const std::vector<std::int32_t>> tokens,
                            std::span<const std::int64_t> logit_rows) {
  book_.check_run(tokens, logit_rows);
  Logits logits;
  logits.vocab = config().vocab;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) continue;
    Stages stages(stage_sink(), static_cast<std::int64_t>(i), sequences_[i].length);
    const Doubles values = run_sequence(tokens[i], sequences_[i], stages, logit_rows[i]);
    logits.values.insert(logits.values.end(), values.begin(), values.end());
  }
  book_.append(tokens);
  return logits;
}

Doubles ReferenceRunner::run_sequence(const std::vector<std::int32_t>& tokens, Sequence& sequence,
                                      Stages& stages, std::int64_t logit_rows) {
  const std::int64_t hidden = config().hidden;
  Doubles streams;
  for (const std::int32_t token : tokens) {
    for (std::int64_t i = 0; i < config().streams; ++i)
      streams.insert(streams.end(), weights_.embed.begin() + token * hidden,
                     weights_.embed.begin() + (token + 1) * hidden);
  }
  for (std::int64_t i = 0; i < config().num_layers(); ++i) {
    stages.set_layer(i);
    run_layer(i, tokens, sequence.length, sequence, stages, streams);
  }
  stages.set_layer(-1);
  const auto count = static_cast<std::int64_t>(tokens.size());
  sequence.length += count;
  if (options_.has_draft) sequence.streams = streams;
  return final_logits(streams, count, stages, weights_.hc_head, weights_.norm, logit_rows);
}

Logits ReferenceRunner::draft(std::span<const std::vector<std::int32_t>> next,
                              std::span<const std::int64_t> logit_rows) {
  if (!options_.has_draft) return Runner::draft(next, logit_rows);
  book_.check_draft(next, logit_rows);
  Logits logits;
  logits.vocab = config().vocab;
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (next[i].empty()) continue;
    const std::int64_t first = book_[static_cast<std::int64_t>(i)].before;
    const Doubles values = draft_sequence(next[i], first, sequences_[i], logit_rows[i]);
    logits.values.insert(logits.values.end(), values.begin(), values.end());
  }
  book_.append_drafted(next);
  return logits;
}

Doubles ReferenceRunner::draft_sequence(const std::vector<std::int32_t>& next, std::int64_t first,
                                        Sequence& sequence, std::int64_t logit_rows) {
  const Draft64& draft = weights_.drafts[0];
  const StageSink nobody;
  const Stages stages(nobody, 0, first);
  Doubles streams = draft_streams(next, first, sequence.streams);
  run_layer(config().num_layers(), next, first, sequence, stages, streams);
  return final_logits(streams, static_cast<std::int64_t>(next.size()), stages, draft.hc_head,
                      draft.norm, logit_rows);
}

Doubles ReferenceRunner::draft_streams(const std::vector<std::int32_t>& next, std::int64_t first,
                                       std::span<const double> streams) const {
  const Draft64& draft = weights_.drafts[0];
  const auto count = static_cast<std::int64_t>(next.size());
  const std::int64_t n = config().streams, hidden = config().hidden;
  Doubles embedded;
  for (std::int64_t t = 0; t < count; ++t) {
    const auto row = weights_.embed.begin() + next[t] * hidden;
    if (first + t == 0) {
      embedded.insert(embedded.end(), hidden, 0.0);
    } else {
      embedded.insert(embedded.end(), row, row + hidden);
    }
  }
  embedded = reference::rms_norm({count, hidden, config().norm_eps}, embedded, draft.enorm);
  const Doubles of_token = rows_.linear(embedded, draft.e_proj, count);
  const Doubles normed =
      reference::rms_norm({count * n, hidden, config().norm_eps},
                          Rows::part(streams, n * hidden, 0, count), draft.hnorm);
  Doubles sum = rows_.linear(normed, draft.h_proj, count * n);
  for (std::int64_t row = 0; row < count * n; ++row)
    for (std::int64_t c = 0; c < hidden; ++c)
      sum[row * hidden + c] += of_token[row / n * hidden + c];
  return sum;
}

reference::HyperParams ReferenceRunner::hyper_params(std::int64_t tokens) const {
  return {.tokens = tokens,
          .streams = config().streams,
          .hidden = config().hidden,
          .sinkhorn_iters = config().sinkhorn_iters,
          .eps = config().hyper_eps,
          .norm_eps = config().norm_eps};
}

// pre, post and comb of a token side by side while threads work on blocks of tokens.
reference::HyperMix ReferenceRunner::mix(std::span<const double> streams, std::int64_t tokens,
                                         const Hyper64& weights) const {
  const std::int64_t n = config().streams, row = n * config().hidden;
  reference::HyperMix all = {Doubles(tokens * n), Doubles(tokens * n), Doubles(tokens * n * n)};
  rows_.each(tokens, [&](std::int64_t first, std::int64_t last) {
    const auto part =
        reference::hyper_mix(hyper_params(last - first), Rows::part(streams, row, first, last),
                             weights.fn, weights.base, weights.scale);
    std::copy(part.pre.begin(), part.pre.end(), all.pre.begin() + first * n);
    std::copy(part.post.begin(), part.post.end(), all.post.begin() + first * n);
    std::copy(part.comb.begin(), part.comb.end(), all.comb.begin() + first * n * n);
  });
  return all;
}

// [tokens, n + n + n n], as reference files have it.
Doubles joined(const reference::HyperMix& mix, std::int64_t tokens, std::int64_t n) {
  Doubles rows;
  for (std::int64_t t = 0; t < tokens; ++t) {
    rows.insert(rows.end(), mix.pre.begin() + t * n, mix.pre.begin() + (t + 1) * n);
    rows.insert(rows.end(), mix.post.begin() + t * n, mix.post.begin() + (t + 1) * n);
    rows.insert(rows.end(), mix.comb.begin() + t * n * n, mix.comb.begin() + (t + 1) * n * n);
  }
  return rows;
}

void ReferenceRunner::run_layer(std::int64_t layer, const std::vector<std::int32_t>& tokens,
                                std::int64_t first, Sequence& sequence, const Stages& stages,
                                Doubles& streams) {
  const Layer64& weights = layer_weights(layer);
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int64_t n = config().streams, hidden = config().hidden;
  const auto around = [&](const char* name, const Hyper64& hyper, const Doubles& norm,
                          const auto& sub_layer) {
    const auto weight = mix(streams, count, hyper);
    stages.tokens(fmt::format("{}_mix", name), joined(weight, count, n), {2 * n + n * n});
    const Doubles y = reference::hyper_pre(hyper_params(count), streams, weight.pre);
    const Doubles in = reference::rms_norm({count, hidden, config().norm_eps}, y, norm);
    stages.tokens(fmt::format("{}_in", name), in, {hidden});
    streams = reference::hyper_post(hyper_params(count), streams, sub_layer(in), weight);
  };
  around("attn", weights.hc_attn, weights.attn_norm, [&](const Doubles& in) {
    return attention_[layer].run(in, first, sequence.layers[layer], stages);
  });
  stages.tokens("streams_mid", streams, {n, hidden});
  around("ffn", weights.hc_ffn, weights.ffn_norm,
         [&](const Doubles& in) { return feed_forward(layer, tokens, in, stages); });
  stages.tokens("streams", streams, {n, hidden});
}

Doubles ReferenceRunner::feed_forward(std::int64_t layer, const std::vector<std::int32_t>& tokens,
                                      std::span<const double> x, const Stages& stages) {
  const Layer64& weights = layer_weights(layer);
  const Config& c = config();
  const auto count = static_cast<std::int64_t>(tokens.size());
  const Doubles logits = rows_.linear(x, weights.gate, count);
  const reference::RouterParams router{.tokens = count,
                                       .experts = c.experts,
                                       .topk = c.experts_per_token,
                                       .score = reference::RouterScore::kSqrtSoftplus,
                                       .scale = c.routed_scale};
  const auto routing = c.is_hash_routed(layer)
                           ? reference::route_by_hash(router, logits, tokens, weights.tid2eid)
                           : reference::route_by_score(router, logits, weights.bias);
  stages.tokens("router_scores", routing.scores, {c.experts});
  stages.tokens("router_ids", routing.ids, {c.experts_per_token});
  stages.tokens("router_weights", routing.weights, {c.experts_per_token});
  const reference::MoeParams params{.hidden = c.hidden,
                                    .inter = c.inter,
                                    .experts = c.experts,
                                    .topk = c.experts_per_token,
                                    .shared_inter = c.shared_experts * c.inter,
                                    .activation = {.limit = c.swiglu_limit}};
  Doubles out(x.size());
  constexpr std::int64_t kTokens = 64;  // enough for an expert's weights to be used more than once
  pool_.parallel_for(0, count, kTokens, [&](std::int64_t first, std::int64_t last) {
    reference::MoeParams part = params;
    part.tokens = last - first;
    const auto y = reference::moe(part, Rows::part(x, c.hidden, first, last),
                                  Rows::part(routing.ids, c.experts_per_token, first, last),
                                  Rows::part(routing.weights, c.experts_per_token, first, last),
                                  {weights.expert_gate, weights.expert_up, weights.expert_down},
                                  {weights.shared_gate, weights.shared_up, weights.shared_down});
    std::copy(y.begin(), y.end(), out.begin() + first * c.hidden);
  });
  stages.tokens("moe_out", out, {c.hidden});
  return out;
}

Doubles ReferenceRunner::final_logits(std::span<const double> streams, std::int64_t tokens,
                                      const Stages& stages, const Hyper64& head,
                                      const Doubles& norm, std::int64_t logit_rows) {
  const Config& c = config();
  const auto params = hyper_params(tokens);
  const Doubles weights =
      reference::hyper_head_mix(params, streams, head.fn, head.base, head.scale);
  stages.tokens("head_mix", weights, {c.streams});
  const Doubles y = reference::hyper_pre(params, streams, weights);
  const Doubles last = reference::rms_norm({tokens, c.hidden, c.norm_eps}, y, norm);
  stages.tokens("final_norm", last, {c.hidden});
  const std::int64_t rows = stages.is_on() ? tokens : logit_rows;
  if (rows == 0) return {};
  Doubles logits =
      rows_.linear(Rows::part(last, c.hidden, tokens - rows, tokens), weights_.head, rows);
  stages.tokens("logits", logits, {c.vocab});
  logits.erase(logits.begin(), logits.end() - logit_rows * c.vocab);
  return logits;
}

}  // namespace

std::unique_ptr<Runner> make_reference_runner(std::shared_ptr<const Weights> weights,
                                              const RunnerOptions& options) {
  return std::make_unique<ReferenceRunner>(std::move(weights), options);
}

}  // namespace tilewright::model
