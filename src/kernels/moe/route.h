// Contract of the router: from logits to the experts of each token and their weights.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// score = softmax(logits) or sqrt(softplus(logits)); ids = the topk largest of score + bias, best
/// first, or table[token_ids]; weights = scale * score[ids], divided by their sum if is_normalized.
///
/// Ties go to the lower expert; a NaN counts as -inf. Without a bias experts are compared by their
/// logits, so that rounding of the scores cannot make ties. A sum of 0 gives weights of 0. A token
/// id outside the table, and an entry of the table that is no expert, come out as kNoExpert with
/// weight 0, which the permutation reports.
struct MoeRouteParams {
  const float* logits;            ///< [tokens, experts]
  const float* bias;              ///< [experts] or null
  const std::int32_t* token_ids;  ///< [tokens]; with a table
  const std::int32_t* table;      ///< [vocab, topk] or null
  std::int32_t* ids;              ///< [tokens, topk]
  float* weights;                 ///< [tokens, topk]
  std::int64_t logits_stride;     ///< elements from token to token
  std::int32_t tokens, experts, topk, vocab;
  float scale;
  bool is_normalized, is_softmax;  ///< else sqrt-softplus
};

/// What the entry is given: where experts are divided among ranks, ids come out as those of this
/// one, as MoeShareParams (share.h) has them.
struct MoeRouteOwnParams : MoeRouteParams {
  std::int32_t first, own;  ///< own experts from number first on; own = experts: all of them
};

inline constexpr int kMoeMaxExperts = 384;
inline constexpr int kMoeMaxTopk = 16;
inline constexpr std::int32_t kMoeNoExpert = -2;  ///< in ids: a hash table without an answer
inline constexpr int kMoeRouteThreads = 128;      ///< a warp per token
/// Entry moe_route; grid (ceil(tokens / kMoeRouteTokens)).
inline constexpr int kMoeRouteTokens = kMoeRouteThreads / 32;

}  // namespace tilewright::kernels
