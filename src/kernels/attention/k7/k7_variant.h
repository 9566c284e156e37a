// What a form of K7 is: how it cuts the problem, and its choices.
#pragma once

#include "kernels/attention/k7/fp8_operands.h"

namespace tilewright::kernels {

/// What sums products of P and V: the tensor core over all keys, keeping 13 fraction bits; or the
/// tensor core over a few tiles, and f32 registers over those sums.
enum class Fp8Sums { kOneLevel, kTwoLevel };

/// When a warpgroup passes its turn on: when its products are issued, when its scores are there, or
/// when their maxima are.
enum class K7Pass { kAtOnce, kAfterScores, kAfterMaximum };

/// How a variant cuts the problem. Entries attention_k7_NAME. Every feature of AttentionParams, any
/// grid; one CTA per SM is meant.
struct K7Variant {
  char name[24];  ///< "d128_rows"
  int head_dim;
  Fp8Values values;
  bool has_block_scales;  ///< reads scales for every block; the others only those of block 0
  Fp8Sums sums;
  bool is_short;      ///< tiles that divide short sequences; others hide more behind each other
  int consumers = 2;  ///< warpgroups of 64 queries
  int keys = 128;
  int kv_stages = 2;
  bool stages_out = true;  ///< results leave through shared memory by tensor copies
  K7Pass pass = K7Pass::kAfterMaximum;

  static constexpr int kBarrierBytes = 1024;

  /// Bytes of a row that a box of q, k (or v in rows) has: a span of its swizzle.
  constexpr int box_columns() const { return head_dim < 128 ? head_dim : 128; }
  /// Columns of a box of v under kColumns: a span of its swizzle.
  constexpr int value_box() const { return keys % 128 == 0 ? 128 : keys % 64 == 0 ? 64 : 32; }

  /// Tiles of queries in shared memory: the next one comes while this one is worked on, if it fits.
  constexpr int q_stages() const { return head_dim == 256 ? 1 : 2; }

  constexpr AttentionTile tile() const {
    return persistent_tile(consumers, keys, ring_bytes() + (stages_out ? out_bytes() : 0));
  }
  /// Queries, keys and values, values as they came; then barriers, up to a multiple of 1024 bytes;
  /// then results.
  constexpr int ring_bytes() const {
    const int operands = values == Fp8Values::kRows ? 3 : 2;
    const int rings =
        q_stages() * consumers * 64 * head_dim + operands * kv_stages * keys * head_dim;
    return (rings + kBarrierBytes + 1023) / 1024 * 1024;
  }
  constexpr int out_bytes() const { return consumers * 64 * head_dim * 2; }
};

}  // namespace tilewright::kernels
