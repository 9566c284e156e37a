// Contract of attention over keys in pages, and with lengths that only the device knows.
#pragma once

#include "base/fast_divisor.h"
#include "kernels/attention/attention.h"

#include <cstdint>
#include <numeric>

namespace tilewright::kernels {

/// Who copies a tile of keys: one thread its few parts, as many as pages of 64 make of it, warps
/// more of them, or, where these are short, warps row by row.
enum class PageCopies : std::int32_t { kThread, kWarps, kRows };
constexpr int thread_parts(int keys) {
  return keys / std::gcd(keys, 64);
}
inline constexpr int kPageWarps = 4;
inline constexpr int kTileLists = 2;  ///< see paged_tiles.h

/// Rows of a tile are queries times the heads that share keys, up to 64 of them: row r of a
/// sequence's is query r >> group_shift of head r % (1 << group_shift) of a group. Tiles are copied
/// in parts of page_box rows, none of which crosses a page.
struct AttentionPages {
  const std::int32_t* q_lengths;    ///< [batch], or null
  const std::int32_t* kv_lengths;   ///< [batch], or null
  const std::int32_t* block_table;  ///< [batch, table_stride] pages, or null: no pages
  std::int64_t table_stride;
  std::int32_t page_size;   ///< keys; without pages more than there are
  std::int32_t page_box;    ///< divides page_size and a tile of keys
  std::int32_t tile_parts;  ///< keys of a tile / page_box
  PageCopies copies;
  std::int32_t tile_pages, tile_rows;  ///< keys of a tile / page_size, and the rest
  std::int32_t group_shift;            ///< log2 of the heads in a tile
  std::int32_t num_pages;              ///< kRows: no other page has rows
  /// Keys of a chunk, of which a query sees its own alone; kUnboundedWindow: all are one.
  std::int32_t chunk;
  FastDivisor chunk_divisor;
};

/// heads is the number of groups, q_tiles that of tiles of the longest sequence's rows. Maps of q
/// and out are [batch, row, head, head_dim] in boxes of 64 rows as above, those of k and v [page,
/// head, row, head_dim] in boxes of page_box rows. next_tile: [kTileLists], not null.
struct AttentionPagedParams : AttentionParams {
  AttentionPages pages;
};

}  // namespace tilewright::kernels
