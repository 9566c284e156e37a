// Contract of lists that follow from positions: sliding windows, and all visible compressed rows.
#pragma once

#include "formats/kv_page.h"

#include <cstdint>

namespace tilewright::kernels {

/// Query i of sequence b stands at p = first_positions[b] + i. Its entries e: of a window
/// (ratio = 0) max(0, p - window + 1) .. p, else 0 .. (p + 1) / ratio - 1; of more than topk the
/// last ones of a window, the first ones else. Entry e lies at e' = e, or e % ring: row
/// page_table[b, e' / page_size] * page_size + e' % page_size, or without a page table
/// b * rows_per_sequence + e'. Pages of the table below 0, and entries beyond it, give -1.
struct SparseListParams {
  const std::int32_t* first_positions;  ///< [batch]
  const std::int32_t* page_table;       ///< [batch, pages_per_sequence] or null
  std::int32_t* indices;                ///< -1 behind a query's entries
  std::int32_t* lengths;                ///< [batch * q_len] or null
  std::int64_t index_stride;            ///< elements from query to query
  std::int64_t rows_per_sequence;
  std::int32_t queries, q_len, topk;
  std::int32_t window, ratio, ring;
  std::int32_t page_size, pages_per_sequence;
};

/// Entry sparse_lists; a warp per query, grid (ceil(queries / kSparseListQueries)).
inline constexpr int kSparseListQueries = 4;
inline constexpr int kSparseListThreads = kSparseListQueries * 32;

}  // namespace tilewright::kernels
