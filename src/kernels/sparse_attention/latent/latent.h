// Contract of attention whose keys are a narrow part and the values themselves: over all keys of
// caches, in pages or not.
#pragma once

#include "base/fast_divisor.h"
#include "kernels/sparse_attention/decode.h"
#include "kernels/sparse_attention/sparse_merge.h"

#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kLatentKeyDims = 64;   ///< of k and q
inline constexpr int kLatentTileRows = 64;  ///< rows of a CTA

/// Where a head's row of a key is: data + page * page_stride + slot * row_stride + head *
/// head_stride; bytes, multiples of 16.
struct LatentRows {
  const std::uint8_t* data;
  std::int64_t page_stride, row_stride, head_stride;
};

/// Key j of sequence b is slot j % page_size of page table[b * table_stride + j / page_size], or of
/// page b if there is no table. What a page outside [0, num_pages) has counts as zeros.
struct LatentCache {
  LatentRows k, v;
  const std::int32_t* table;
  std::int64_t table_stride;  ///< elements
  FastDivisor page_divisor;
  std::int32_t page_size, num_pages;
  std::int32_t capacity;  ///< keys that a sequence has room for; lengths beyond count as this
};

/// s_j = scale * (q[b,i,h,:] . k[b,j,g,:] + qv[b,i,h,:] . v[b,j,g,:]), g = h / group
/// out[b,i,h,:] = sum_j exp(s_j) v[b,j,g,:] / (exp(sink[h]) + sum_j exp(s_j)); lse without the sink
/// over the keys j < n - (is_causal ? q_len - 1 - i : 0), n = clamp(lengths[b], 0, capacity). No
/// key: out 0, lse empty_lse. Bytes of keys from n on may be anything, NaN included.
///
/// Rows of a (sequence, KV head) are r = i * group + h % group. A tile is `ctas` * 64 of them,
/// those of a group of CTAs; tile t of sequence b and KV head g is walk (b * kv_heads + g) * tiles
/// + t. Schedules and partial results are those of decode.h with walks for queries, and the rows
/// of a tile for heads: partial_out [slot, ctas * 64, value dims].
struct LatentParams {
  const std::uint16_t *q, *qv;  ///< rows of 64, and of values' dims or null
  std::uint16_t* out;
  float* lse;                                                     ///< or null
  const float* sink;                                              ///< [heads] or null
  const std::int32_t* lengths;                                    ///< [batch]; null: capacity
  SparseStrides q_strides, qv_strides, out_strides, lse_strides;  ///< all but the last: times 8
  LatentCache cache;
  float scale_log2, empty_lse;
  std::int32_t batch, q_len, heads, kv_heads, group;
  std::int32_t ctas;   ///< of a tile
  std::int32_t tiles;  ///< of a (sequence, KV head)
  std::int32_t is_causal;
  std::int32_t groups;  ///< of the launch
  FastDivisor group_divisor;
  const SparseWork* work;          ///< or null: groups take whole tiles in turn
  const std::int32_t* work_begin;  ///< [groups + 1] or null
  float* partial_out;
  float* partial_lse;
  /// The driver's opaque CUtensorMap of [page, head, slot, dims], in boxes of 64 dims and box_rows
  /// slots, which a page has a whole number of unless there is no table.
  std::int32_t box_rows;
  alignas(64) std::uint8_t k_map[128];
  alignas(64) std::uint8_t v_map[128];
  /// Of entries latent_lists_..., whose keys are rows of 576 that a list names: the values, then k.
  /// A query is a sequence of its own (q_len is 1, lengths are those of lists or null), its list
  /// that of its number; the cache is not read but for its capacity. Entries that name no row count
  /// as keys of weight 0.
  SparseKeys lists;
  float* max_logits;  ///< or null: max_j s_j, strides of lse. Never with partial results
};

/// Merges partial results, entries latent_combine_TYPE_vDIMS: grid (groups, ctas * 64 /
/// kSparseCombineHeads), a warp per row. latent_combine_few_...: grid (tiles in all, ctas * 64 *
/// DIMS / 128 / kSparseCombineHeads), a warp per 128 dims of a row.
struct LatentCombineParams {
  LatentParams latent;
  const SparseMerge* merges;  ///< [groups]
};

}  // namespace tilewright::kernels
