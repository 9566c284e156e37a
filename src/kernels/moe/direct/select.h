// The experts of a token as route_token.h finds them, by less code: a launch runs it once, and each
// line of it comes from memory first.
#pragma once

#include "kernels/moe/route_token.h"

namespace tilewright::kernels {

/// Lane i < topk gets the expert of the i-th largest key of all lanes, of equal ones the least, as
/// in select_expert().
__device__ inline std::int32_t take_best(std::uint32_t (&keys)[kRoutePerLane], int topk, int lane) {
  std::int32_t mine = -1;
#pragma unroll 1
  for (int i = 0; i < topk; ++i) {
    std::uint32_t best = kRouteTaken;
    int best_j = 0;
#pragma unroll
    for (int j = 0; j < kRoutePerLane; ++j) {
      if (keys[j] > best) best = keys[j], best_j = j;
    }
    const std::uint32_t largest = __reduce_max_sync(kRouteLanes, best);
    const bool is_largest = best == largest && best != kRouteTaken;
    const unsigned expert = is_largest ? lane + 32 * best_j : kRouteLanes;
    const unsigned winner = __reduce_min_sync(kRouteLanes, expert);
#pragma unroll
    for (int j = 0; j < kRoutePerLane; ++j) {
      if (winner == expert && j == best_j) keys[j] = kRouteTaken;
    }
    if (lane == i) mine = static_cast<std::int32_t>(winner);
  }
  return mine;
}

/// select_expert(), with the code of a preference once rather than for every expert of a lane.
__device__ inline std::int32_t select_expert_once(const MoeRouteParams& params, const float* logits,
                                                  int lane) {
  LogitSum row = {0, 1};
  if (params.is_softmax && params.bias != nullptr) row = sum_logits(logits, params.experts, lane);
  float z[kRoutePerLane], bias[kRoutePerLane];
  std::uint32_t keys[kRoutePerLane] = {};
#pragma unroll
  for (int j = 0; j < kRoutePerLane; ++j) {
    const int e = lane + 32 * j;
    z[j] = e < params.experts ? logits[e] : 0;
    bias[j] = e < params.experts && params.bias != nullptr ? params.bias[e] : 0;
  }
  // Registers have no index that is computed: all move on by one place in each turn, of which there
  // are as many as places.
#pragma unroll 1
  for (int e = lane; e < 32 * kRoutePerLane; e += 32) {
    float score = z[0];
    if (params.bias != nullptr)
      score =
          (params.is_softmax ? expf(z[0] - row.largest) / row.sum : sqrt_softplus(z[0])) + bias[0];
#pragma unroll
    for (int j = 0; j + 1 < kRoutePerLane; ++j)
      z[j] = z[j + 1], bias[j] = bias[j + 1], keys[j] = keys[j + 1];
    keys[kRoutePerLane - 1] = e < params.experts ? order_key(score) : kRouteTaken;
  }
  return take_best(keys, params.topk, lane);
}

/// route_token() by it.
__device__ inline RoutedExpert route_token_once(const MoeRouteParams& params, int token, int lane) {
  const float* const logits = params.logits + token * params.logits_stride;
  const std::int32_t expert = params.table != nullptr ? look_up_expert(params, token, lane)
                                                      : select_expert_once(params, logits, lane);
  return {expert, weigh_expert(params, logits, expert, lane)};
}

}  // namespace tilewright::kernels
