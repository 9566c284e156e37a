// Contract of attention with e4m3 operands: how values lie, scales, and the arguments of a kernel.
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
///             (value_columns.h)
enum class Fp8Values { kRows, kColumns };

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

/// What a kernel of e4m3 operands takes beyond AttentionParams.
struct Fp8Numbers {
  Fp8Scales q_scales, k_scales, v_scales;
  Fp8Scales v_reference;  ///< v_scales per block: the largest of a sequence's; else not read
  std::int32_t
      flush_tiles;          ///< kTwoLevel: tiles of keys whose products the tensor core adds up, if
                            ///< the variant can add up more than one
  std::int32_t is_f16_out;  ///< 1: f16, 0: bf16
};

/// AttentionParams for e4m3 operands. q_map and k_map (v_map too under kRows): 4-D [batch, head,
/// row, head_dim] of bytes, boxes of box_columns() bytes, swizzled over box_columns() bytes; rows
/// of a box as in AttentionParams. v_map under kColumns: 4-D [batch, kv_head, head_dim, column] of
/// bytes, boxes of head_dim rows of value_box() columns, swizzled over value_box() bytes. out_map
/// as in AttentionParams. q, k, v and their strides are not read.
///
/// scale_log2 and softcap_scale are those of the real numbers: the kernel multiplies with the
/// scales of q and k.
struct AttentionFp8Params : AttentionParams, Fp8Numbers {};

}  // namespace tilewright::kernels
