// K6, the attention kernel of 16-bit operands that the library chooses: its forms.
#pragma once

#include "kernels/attention/attention.h"

#include <span>
#include <string_view>

namespace tilewright::kernels {

/// When a warpgroup passes its turn on. Its scores and products are then issued; what follows
/// decides how far the others lag behind, and with that whose softmax runs under whose products.
enum class K6Pass { kAfterScores, kAfterMaximum };

/// How a variant cuts the problem. Entries attention_k6_{bf16,f16}_NAME. Every feature of
/// AttentionParams. Any grid; one CTA per SM is meant.
struct K6Variant {
  const char* name;  ///< "d128"
  int head_dim;
  int consumers;  ///< warpgroups of 64 queries
  int keys;
  int q_stages = 1;  ///< 2: the queries of the next tile are loaded, and its first scores computed,
                     ///< while the results of this one are written
  K6Pass pass = K6Pass::kAfterMaximum;
  bool keys_first = false;  ///< the first keys of a tile are loaded before its queries
  bool stages_out = false;  ///< results leave through shared memory by tensor copies
  int kv_stages = 2;        ///< of keys and of values
  bool first_polls = true;  ///< only the first consumer waits for copies, the others for their turn

  static constexpr int kBarrierBytes = 512;

  constexpr AttentionTile tile() const {
    return persistent_tile(consumers, keys, ring_bytes() + (stages_out ? out_bytes() : 0));
  }
  /// Queries, keys and values; then barriers, up to a multiple of 1024 bytes; then results.
  constexpr int ring_bytes() const {
    const int rings = q_stages * out_bytes() + 2 * kv_stages * keys * head_dim * 2;
    return (rings + kBarrierBytes + 1023) / 1024 * 1024;
  }
  constexpr int out_bytes() const { return consumers * 64 * head_dim * 2; }
};

inline constexpr K6Variant kK6Variants[] = {
    {.name = "d64",
     .head_dim = 64,
     .consumers = 3,
     .keys = 128,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false},
    {.name = "d64_short", .head_dim = 64, .consumers = 2, .keys = 128, .q_stages = 2},
    {.name = "d128",
     .head_dim = 128,
     .consumers = 2,
     .keys = 128,
     .pass = K6Pass::kAfterScores,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false},
    {.name = "d128_short",
     .head_dim = 128,
     .consumers = 2,
     .keys = 128,
     .keys_first = true,
     .stages_out = true,
     .first_polls = false},
    {.name = "d128_long", .head_dim = 128, .consumers = 2, .keys = 176, .keys_first = true},
    {.name = "d256",
     .head_dim = 256,
     .consumers = 2,
     .keys = 80,
     .pass = K6Pass::kAfterScores,
     .keys_first = true},
};

/// Number of the variant of that name, of kK6Variants or kK6PagedVariants (k6_paged.h); not a
/// constant if there is none.
constexpr int find_k6_index(std::span<const K6Variant> variants, std::string_view name) {
  std::size_t i = 0;
  while (name != variants[i].name) ++i;
  return static_cast<int>(i);
}

/// Threads of its CTA.
constexpr int find_k6_threads(std::span<const K6Variant> variants, std::string_view name) {
  return variants[static_cast<std::size_t>(find_k6_index(variants, name))].tile().threads;
}

}  // namespace tilewright::kernels
