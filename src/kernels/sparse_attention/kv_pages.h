// A paged cache as kernels get it: where row `page * page_size + slot` lies (formats/kv_page.h).
#pragma once

#include "formats/kv_page.h"

#include <cstdint>

namespace tilewright::kernels {

/// A cache of 512-wide rows that a kernel writes or reads.
struct KvPages {
  std::uint8_t* pages;       ///< 16-byte aligned
  std::int64_t page_stride;  ///< bytes; a multiple of 16
  FastDivisor page_divisor;  ///< of page_size
  std::int32_t page_size;
  std::int32_t num_rows;  ///< num_pages * page_size; a row outside [0, num_rows) is none
  KvFormat format;
};

/// Tokens of several sequences, those of one after another: sequence b has tokens
/// [offsets[b], offsets[b + 1]) at positions starts[b], starts[b] + 1, ...
struct SequenceTokens {
  const std::int32_t* offsets;  ///< [batch + 1]; null: q_len tokens each
  const std::int32_t* starts;   ///< [batch] position of the first; < 0: the sequence takes no part
  std::int32_t batch, q_len;
};

/// Pages of each sequence: logical row i of sequence b is row
/// table[b * stride + i / page_size] * page_size + i % page_size of the cache. A page of -1, and
/// what lies beyond `blocks`, is none.
struct BlockTable {
  const std::int32_t* table;
  std::int64_t stride;
  std::int32_t blocks;
};

}  // namespace tilewright::kernels
