// The experts of one token and their weights, by one warp. Lane l holds the experts l, l + 32, ...
// as keys that order like floats; the best one is taken topk times by two warp reductions: the
// largest key, then the least expert that has it.
#pragma once

#include "kernels/moe/route.h"

#include <math.h>

namespace tilewright::kernels {

inline constexpr unsigned kRouteLanes = 0xffffffffu;
inline constexpr int kRoutePerLane = kMoeMaxExperts / 32;
inline constexpr std::uint32_t kRouteTaken = 0;  // below the key of -inf

// Orders like the float; -0 like 0, NaN like -inf.
__device__ inline std::uint32_t order_key(float x) {
  const float clean = isnan(x) ? -INFINITY : x + 0.0f;
  const std::uint32_t bits = __float_as_uint(clean);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ inline float sqrt_softplus(float z) {
  return sqrtf(fmaxf(z, 0.0f) + log1pf(expf(-fabsf(z)))) + (isnan(z) ? z : 0.0f);
}

// What a softmax needs to know of a row: its largest logit and the sum of exp(logit - largest).
struct LogitSum {
  float largest, sum;
};

__device__ inline LogitSum sum_logits(const float* logits, int experts, int lane) {
  float largest = -INFINITY;
  for (int e = lane; e < experts; e += 32) largest = fmaxf(largest, logits[e]);
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(kRouteLanes, largest, step));
  float sum = 0;
  for (int e = lane; e < experts; e += 32) sum += expf(logits[e] - largest);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kRouteLanes, sum, step);
  return {largest, sum};
}

// What experts are compared by: without a bias the logits do.
__device__ inline float preference(const MoeRouteParams& params, const float* logits, int e,
                                   const LogitSum& row) {
  const float z = logits[e];
  if (params.bias == nullptr) return z;
  const float score = params.is_softmax ? expf(z - row.largest) / row.sum : sqrt_softplus(z);
  return score + params.bias[e];
}

// Lane i < topk gets the i-th best expert.
__device__ inline std::int32_t select_expert(const MoeRouteParams& params, const float* logits,
                                             int lane) {
  LogitSum row = {0, 1};
  if (params.is_softmax && params.bias != nullptr) row = sum_logits(logits, params.experts, lane);
  std::uint32_t keys[kRoutePerLane];
#pragma unroll
  for (int j = 0; j < kRoutePerLane; ++j) {
    const int e = lane + 32 * j;
    keys[j] = e < params.experts ? order_key(preference(params, logits, e, row)) : kRouteTaken;
  }
  std::int32_t mine = -1;
  for (int i = 0; i < params.topk; ++i) {
    std::uint32_t best = kRouteTaken;
    int best_j = 0;
#pragma unroll
    for (int j = 0; j < kRoutePerLane; ++j) {
      if (keys[j] > best) {
        best = keys[j];
        best_j = j;
      }
    }
    const std::uint32_t largest = __reduce_max_sync(kRouteLanes, best);
    const unsigned expert =
        best == largest && best != kRouteTaken ? lane + 32 * best_j : kRouteLanes;
    const unsigned winner = __reduce_min_sync(kRouteLanes, expert);
    if (winner == expert) {
#pragma unroll
      for (int j = 0; j < kRoutePerLane; ++j)
        if (j == best_j) keys[j] = kRouteTaken;
    }
    if (lane == i) mine = static_cast<std::int32_t>(winner);
  }
  return mine;
}

__device__ inline std::int32_t look_up_expert(const MoeRouteParams& params, int token, int lane) {
  if (lane >= params.topk) return -1;
  const std::int32_t id = params.token_ids[token];
  if (id < 0 || id >= params.vocab) return kMoeNoExpert;
  const std::int32_t expert = params.table[static_cast<std::int64_t>(id) * params.topk + lane];
  return expert >= 0 && expert < params.experts ? expert : kMoeNoExpert;
}

// The weight of this lane's expert; all lanes take part.
__device__ inline float weigh_expert(const MoeRouteParams& params, const float* logits,
                                     std::int32_t expert, int lane) {
  const bool is_mine = lane < params.topk && expert >= 0;
  float score = 0;
  if (params.is_softmax) {
    const LogitSum row = sum_logits(logits, params.experts, lane);
    // Normalised, the sum of the row cancels.
    const float divisor = params.is_normalized ? 1.0f : row.sum;
    if (is_mine) score = expf(logits[expert] - row.largest) / divisor;
  } else if (is_mine) {
    score = sqrt_softplus(logits[expert]);
  }
  if (!params.is_normalized) return score * params.scale;
  float sum = score;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kRouteLanes, sum, step);
  return (sum == 0 ? 0.0f : score / sum) * params.scale;
}

struct RoutedExpert {
  std::int32_t id;
  float weight;
};

/// Lane i < topk gets the i-th expert of the token. A whole warp.
__device__ inline RoutedExpert route_token(const MoeRouteParams& params, int token, int lane) {
  const float* const logits = params.logits + token * params.logits_stride;
  const std::int32_t expert = params.table != nullptr ? look_up_expert(params, token, lane)
                                                      : select_expert(params, logits, lane);
  return {expert, weigh_expert(params, logits, expert, lane)};
}

}  // namespace tilewright::kernels
