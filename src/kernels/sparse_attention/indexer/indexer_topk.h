// Contract of the indexer's selection: from logits to rows of the cache that attention reads.
#pragma once

#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "kernels/sparse_attention/kv_pages.h"

#include <cstdint>

namespace tilewright::kernels {

/// rows[t,:] = the cache rows of the topk entries with the largest logits among the first lengths
/// of t, in ascending order of entries, then -1; counts[t] = how many. All entries where there are
/// no more than topk.
///
/// NaN counts as -inf, -0 as 0; ties go to the lower entry. An entry whose page is not there is
/// selected like others and comes out as -1.
struct IndexerTopkParams {
  const float* logits;         ///< [tokens, logits_stride]
  std::int64_t logits_stride;  ///< elements
  IndexerLengths lengths;
  SequenceTokens sequences;  ///< without starts
  BlockTable table;          ///< no table: rows are entries
  std::int32_t page_size, num_rows;
  std::int32_t* rows;        ///< [tokens, rows_stride]
  std::int32_t* counts;      ///< [tokens] or null
  std::int64_t rows_stride;  ///< elements
  std::int32_t tokens, topk;
  std::int32_t held;  ///< logits that a CTA keeps in shared memory
};

inline constexpr int kIndexerTopkMax = 2048;
inline constexpr int kIndexerTopkThreads = 512;
inline constexpr int kIndexerTopkMaxHeld = 40960;  ///< 160 KB
inline constexpr int kIndexerTopkMaxCluster = 8;

/// Entry indexer_topk; grid (cluster, tokens), CTAs of a cluster (cluster, 1, 1) share a row.
/// Dynamic shared memory: 4 * held bytes.
}  // namespace tilewright::kernels
