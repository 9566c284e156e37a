#include "reference/moe/router.h"

#include "base/error.h"
#include "reference/shape.h"
#include "reference/top_k.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {
namespace {

void check(const RouterParams& p, std::span<const double> logits) {
  require_shape("router", "logits", logits.size(), "[tokens, experts]", {p.tokens, p.experts});
  require(p.topk >= 1 && p.topk <= p.experts, kInvalid,
          "router: topk = {} and experts = {}; expected 1 <= topk <= experts. Correct topk.",
          p.topk, p.experts);
}

std::vector<double> softmax(std::span<const double> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double z : logits) sum += std::exp(z - max);
  std::vector<double> scores;
  for (const double z : logits) scores.push_back(std::exp(z - max) / sum);
  return scores;
}

std::vector<double> sqrt_softplus(std::span<const double> logits) {
  std::vector<double> scores;
  for (const double z : logits) {
    scores.push_back(std::sqrt(std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)))));
  }
  return scores;
}

std::vector<double> all_scores(const RouterParams& p, std::span<const double> logits) {
  std::vector<double> scores;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const auto row = logits.subspan(t * p.experts, p.experts);
    const auto row_scores = p.score == RouterScore::kSoftmax ? softmax(row) : sqrt_softplus(row);
    scores.insert(scores.end(), row_scores.begin(), row_scores.end());
  }
  return scores;
}

// Appends the weights of token t, whose experts are in routing.ids already.
void add_weights(const RouterParams& p, int64_t t, Routing& routing) {
  double sum = 0;
  for (int64_t i = 0; i < p.topk; ++i) {
    sum += routing.scores[t * p.experts + routing.ids[t * p.topk + i]];
  }
  for (int64_t i = 0; i < p.topk; ++i) {
    const double score = routing.scores[t * p.experts + routing.ids[t * p.topk + i]];
    const double share = !p.normalize ? score : sum == 0 ? 0.0 : score / sum;
    routing.weights.push_back(share * p.scale);
  }
}

}  // namespace

Routing route_by_score(const RouterParams& p, std::span<const double> logits,
                       std::span<const double> bias) {
  check(p, logits);
  if (!bias.empty()) require_shape("router", "bias", bias.size(), "[experts]", {p.experts});
  Routing routing;
  routing.scores = all_scores(p, logits);
  for (int64_t t = 0; t < p.tokens; ++t) {
    std::vector<double> biased;
    for (int64_t e = 0; e < p.experts; ++e) {
      biased.push_back(routing.scores[t * p.experts + e] + (bias.empty() ? 0.0 : bias[e]));
    }
    const auto ids = top_k(biased, p.topk);
    routing.ids.insert(routing.ids.end(), ids.begin(), ids.end());
    add_weights(p, t, routing);
  }
  return routing;
}

Routing route_by_hash(const RouterParams& p, std::span<const double> logits,
                      std::span<const int32_t> token_ids, std::span<const int32_t> table) {
  check(p, logits);
  require_shape("router", "token_ids", token_ids.size(), "[tokens]", {p.tokens});
  const int64_t vocab = static_cast<int64_t>(table.size()) / p.topk;
  require_shape("router", "table", table.size(), "[vocab, topk]", {vocab, p.topk});
  Routing routing;
  routing.scores = all_scores(p, logits);
  for (int64_t t = 0; t < p.tokens; ++t) {
    const int64_t token = token_ids[t];
    require(token >= 0 && token < vocab, kInvalid,
            "router: token_ids[{}] = {}; expected 0 to {}, the rows of the table. Pass the ids of "
            "the vocabulary that the table was made for.",
            t, token, vocab - 1);
    for (int64_t i = 0; i < p.topk; ++i) {
      const int32_t expert = table[token * p.topk + i];
      require(expert >= 0 && expert < p.experts, kInvalid,
              "router: table[{}, {}] = {}; expected 0 to {}, the experts. Correct the table.",
              token, i, expert, p.experts - 1);
      routing.ids.push_back(expert);
    }
    add_weights(p, t, routing);
  }
  return routing;
}

}  // namespace tilewright::reference
