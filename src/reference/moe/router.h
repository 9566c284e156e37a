// Float64 reference of Mixture-of-Experts routing: which experts a token visits, with what weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

enum class RouterScore {
  kSoftmax,       ///< score[e] = exp(logit[e]) / sum over all experts
  kSqrtSoftplus,  ///< score[e] = sqrt(ln(1 + exp(logit[e]))), DeepSeek-V4
};

struct RouterParams {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t topk = 0;
  RouterScore score = RouterScore::kSoftmax;
  bool normalize = true;  ///< divide the weights of a token by their sum
  double scale = 1.0;     ///< factor on the weights, after the normalisation
};

struct Routing {
  std::vector<int32_t> ids;     ///< [tokens, topk] chosen experts, best first (hash: table order)
  std::vector<double> weights;  ///< [tokens, topk]
  std::vector<double> scores;   ///< [tokens, experts], without bias
};

/// ids[t,:] = top_k(score[t,:] + bias, topk); weights[t,i] = scale * s_i / sum_i s_i with
/// s_i = score[t, ids[t,i]]: the bias moves the selection, never a weight
/// Shapes   logits [tokens, experts]; bias [experts] or empty
/// Layout   contiguous
/// Ties     the lower expert index is chosen and comes first; NaN counts as -inf
/// Empty    if the chosen scores sum to 0, the weights are 0: softplus underflows below a logit of
///          about -745
/// Errors   InvalidArgument if an array does not have its shape or not 1 <= topk <= experts
/// Thread   safe
/// Source   DeepSeek-V4 reference model; softmax with normalize is the router of gpt-oss
Routing route_by_score(const RouterParams& params, std::span<const double> logits,
                       std::span<const double> bias = {});

/// ids[t,:] = table[token_ids[t],:]; weights as route_by_score(): the logits still matter.
/// Shapes   logits [tokens, experts]; token_ids [tokens]; table [vocab, topk]
/// Layout   contiguous
/// Errors   as route_by_score(); also if a token id is not a row of the table, or an entry that is
///          read is not an expert
/// Thread   safe
/// Source   DeepSeek-V4 reference model, hash-routed layers
Routing route_by_hash(const RouterParams& params, std::span<const double> logits,
                      std::span<const int32_t> token_ids, std::span<const int32_t> table);

}  // namespace tilewright::reference
