// Contract of the lightning indexer's logits on Blackwell's tensor cores.
#pragma once

#include "kernels/sparse_attention/indexer/indexer_logits.h"

#include <algorithm>
#include <cstdint>

namespace tilewright::kernels {

/// The logits of IndexerLogitsParams or IndexerRangeLogitsParams. Their key_map: boxes of box_rows
/// rows, swizzled over the bytes of a row, 128B for e4m3 and 64B for MXFP4.
template <class Logits>
struct TensorIndexerParamsOf {
  alignas(64) std::uint8_t q_map[128];  ///< codes: bytes of a row, heads, tokens; boxes of a token,
                                        ///< head_slots rows; swizzled as key_map
  Logits logits;
  std::int32_t head_slots;  ///< 8, 16, 32 or 64: columns that a token has, not fewer than heads
  std::int32_t stages;      ///< tiles of keys in shared memory
  std::int32_t columns;     ///< most that the tokens of a part of a unit have: room for them
};
using TensorIndexerParams = TensorIndexerParamsOf<IndexerLogitsParams>;
using TensorIndexerRangeParams = TensorIndexerParamsOf<IndexerRangeLogitsParams>;

/// Entries sm100_indexer_logits_{fp8,mxfp4} and sm100_indexer_range_logits_{fp8,mxfp4}; grid: the
/// ctas of the schedule, one per SM.
inline constexpr int kTensorIndexerThreads = 384;
inline constexpr int kTensorIndexerKeys = 128;     ///< of a tile
inline constexpr int kTensorIndexerColumns = 256;  ///< of a part: four tokens of 64 heads
inline constexpr int kTensorIndexerMaxStages = 12;
/// Fewest: a warp that fetches has so many under way before it hands over the first.
inline constexpr int kTensorIndexerMinStages = 6;

constexpr int tensor_indexer_tile_bytes(IndexFormat format) {
  return kTensorIndexerKeys * index_data_bytes(format);
}
/// Columns of so many tokens, whole runs of 64; a part has at most kTensorIndexerColumns.
constexpr int tensor_indexer_columns(int tokens, int head_slots) {
  const int columns = (tokens * head_slots + 63) / 64 * 64;
  return columns < kTensorIndexerColumns ? columns : kTensorIndexerColumns;
}

/// Dynamic shared memory of a launch: what is small, tiles of keys, codes of two parts.
struct TensorIndexerMemory {
  static constexpr int kSmallBytes = 12 * 1024, kLargestCtaBytes = 232448;

  int stages, bytes;

  constexpr TensorIndexerMemory(IndexFormat format, int columns) {
    const int queries = 2 * columns * index_data_bytes(format);
    const int tile = tensor_indexer_tile_bytes(format);
    stages = std::min((kLargestCtaBytes - kSmallBytes - queries) / tile, kTensorIndexerMaxStages);
    bytes = kSmallBytes + queries + stages * tile;
  }
};
static_assert(TensorIndexerMemory(IndexFormat::kFp8, kTensorIndexerColumns).stages >=
              kTensorIndexerMinStages);

}  // namespace tilewright::kernels
