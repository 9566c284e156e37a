// Contract of the step before decoding: new keys and values to their places in the cache, rotated,
// and queries rotated.
#pragma once

#include "kernels/attention/decode/decode.h"

namespace tilewright::kernels {

enum class DecodePairs : std::int32_t { kNone, kInterleaved, kHalves };

/// Token i of sequence b stands at position lengths[b] + i, b's n-th key. It is left out if there
/// is no room, or no page, for it.
///
/// Entries decode_append_KV, KV bf16, f16, e4m3 (with 16-bit inputs of either kind); a warp a
/// (token, head): first those of q unless there are no pairs, then those of k, then of v.
struct DecodeAppendParams {
  const std::uint16_t *q, *new_k, *new_v;
  std::uint16_t* rotated;  ///< q afterwards: [batch, q_len, heads, head_dim]; null: q stays
  const float *cos, *sin;  ///< [max_position, rotary_dim / 2]
  const std::int32_t* lengths;
  DecodeCache cache;
  DecodeDescale descale;
  DecodeStrides q_strides, k_strides, v_strides;
  std::int32_t batch, q_len, heads, kv_heads, head_dim;
  std::int32_t rotary_dim, max_position;
  std::int32_t is_f16;  ///< the inputs
  DecodePairs pairs;
};

inline constexpr int kDecodeAppendWarps = 8;
inline constexpr int kDecodeAppendThreads = 32 * kDecodeAppendWarps;

constexpr std::int64_t decode_append_rows(const DecodeAppendParams& p) {
  return std::int64_t{p.batch} * p.q_len *
         ((p.rotated != nullptr ? p.heads : 0) + 2 * std::int64_t{p.kv_heads});
}

}  // namespace tilewright::kernels
