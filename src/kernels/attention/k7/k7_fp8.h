// K7: queries, keys, values and weights in e4m3, twice the products a clock.
#pragma once

#include "kernels/attention/attention.h"

namespace tilewright::kernels {

/// How values lie in memory. In both forms rows and columns begin at multiples of 16 bytes.
///   kRows     [batch, tokens, kv_heads, head_dim], as keys; the kernel transposes them
///   kColumns  [batch, kv_heads, head_dim, columns]: a column a key, kv_len rounded up to 16 of
///             them, those behind the last key zeros. In every group of 16 keys column
///             4q + 2h + c holds key 8h + 2q + c (q < 4; h, c < 2): then accumulators of q k^T are
///             operands of p v as they lie. Of packed sequences number b begins at column
///             value_column(cu_kv[b], b), and there are value_columns(all tokens, batch)
enum class Fp8Values { kRows, kColumns };

/// Key of a group of 16 that its column `slot` of kColumns holds.
constexpr int value_slot_key(int slot) {
  return slot / 2 % 2 * 8 + slot / 4 * 2 + slot % 2;
}
constexpr std::int64_t value_column(std::int64_t first_token, std::int64_t sequence) {
  return (first_token + 15) / 16 * 16 + 16 * sequence;
}
constexpr std::int64_t value_columns(std::int64_t tokens, std::int64_t sequences) {
  return (tokens + 15) / 16 * 16 + 16 * (sequences + 1);
}

/// Tokens that share a scale where scales are per block; counted from a sequence's first token.
inline constexpr int kQueryScaleBlock = 64, kKeyScaleBlock = 128;

/// Factors by which stored numbers are to be multiplied: positive and finite, that of (batch, head,
/// block) at values[batch * batch_stride + head * head_stride + block * block_stride]. Strides of
/// what they do not depend on are 0.
struct Fp8Scales {
  const float* values;
  std::int64_t batch_stride, head_stride;
  std::int32_t block_stride;     ///< 0 or 1
  std::int32_t heads_per_scale;  ///< q: query heads that share `head`, i.e. 1 or the group; else 1
};

/// AttentionParams for e4m3 operands. q_map and k_map (v_map too under kRows): 4-D [batch, head,
/// row, head_dim] of bytes, boxes of box_columns() bytes, swizzled over box_columns() bytes; rows
/// of a box as in AttentionParams. v_map under kColumns: 4-D [batch, kv_head, head_dim, column] of
/// bytes, boxes of head_dim rows of value_box() columns, swizzled over value_box() bytes. out_map
/// as in AttentionParams. q, k, v and their strides are not read.
///
/// scale_log2 and softcap_scale are those of the real numbers: the kernel multiplies with the
/// scales of q and k.
struct AttentionFp8Params : AttentionParams {
  Fp8Scales q_scales, k_scales, v_scales;
  Fp8Scales v_reference;  ///< v_scales per block: the largest of a sequence's; else not read
  std::int32_t
      flush_tiles;          ///< kTwoLevel: tiles of keys whose products the tensor core adds up, if
                            ///< the variant can add up more than one
  std::int32_t is_f16_out;  ///< 1: f16, 0: bf16
};

/// Who adds p v up: the tensor core over all keys, keeping 13 fraction bits; or it over a few tiles
/// and f32 registers over those.
enum class Fp8Sums { kOneLevel, kTwoLevel };

/// When a warpgroup passes its turn on: when its products are issued, when its scores are there, or
/// when their maxima are.
enum class K7Pass { kAtOnce, kAfterScores, kAfterMaximum };

/// How a variant cuts the problem. Entries attention_k7_NAME. Every feature of AttentionParams, any
/// grid; one CTA per multiprocessor is meant.
struct K7Variant {
  const char* name;  ///< "d128_rows"
  int head_dim;
  Fp8Values values;
  bool has_block_scales;  ///< reads scales for every block; the others only those of block 0
  Fp8Sums sums;
  int consumers;  ///< warpgroups of 64 queries
  int keys;
  int kv_stages = 2;
  bool stages_out = false;  ///< results leave through shared memory by tensor copies
  K7Pass pass = K7Pass::kAfterMaximum;
  bool is_short = false;  ///< tiles that divide short sequences; others hide more behind each other

  static constexpr int kBarrierBytes = 1024;

  /// Bytes of a row that a box of q, k (or v in rows) has: a span of its swizzle.
  constexpr int box_columns() const { return head_dim < 128 ? head_dim : 128; }
  /// Columns of a box of v under kColumns: a span of its swizzle.
  constexpr int value_box() const { return keys % 128 == 0 ? 128 : keys % 64 == 0 ? 64 : 32; }

  /// Tiles of queries in shared memory: the next one comes while this one is worked on, if it fits.
  constexpr int q_stages() const { return head_dim == 256 ? 1 : 2; }

  constexpr AttentionTile tile() const {
    return {consumers * 64,
            keys,
            64,
            (consumers + 1) * 128,
            ring_bytes() + (stages_out ? out_bytes() : 0),
            true};
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

inline constexpr K7Variant kK7Variants[] = {
    {.name = "d64",
     .head_dim = 64,
     .values = Fp8Values::kColumns,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 160,
     .stages_out = true},
    {.name = "d64_rows",
     .head_dim = 64,
     .values = Fp8Values::kRows,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 160,
     .stages_out = true},
    {.name = "d64_block",
     .head_dim = 64,
     .values = Fp8Values::kColumns,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 128,
     .stages_out = true},
    {.name = "d64_rows_block",
     .head_dim = 64,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 128,
     .stages_out = true},
    {.name = "d64_two_level",
     .head_dim = 64,
     .values = Fp8Values::kColumns,
     .has_block_scales = true,
     .sums = Fp8Sums::kTwoLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d64_rows_two_level",
     .head_dim = 64,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kTwoLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d128",
     .head_dim = 128,
     .values = Fp8Values::kColumns,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 96,
     .kv_stages = 3,
     .stages_out = true,
     .pass = K7Pass::kAfterScores},
    {.name = "d128_rows",
     .head_dim = 128,
     .values = Fp8Values::kRows,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 96,
     .kv_stages = 3,
     .stages_out = true,
     .pass = K7Pass::kAfterScores},
    {.name = "d128_block",
     .head_dim = 128,
     .values = Fp8Values::kColumns,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d128_rows_block",
     .head_dim = 128,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 96,
     .kv_stages = 3,
     .stages_out = true,
     .pass = K7Pass::kAfterScores},
    {.name = "d128_two_level",
     .head_dim = 128,
     .values = Fp8Values::kColumns,
     .has_block_scales = true,
     .sums = Fp8Sums::kTwoLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d128_rows_two_level",
     .head_dim = 128,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kTwoLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d256",
     .head_dim = 256,
     .values = Fp8Values::kColumns,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d256_rows",
     .head_dim = 256,
     .values = Fp8Values::kRows,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 96},
    {.name = "d256_block",
     .head_dim = 256,
     .values = Fp8Values::kColumns,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 96,
     .stages_out = true},
    {.name = "d256_rows_block",
     .head_dim = 256,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 96},
    {.name = "d256_two_level",
     .head_dim = 256,
     .values = Fp8Values::kColumns,
     .has_block_scales = true,
     .sums = Fp8Sums::kTwoLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true},
    {.name = "d256_rows_two_level",
     .head_dim = 256,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kTwoLevel,
     .consumers = 2,
     .keys = 96},
    {.name = "d64_short",
     .head_dim = 64,
     .values = Fp8Values::kColumns,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 128,
     .stages_out = true,
     .is_short = true},
    {.name = "d128_short",
     .head_dim = 128,
     .values = Fp8Values::kColumns,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true,
     .is_short = true},
    {.name = "d128_rows_short",
     .head_dim = 128,
     .values = Fp8Values::kRows,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true,
     .is_short = true},
    {.name = "d64_rows_short",
     .head_dim = 64,
     .values = Fp8Values::kRows,
     .has_block_scales = false,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 3,
     .keys = 128,
     .stages_out = true,
     .is_short = true},
    {.name = "d128_rows_block_short",
     .head_dim = 128,
     .values = Fp8Values::kRows,
     .has_block_scales = true,
     .sums = Fp8Sums::kOneLevel,
     .consumers = 2,
     .keys = 128,
     .stages_out = true,
     .is_short = true},
};

/// nullptr if there is none. Without block scales any variant will do, so one that has none is
/// preferred where it exists.
constexpr const K7Variant* find_k7_variant(int head_dim, Fp8Values values, bool needs_block_scales,
                                           Fp8Sums sums, bool is_short = false) {
  const K7Variant* found = nullptr;
  for (const K7Variant& v : kK7Variants) {
    if (v.head_dim != head_dim || v.values != values || v.sums != sums) continue;
    if (v.is_short != is_short) continue;
    if (needs_block_scales && !v.has_block_scales) continue;
    if (found == nullptr || (found->has_block_scales && !v.has_block_scales)) found = &v;
  }
  return found;
}

}  // namespace tilewright::kernels
