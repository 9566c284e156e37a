// What the float64 runner and the check of a kernel's stages both know of a layer: its angles, its
// compressors, and which rows its tokens attend.
#pragma once

#include "formats/block_format.h"
#include "model/float64/rows.h"
#include "model/float64/weights64.h"
#include "model/model.h"
#include "reference/sparse_attention/compressor.h"
#include "reference/sparse_attention/sparse_attention.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::model {

/// Of rotary pairs: with YaRN where a layer has a compressed cache.
Doubles layer_frequencies(const Config& config, LayerKind kind);

/// `dim`: of an entry or of an indexer key.
reference::CompressorParams compressor_params(LayerKind kind, std::int64_t dim);

/// Of the indexer's keys and queries; nullptr: bf16.
const BlockFormat* index_blocks(IndexFormat format);

/// For each position all entries that it sees, then -1, `width` of them.
std::vector<std::int32_t> all_entries(std::span<const std::int32_t> positions, std::int64_t ratio,
                                      std::int64_t& width);

/// What queries may look at: window rows of all tokens from position 0, entries from number 0.
struct AttendedRows {
  std::span<const double> kv = {}, compressed = {};
  std::span<const std::int32_t> entries = {};  ///< [queries, width], -1: none
  std::int64_t width = 0;
  bool has_magnitudes = false;
};

/// Attention of the queries q [positions, heads, head_dim] over their windows and entries.
reference::SparseAttentionResult attend64(const Config& config, const Rows& threads,
                                          std::span<const double> sink, std::span<const double> q,
                                          std::span<const std::int32_t> positions,
                                          const AttendedRows& rows);

}  // namespace tilewright::model
