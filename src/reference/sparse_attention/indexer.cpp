#include "reference/sparse_attention/indexer.h"

#include "reference/dot.h"
#include "reference/rotation/hadamard.h"
#include "reference/round.h"
#include "reference/shape.h"
#include "reference/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::reference {

namespace {}

std::vector<double> indexer_transform(int64_t dim, std::span<const double> x, bool round_bf16,
                                      const BlockFormat* format) {
  require_at_least("indexer", "dim", dim, 1);
  const int64_t rows = static_cast<int64_t>(x.size()) / dim;
  std::vector<double> values(x.begin(), x.end());
  if (round_bf16) round_to_bf16(values);
  const HadamardParams transform{
      .rows = rows, .dim = dim, .scale = 1 / std::sqrt(static_cast<double>(dim))};
  values = hadamard(transform, values);
  if (round_bf16) round_to_bf16(values);
  if (format != nullptr) round_to_blocks(*format, values, rows, dim, dim);
  return values;
}

double indexer_weight_factor(const IndexerParams& p) {
  return 1 / std::sqrt(static_cast<double>(p.dim) * static_cast<double>(p.heads));
}

std::vector<double> indexer_scores(const IndexerParams& p, std::span<const double> q,
                                   std::span<const double> k, std::span<const double> w,
                                   std::span<const int32_t> visible) {
  require_at_least("indexer", "dim", p.dim, 1);
  const int64_t entries = static_cast<int64_t>(k.size()) / p.dim;
  require_shape("indexer", "q", q.size(), "[tokens, heads, dim]", {p.tokens, p.heads, p.dim});
  require_shape("indexer", "k", k.size(), "[entries, dim]", {entries, p.dim});
  require_shape("indexer", "w", w.size(), "[tokens, heads]", {p.tokens, p.heads});
  require_shape("indexer", "visible", visible.size(), "[tokens]", {p.tokens});
  std::vector<double> scores(p.tokens * entries, -std::numeric_limits<double>::infinity());
  for (int64_t t = 0; t < p.tokens; ++t) {
    for (int64_t j = 0; j < std::min<int64_t>(visible[t], entries); ++j) {
      double score = 0;
      for (int64_t h = 0; h < p.heads; ++h) {
        const double logit = dot(&q[(t * p.heads + h) * p.dim], &k[j * p.dim], p.dim);
        // Not max(): a NaN has to stay one.
        score += (logit < 0 ? 0 : logit) * w[t * p.heads + h];
      }
      scores[t * entries + j] = score;
    }
  }
  return scores;
}

std::vector<int32_t> indexer_select(int64_t tokens, std::span<const double> scores, int64_t topk) {
  const int64_t entries = tokens > 0 ? static_cast<int64_t>(scores.size()) / tokens : 0;
  require_shape("indexer", "scores", scores.size(), "[tokens, entries]", {tokens, entries});
  std::vector<int32_t> selected;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto row = scores.subspan(t * entries, entries);
    std::vector<int32_t> chosen = top_k(row, topk);
    std::erase_if(chosen, [&](int32_t j) {
      return j < 0 || !(row[j] >= std::numeric_limits<double>::lowest());
    });
    std::sort(chosen.begin(), chosen.end());
    chosen.resize(topk, -1);
    selected.insert(selected.end(), chosen.begin(), chosen.end());
  }
  return selected;
}

}  // namespace tilewright::reference
