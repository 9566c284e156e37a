// The sums of hyper_connect: which there are, how a warp makes them, what all CTAs have of them.
#pragma once

#include "kernels/model/column4.h"
#include "kernels/model/hyper_connection.h"

#include <cstdint>

namespace tilewright::kernels::hyper {

// Sums of a token, in two halves: dot products with 12 rows of fn, and products of five pairs of
// streams; one number more makes an even count.
inline constexpr int kHalfRows = kHyperMixRows / 2, kHalfPairs = 5;
inline constexpr int kHalfSums = kHalfRows + kHalfPairs, kHalf = kHalfSums + 1;
inline constexpr int kSums = 2 * kHalf, kSumVectors = kSums / 4;
static_assert(kSums % 4 == 0);

// Pairs of streams: with themselves first, so that the sum of squares is that of four neighbours.
struct StreamPair {
  int i, j;
};
constexpr StreamPair stream_pair(int k) {
  if (k < 4) return {k, k};
  if (k < 7) return {0, k - 3};
  return k < 9 ? StreamPair{1, k - 5} : StreamPair{2, 3};
}

// Of every CTA.
using SumsOfCtas = float4[kHyperConnectCtas][kHyperConnectTokens][kSumVectors];

// Half of the lanes keep the lower Count numbers, the others the upper ones, added to those of the
// lane 2 Count away.
template <int Count>
__device__ inline void halve(float (&v)[kHalfSums], int lane) {
  const bool is_high = (lane & (2 * Count)) != 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float kept = is_high ? v[i + Count] : v[i], given = is_high ? v[i] : v[i + Count];
    v[i] = kept + __shfl_xor_sync(~0u, given, 2 * Count);
  }
}
// Sixteen sums over the lanes of a warp: number i comes to the lanes 2 i and 2 i + 1.
__device__ inline float spread_sums(float (&v)[kHalfSums], int lane) {
  halve<8>(v, lane);
  halve<4>(v, lane);
  halve<2>(v, lane);
  halve<1>(v, lane);
  return v[0] + __shfl_xor_sync(~0u, v[0], 1);
}

// Sums of a token over all columns, CTAs in order: dot product `lane` in the lanes below
// kHyperMixRows, in the others products of pairs of streams, and two more of them in two lanes.
struct TokenSums {
  float sum = 0, more = 0, squares;

  __device__ TokenSums(const SumsOfCtas& sums_of_ctas, int token, int lane) {
    constexpr int kPairLanes = 32 - kHyperMixRows;
    const int pair = lane - kHyperMixRows;
    const int at = pair < 0 ? lane / kHalfRows * kHalf + lane % kHalfRows : place_of(pair);
    const int at_more = place_of(kPairLanes + (lane & 1));
#pragma unroll
    for (int c = 0; c < kHyperConnectCtas; ++c) {
      const auto* const of_cta = reinterpret_cast<const float*>(sums_of_ctas[c][token]);
      sum += of_cta[at];
      more += of_cta[at_more];
    }
    static_assert(2 * kHalfPairs == kPairLanes + 2 && kPairLanes >= kHyperStreams);
    squares = 0;
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) squares += __shfl_sync(~0u, sum, kHyperMixRows + j);
  }

  // The sum of squares of y.
  __device__ float square_of(const float (&pre)[kHyperStreams], int lane) const {
    float terms = 0;
#pragma unroll
    for (int k = 0; k < 2 * kHalfPairs; ++k) {
      constexpr int kPairLanes = 32 - kHyperMixRows;
      const auto [i, j] = stream_pair(k);
      const float factor = pre[i] * pre[j] * (i == j ? 1.0f : 2.0f);
      if (lane == kHyperMixRows + k % kPairLanes)
        terms = fmaf(k < kPairLanes ? sum : more, factor, terms);
    }
    return tile::warp_sum(terms);
  }

 private:
  static __device__ int place_of(int pair) {
    return pair / kHalfPairs * kHalf + kHalfRows + pair % kHalfPairs;
  }
};

}  // namespace tilewright::kernels::hyper
