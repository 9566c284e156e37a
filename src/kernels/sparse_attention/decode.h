// Contract of all kernels that attend over chosen rows of paged caches, and of the work they walk.
#pragma once

#include "formats/kv_page.h"

#include <cstdint>

namespace tilewright::kernels {

/// Work is cut in blocks of this many entries of a list.
inline constexpr int kSparseBlockKeys = 64;
inline constexpr int kSparseMaxHeads = 128;

/// A cache, and for each query the list of its rows to look at. A list entry below 0, or not below
/// num_rows, names no row: it counts as a key with weight 0 whatever its bytes would be. So does
/// each entry from the list's length on, which need not be readable as an index beyond topk. Bytes
/// of rows that no entry names may be anything, NaN included.
struct SparseKeys {
  const std::uint8_t* pages;    ///< formats/kv_page.h; 16-byte aligned
  std::int64_t page_stride;     ///< bytes; a multiple of 16
  FastDivisor page_divisor;     ///< of page_size
  std::int32_t page_size;       ///< 1 to 2^20
  std::int32_t num_rows;        ///< num_pages * page_size, below 2^31
  const std::int32_t* indices;  ///< page * page_size + slot; 4-byte aligned only
  std::int64_t index_stride;    ///< elements from query to query (b * q_len + i)
  std::int32_t topk;            ///< entries of a list; 0: no such cache, all pointers null
  const std::int32_t* lengths;  ///< entries that count, clamped to [0, topk]; null: all topk
  std::int32_t length_stride_batch, length_stride_query;  ///< lengths[b * .. + i * ..]
};

/// A piece of a query for one group: blocks [begin_block, end_block) of its two lists. Those of
/// keys[0] come first, ceil(length / 64) of them, then those of keys[1] likewise. A query without
/// any block has one piece with begin_block = end_block = 0.
struct SparseWork {
  std::int32_t query;  ///< b * q_len + i
  std::int32_t begin_block, end_block;
  std::int32_t partial;  ///< where in partial_out the result goes; -1: it is the query's result
};

struct SparseStrides {
  std::int64_t batch, query, head;  ///< elements
};

/// s_j = scale * q[b,i,h,:] . x_j over the rows x_j of both lists, one softmax:
///   out[b,i,h,:] = sum_j exp(s_j) x_j / (exp(sink[h]) + sum_j exp(s_j))
///   lse[b,i,h]   = ln sum_j exp(s_j), max_logits = max_j s_j      (both without the sink)
/// No valid row: out 0, lse empty_lse, max_logits -inf. A sink of +inf: out 0; of -inf: as without.
///
/// Rows are of 512 numbers. Entries for rows of DeepSeek-V3, formats kBf16Mla and kFp8Mla, multiply
/// all 576 numbers of q and x_j for s_j, and the first 512 of x_j for out.
///
/// Numbers  rows to bf16 (fp8 and nvfp4: code times scale, exact in the normal range; kFp8Mla:
///          rounded, by at most 0.51 units in the last place), products
///          accumulated in fp32, exp(s_j - running maximum) to bf16 before it multiplies x_j and in
///          fp32 in the sum, out to bf16 once
///
/// A group is what walks work together: a CTA, or a cluster. Group c does
/// work[work_begin[c]] to work[work_begin[c + 1] - 1]. Without work (null) it does the queries c,
/// c + groups, c + 2 groups, ... whole.
///
/// A partial result is the one of its blocks alone, divided by its own sum, without sink:
/// partial_out[slot, h, :] in fp32, partial_lse[slot, h] = log2 sum_j 2^(scale_log2 q . x_j); no
/// valid row: zeros and -inf.
struct SparseDecodeParams {
  const std::uint16_t* q;  ///< bf16; rows of 512 (or 576), 16-byte aligned
  std::uint16_t* out;      ///< bf16; rows of 512, 16-byte aligned
  float* lse;              ///< or null
  float* max_logits;       ///< or null; never with partial results. Same strides as lse
  const float* sink;       ///< [heads] or null
  SparseStrides q_strides, out_strides, lse_strides;  ///< q and out: multiples of 8
  SparseKeys keys[2];                                 ///< window, compressed
  float scale_log2;                                   ///< scale * log2(e)
  std::int32_t batch, q_len, heads;
  std::int32_t groups;             ///< of the launch
  float empty_lse;                 ///< lse of a query without a valid row: -inf; +inf: FlashMLA's
  const SparseWork* work;          ///< or null
  const std::int32_t* work_begin;  ///< [groups + 1], or null
  float* partial_out;              ///< [slot, heads, 512], 16-byte aligned
  float* partial_lse;              ///< [slot, heads]
};

/// Slots of partial results that a schedule for this many groups may use: a group has at most two
/// pieces of queries that it does not do alone.
constexpr std::int64_t sparse_partial_slots(std::int64_t groups) {
  return 2 * groups;
}

}  // namespace tilewright::kernels
