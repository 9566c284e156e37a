// Contract of the permutation: from the experts of each token to rows in the order of experts.
#pragma once

#include "kernels/moe/route.h"

#include <cstdint>

namespace tilewright::kernels {

/// What was wrong with the ids. Counts begin at 0, firsts at kMoeNone.
struct MoeStatus {
  std::uint32_t num_out_of_range, num_duplicated;
  std::uint32_t first_out_of_range, first_duplicated;  ///< slots
};
inline constexpr std::uint32_t kMoeNone = 0xffffffff;

/// A slot is a pair (token, i < topk), numbered token * topk + i. The rows of expert e are
/// offsets[e] to offsets[e + 1], in the order of their slots: the result depends on nothing but the
/// ids. An id of -1 gives no row; any other that is no expert, or that its token has already, gives
/// none either and is counted in status. If there is a shared expert, it is number `experts`, and
/// every token has one more row there.
struct MoePermuteParams {
  const std::int32_t* ids;  ///< [slots]
  const float* weights;     ///< [slots]
  std::int32_t* offsets;    ///< [experts + has_shared + 1]
  std::int32_t* slot_row;   ///< [slots], -1: none
  std::int32_t* row_token;  ///< [slots + has_shared * tokens]; beyond the last row untouched
  float* row_weight;        ///< likewise; of the shared expert 1
  MoeStatus* status;        ///< written anew
  std::int32_t tokens, topk, experts;
  bool has_shared;
};

inline constexpr int kMoePermuteThreads = 1024;
/// Dynamic shared memory: counts of 32 warps in 16 bits, totals and first rows.
inline constexpr int kMoePermuteSharedBytes = kMoeMaxExperts * (32 * 2 + 4 + 4);
/// Entry moe_permute; one cluster of 1 to 8 CTAs, which share the slots.
inline constexpr int kMoePermuteMaxCtas = 8;
/// From there on a second CTA pays.
inline constexpr int kMoePermuteSlotsPerCta = 4096;

}  // namespace tilewright::kernels
