// Contract of the step before attention over caches where new tokens are not one for each query:
// keys and values to their places in the caches, rotated, and queries rotated.
#pragma once

#include "base/fast_divisor.h"
#include "kernels/attention/attention.h"

#include <cstdint>

namespace tilewright::kernels {

/// How elements are stored.
enum class CacheAppendType : std::int32_t { kBf16, kF16, kE4m3 };
enum class CacheAppendPairs : std::int32_t { kNone, kInterleaved, kHalves };

/// Rows of all sequences: `length` of each, one behind the other, or those that cu says. Row t of
/// the t-th token of packed ones is t * strides.row behind the first.
struct CacheAppendRows {
  const std::int32_t* cu;  ///< [batch + 1], or null
  std::int32_t length;     ///< of each, without cu
  std::int32_t total;      ///< rows in all
};

/// Key j of sequence b stands at position max(lengths[b], 0) + j of its cache: row p % page_size of
/// page block_table[b, p / page_size], or of page b without a table. It is left out if there is no
/// room, or no page, for it. It turns by the angles of max(offsets[b], 0) + j, query i by those of
/// max(offsets[b], 0) + i, or of offsets[b] alone. Angles behind the last count as the last.
///
/// Entry cache_append; a thread for 8 elements of a row of a head: first those of q, then those of
/// k, then of v. Thread b also writes new_lengths[b].
struct CacheAppendParams {
  const void *q, *new_k, *new_v;  ///< rows 16-byte aligned
  void *turned_q, *k, *v;
  const float *cos, *sin;  ///< [max_position, rotary_dim / 2]
  const std::int32_t *lengths, *offsets;
  std::int32_t* new_lengths;  ///< or null
  const std::int32_t* block_table;
  const float *k_descale, *v_descale;  ///< at b * descale_batch + head * descale_head; null: 1
  std::int64_t table_stride;           ///< elements
  AttentionStrides q_strides, turned_q_strides, new_k_strides, new_v_strides;
  AttentionStrides k_strides, v_strides;  ///< batch: from page to page
  CacheAppendRows queries, keys;
  std::int32_t batch, heads, kv_heads, head_dim, value_dim;
  std::int32_t page_size, num_pages, capacity;
  std::int32_t descale_batch, descale_head;
  std::int32_t rotary_dim, max_position;  ///< rotary_dim a multiple of 16
  std::int32_t is_one_position;           ///< all queries of a sequence turn alike
  CacheAppendType type, cache_type;       ///< of what comes, and of the caches
  CacheAppendPairs pairs;
  FastDivisor page_divisor;
};

inline constexpr int kCacheAppendThreads = 256;
inline constexpr int kCacheAppendElems = 8;  ///< of a thread

/// Threads that have something to do; fewer than 2^31.
constexpr std::int64_t cache_append_threads(const CacheAppendParams& p) {
  const std::int64_t q = std::int64_t{p.queries.total} * p.heads * p.head_dim;
  const std::int64_t kv = std::int64_t{p.keys.total} * p.kv_heads * (p.head_dim + p.value_dim);
  const std::int64_t threads = (q + kv) / kCacheAppendElems;
  return threads > p.batch ? threads : p.batch;
}

}  // namespace tilewright::kernels
