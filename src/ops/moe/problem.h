// The arithmetic of a Mixture-of-Experts problem: what makes sense, and how much work it is.
#pragma once

#include "tilewright/moe.h"

#include <cstdint>

namespace tilewright::ops {

inline constexpr std::int64_t kMaxMoeTokens = 65536;
inline constexpr std::int64_t kMaxMoeRoom = 1 << 21;  ///< rows of all experts, if they come grouped

/// Errors   InvalidArgument naming field, value, rule and remedy
void check_moe_problem(const MoeWeightsInfo& weights, const MoeProblem& problem);
/// Errors   InvalidArgument
void check_moe_weights(const MoeWeightsInfo& weights);

/// Experts that tokens are routed over: those of the weights, or all of which they are a share.
std::int64_t routed_experts(const MoeWeightsInfo& weights, const MoeProblem& problem) noexcept;

/// Rows that the experts can get in all: one for each token, its experts and the shared one; or all
/// that there is room for.
std::int64_t moe_rows(const MoeWeightsInfo& weights, const MoeProblem& problem) noexcept;

/// Rows that costs assume.
std::int64_t moe_expected_rows(const MoeWeightsInfo& weights, const MoeProblem& problem) noexcept;

inline bool is_in_rooms(const MoeProblem& problem) noexcept {
  return problem.routing == MoeRouting::kGrouped;
}
/// Tokens come grouped by expert, in rooms or behind each other.
inline bool is_grouped_input(const MoeProblem& problem) noexcept {
  return is_in_rooms(problem) || problem.routing == MoeRouting::kContiguous;
}

/// One expert has all tokens, in their order.
inline bool is_single(const MoeProblem& problem) noexcept {
  return problem.routing == MoeRouting::kSingle;
}
/// Rows of h are those of x, and of out: nothing is permuted or summed.
inline bool keeps_rows(const MoeProblem& problem) noexcept {
  return is_grouped_input(problem) || is_single(problem);
}

/// Experts that tokens visit under uniform routing, E (1 - (1 - topk / E)^tokens), without the
/// shared one.
double expected_active_experts(const MoeWeightsInfo& weights, const MoeProblem& problem) noexcept;

/// Bytes of the three matrices of an expert in memory, scales included.
double expert_bytes(const MoeWeightsInfo& weights) noexcept;

/// 6 * hidden * inter for each row.
double moe_flops(const MoeWeightsInfo& weights, const MoeProblem& problem) noexcept;

/// The active experts, x, h written and read, out: each once.
double moe_bytes(const MoeWeightsInfo& weights, const MoeProblem& problem) noexcept;

}  // namespace tilewright::ops
