// What a form of K6 is: how it cuts the problem, and its choices.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/boxed_columns.h"

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
  int value_dim = head_dim;
  int consumers = 2;  ///< warpgroups of 64 queries
  int keys;
  int q_stages = 1;  ///< 2: the queries of the next tile are loaded, and its first scores computed,
                     ///< while the results of this one are written
  K6Pass pass = K6Pass::kAfterMaximum;
  bool keys_first = true;      ///< the first keys of a tile are loaded before its queries
  bool stages_out = false;     ///< results leave through shared memory by tensor copies
  int kv_stages = 2;           ///< of keys and of values
  int more_values = 0;         ///< stages of values beyond these
  bool first_polls = false;    ///< the first consumer alone waits for copies, others for their turn
  bool cuts_diagonal = false;  ///< see whole_consumer.h
  bool is_tall = false;        ///< over pages: of a head_dim's two forms that with more rows
  bool clips = false;          ///< rows end at value_dim, where it is less; over pages always

  static constexpr int kBarrierBytes = 512;

  constexpr AttentionTile tile() const {
    return persistent_tile(consumers, keys, ring_bytes() + (stages_out ? out_bytes() : 0));
  }
  /// Queries, keys and values; then barriers, up to a multiple of 1024 bytes; then results.
  constexpr int ring_bytes() const {
    const int key_bytes = boxed_columns(head_dim) * 2, value_bytes = boxed_columns(value_dim) * 2;
    const int queries = q_stages * consumers * 64 * key_bytes;
    const int rings =
        queries + kv_stages * keys * (key_bytes + value_bytes) + more_values * keys * value_bytes;
    return (rings + kBarrierBytes + 1023) / 1024 * 1024;
  }
  constexpr int out_bytes() const { return consumers * 64 * boxed_columns(value_dim) * 2; }
};

/// Number of the variant of that name, of kK6Variants or kK6PagedVariants (k6_paged.h); not a
/// constant if there is none.
constexpr int find_k6_index(std::span<const K6Variant> variants, std::string_view name) {
  std::size_t i = 0;
  while (name != variants[i].name) ++i;
  return static_cast<int>(i);
}

}  // namespace tilewright::kernels
