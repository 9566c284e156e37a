// The experts of a token as route_token.h finds them, by less code: a launch runs it once, and each
// line of it comes from memory first.
#pragma once

#include "kernels/moe/route_token.h"

namespace tilewright::kernels {

/// The largest comes to the front, of equal ones the first: pairs of neighbours, then pairs of
/// these. Four comparisons behind each other, not twelve.
template <int Step>
__device__ inline void pair_up(std::uint32_t (&best)[kRoutePerLane], int (&place)[kRoutePerLane]) {
#pragma unroll
  for (int j = 0; j + Step < kRoutePerLane; j += 2 * Step)
    if (best[j + Step] > best[j]) best[j] = best[j + Step], place[j] = place[j + Step];
  if constexpr (2 * Step < kRoutePerLane) pair_up<2 * Step>(best, place);
}

/// Lane i < topk gets the expert of the i-th largest key of all lanes, of equal ones the least, as
/// in select_expert().
__device__ inline std::int32_t take_best(std::uint32_t (&keys)[kRoutePerLane], int topk, int lane) {
  std::int32_t mine = -1;
#pragma unroll 1
  for (int i = 0; i < topk; ++i) {
    std::uint32_t best[kRoutePerLane];
    int place[kRoutePerLane];
#pragma unroll
    for (int j = 0; j < kRoutePerLane; ++j) best[j] = keys[j], place[j] = j;
    pair_up<1>(best, place);
    const std::uint32_t largest = __reduce_max_sync(kRouteLanes, best[0]);
    const bool is_largest = best[0] == largest && best[0] != kRouteTaken;
    const unsigned expert = is_largest ? lane + 32 * place[0] : kRouteLanes;
    const unsigned winner = __reduce_min_sync(kRouteLanes, expert);
#pragma unroll
    for (int j = 0; j < kRoutePerLane; ++j)
      if (winner == static_cast<unsigned>(lane + 32 * j)) keys[j] = kRouteTaken;
    if (lane == i) mine = static_cast<std::int32_t>(winner);
  }
  return mine;
}

/// Keys of all experts of a token, in shared memory: of expert e at e.
inline constexpr int kRouteKeys = 32 * kRoutePerLane;

/// Whether experts are chosen by their logits.
__device__ inline bool chooses(const MoeRouteParams& params) {
  return params.logits != nullptr && params.table == nullptr;
}

/// What select_expert() compares, of 32 experts from 32 `place` on. A whole warp.
__device__ inline void store_keys(const MoeRouteParams& params, int token, int place, int lane,
                                  std::uint32_t* keys) {
  const float* const logits = params.logits + token * params.logits_stride;
  LogitSum row = {0, 1};
  if (params.is_softmax && params.bias != nullptr) row = sum_logits(logits, params.experts, lane);
  const int e = lane + 32 * place;
  keys[e] = e < params.experts ? order_key(preference(params, logits, e, row)) : kRouteTaken;
}

/// route_token(), where experts are chosen from keys that are there.
__device__ inline RoutedExpert route_token_once(const MoeRouteParams& params, int token, int lane,
                                                const std::uint32_t* keys_there) {
  std::int32_t expert;
  if (chooses(params)) {
    std::uint32_t keys[kRoutePerLane];
#pragma unroll
    for (int j = 0; j < kRoutePerLane; ++j) keys[j] = keys_there[lane + 32 * j];
    expert = take_best(keys, params.topk, lane);
  } else {
    expert = look_up_expert(params, token, lane);
  }
  const float* const logits = params.logits + token * params.logits_stride;
  return {expert, weigh_expert(params, logits, expert, lane)};
}

}  // namespace tilewright::kernels
