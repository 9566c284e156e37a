// Contract of what makes masks into lists of keys.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// List l = b * rows + i has the keys j, ascending, whose entry j / key_block of row
/// i / query_block of the mask of b is set; -1 behind them. Lengths are at most topk, totals are
/// not.
///
/// Entries mask_lists_bytes (an entry is a byte that is not 0) and mask_lists_bits (bit e % 8 of
/// byte e / 8); a CTA a list: batch * rows CTAs.
struct MaskListsParams {
  const std::uint8_t* mask;
  std::int32_t* indices;
  std::int32_t* lengths;
  std::int32_t* totals;             ///< or null
  const std::int32_t* block_table;  ///< [batch, pages], or null: indices are keys, not slots
  std::int64_t mask_batch_bytes, mask_row_bytes, index_stride, table_stride;
  std::int32_t rows, keys, entries;  ///< entries of a row of the mask
  std::int32_t query_block, key_block, topk, page_size;
};

inline constexpr int kMaskListsThreads = 256;
inline constexpr int kMaskListsEntries = 32;  ///< of a thread at a time

}  // namespace tilewright::kernels
