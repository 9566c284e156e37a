// K6: warpgroups in turn, softmax under the products, persistent CTAs.
#pragma once

#include "kernels/attention/attention.h"

namespace tilewright::kernels {

/// Which of the two overlaps a kernel has; all but kFull are there to be measured.
enum class K6Overlap { kNone, kTurns, kWithin, kFull };

/// How a variant cuts the problem. Entries attention_k6_TYPE_NAME: all NAMEs for bf16 and f16,
/// those with fewer overlaps for bf16 only. Every feature of AttentionParams. Any grid; one CTA per
/// multiprocessor is meant.
struct K6Variant {
  const char* name;  ///< "d128"
  int head_dim;
  int consumers;  ///< warpgroups of 64 queries
  int keys;
  int q_stages;  ///< 2: the queries of the next tile are loaded, and its first scores computed,
                 ///< while the results of this one are written
  K6Overlap overlap = K6Overlap::kFull;

  static constexpr int kKvStages = 2, kBarrierBytes = 512;

  constexpr AttentionTile tile() const {
    const int shared =
        q_stages * consumers * 64 * head_dim * 2 + 2 * kKvStages * keys * head_dim * 2;
    return {consumers * 64, keys, 64, (consumers + 1) * 128, shared + kBarrierBytes, true};
  }
};

inline constexpr K6Variant kK6Variants[] = {
    {"d64", 64, 3, 128, 1},
    {"d64_short", 64, 2, 128, 2},
    {"d128", 128, 2, 128, 1},
    {"d128_long", 128, 2, 176, 1},
    {"d256", 256, 2, 80, 1},
    {"d128_no_turns", 128, 2, 128, 1, K6Overlap::kWithin},
    {"d128_no_overlap", 128, 2, 128, 1, K6Overlap::kTurns},
    {"d128_neither", 128, 2, 128, 1, K6Overlap::kNone},
};

}  // namespace tilewright::kernels
