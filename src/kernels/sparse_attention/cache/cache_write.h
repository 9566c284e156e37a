// Contract of the cache writer: queries and cache rows of DeepSeek-V4, from projections to what
// attention reads, in one launch.
#pragma once

#include "kernels/sparse_attention/kv_pages.h"

#include <cstdint>

namespace tilewright::kernels {

/// q_out[t,h,:] = bf16(rotate(q[t,h,:] / sqrt(mean(q[t,h,:]^2) + eps), positions[t]))
/// row          = bf16(rotate(kv[t,:] / sqrt(mean(kv[t,:]^2) + eps) * kv_weight, positions[t]))
/// cache[slots[t]] = encode(row), kv_out[t] = decode(encode(row))
///
/// The last 64 of 512 are rotated, pairs (2i, 2i+1); all in fp32 with one rounding. Codes and
/// scales are those of formats/block_scale.h: fp8_64_pow2, or nvfp4 with G = 1.
/// A position < 0 stands for no token: q_out zeros, nothing to the cache. One beyond the table
/// gives NaNs in q_out and nothing to the cache. Two tokens of one slot: either.
struct CacheWriteParams {
  const std::uint16_t* q;          ///< bf16 [tokens, heads, 512], 16-byte aligned rows
  std::uint16_t* q_out;            ///< likewise; may be q
  const void* kv;                  ///< [tokens, 512] bf16 or fp32; null: no cache rows
  const std::uint16_t* kv_weight;  ///< bf16 [512]
  const std::int32_t* positions;   ///< [tokens]
  const float* rope;               ///< [num_positions, 64]: 32 cosines, 32 sines
  const std::int32_t* slots;       ///< [tokens] rows of the cache; outside it: not written
  std::uint16_t* kv_out;           ///< bf16 [tokens, 512] or null
  std::int64_t q_token_stride, q_head_stride, q_out_token_stride, q_out_head_stride;
  std::int64_t kv_stride, kv_out_stride;  ///< elements; all of them multiples of 8
  KvPages cache;
  std::int32_t tokens, heads;  ///< heads 0: no queries
  std::int32_t num_positions;
  std::int32_t is_kv_f32;
  float eps;
};

/// Entry cache_write; a warp per row, first those of the cache (if kv is not null), then queries.
inline constexpr int kCacheWriteWarps = 8;
inline constexpr int kCacheWriteThreads = kCacheWriteWarps * 32;

/// cache_read: out[i,:] = decode(cache[rows[i]]), zeros where the cache has no such row.
struct CacheReadParams {
  KvPages cache;
  const std::int32_t* rows;  ///< [count]
  std::uint16_t* out;        ///< bf16, 16-byte aligned rows
  std::int64_t out_stride;   ///< elements; a multiple of 8
  std::int32_t count;
};

/// cache_lists: rows of a cache that each token may look at, as a block table places them.
///
///   window > 0  positions max(0, p - window + 1) .. p; ring > 0: position q is logical row q mod
///               ring, none if the sequence's last token of this call is at q + ring or beyond.
///               window = 1 lists the row to write a token to
///   window = 0  entries 0 .. (p + 1) / ratio - 1 of a compressor
///
/// Behind them -1 up to list_len; list_len smaller than the list cuts it.
struct CacheListsParams {
  SequenceTokens sequences;
  BlockTable table;
  std::int32_t* lists;    ///< [tokens, list_stride] or null
  std::int32_t* lengths;  ///< [tokens] or null
  std::int32_t*
      positions;  ///< [tokens] or null: of each token, -1 of a sequence that takes no part
  std::int64_t list_stride;
  std::int32_t tokens, list_len;
  std::int32_t page_size, num_rows, ring, window, ratio;
};

/// Entry cache_read: a warp per row.
inline constexpr int kCacheReadWarps = 8;
inline constexpr int kCacheReadThreads = kCacheReadWarps * 32;

/// Entry cache_lists: so many threads per token, ceil(tokens * lanes / kCacheListThreads) CTAs.
inline constexpr int kCacheListThreads = 128;
constexpr int cache_list_lanes(std::int32_t tokens, std::int32_t list_len) {
  return list_len == 1 ? 1 : list_len <= 64 || tokens > 1024 ? 32 : kCacheListThreads;
}

}  // namespace tilewright::kernels
