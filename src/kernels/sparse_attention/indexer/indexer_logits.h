// Contract of the lightning indexer's logits: every visible key of a sequence against the queries
// of its tokens.
#pragma once

#include "kernels/sparse_attention/indexer/index_pages.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::kernels {

/// How many keys a token sees: lengths[t], or without lengths the entries that a compressor has
/// made up to its position, (positions[t] + 1) / ratio. At most max_len. A position below 0, or not
/// below num_positions, stands for no token, which sees none; without positions all are tokens.
struct IndexerLengths {
  const std::int32_t* positions;  ///< [tokens]; or null, with lengths
  const std::int32_t* lengths;    ///< [tokens], < 0: none; or null
  FastDivisor ratio_divisor;      ///< of ratio
  std::int32_t num_positions, max_len;

  constexpr std::int32_t of(std::int32_t token) const {
    const std::int32_t position = positions != nullptr ? positions[token] : 0;
    if (positions != nullptr && (position < 0 || position >= num_positions)) return 0;
    const std::int32_t n = lengths != nullptr ? lengths[token]
                                              : static_cast<std::int32_t>(ratio_divisor.divide(
                                                    static_cast<std::uint32_t>(position) + 1));
    return n < 0 ? 0 : n < max_len ? n : max_len;
  }
};

/// Keys of a token where keys have no pages: those from `begin` on, before `end`.
struct IndexerRange {
  std::int32_t begin, end;  ///< 0, 0 if there is none
};
struct IndexerRanges {
  const std::int32_t* starts;  ///< [tokens] or null: all begin at 0
  const std::int32_t* ends;    ///< [tokens]
  std::int32_t num_keys;       ///< keys beyond are not there
  std::int32_t columns;        ///< logits of a token
  std::int32_t is_compressed;  ///< column 0 is the token's first key, else key 0

  constexpr IndexerRange of(std::int32_t token) const {
    const std::int32_t start = starts != nullptr ? starts[token] : 0, stop = ends[token];
    const std::int32_t begin = start < 0 ? 0 : start, end = stop < num_keys ? stop : num_keys;
    if (end <= begin) return {0, 0};
    if (is_compressed == 0) return {begin, end};
    return {begin, end - begin < columns ? end : begin + columns};
  }
  /// Where its logits stand: that of key j in column j - shift.
  constexpr std::int32_t shift(const IndexerRange& range) const {
    return is_compressed != 0 ? range.begin : 0;
  }
};

inline constexpr int kIndexerUnitTokens = 8;
inline constexpr int kIndexerChunk = 256;  ///< keys that a CTA takes at a time

/// Up to kIndexerUnitTokens neighbouring tokens of one sequence, whose queries a CTA keeps while
/// keys stream by. It costs indexer_unit_cost() and one a chunk; first_cost is that of all units
/// before.
struct IndexerUnit {
  std::int32_t token, count;
  union {
    std::int32_t sequence;     ///< whose pages have its keys
    std::int32_t first_chunk;  ///< of keys without pages: where those of its tokens begin
  };
  std::int32_t num_keys;  ///< of the token that sees most
  std::int32_t first_cost;
};
/// To load its queries, in chunks: nothing for decode, where keys arrive meanwhile.
constexpr std::int32_t indexer_unit_cost(std::int32_t tokens) {
  return tokens / 4;
}

/// What a CTA does: the part of all costs that is its own, and the unit in which that begins.
struct IndexerShare {
  std::int32_t begin_cost, end_cost, unit_idx;
  IndexerUnit unit;
};

/// indexer_schedule: cuts tokens into units, and their chunks into equal shares for `ctas` CTAs.
struct IndexerScheduleParams {
  IndexerLengths lengths;
  const std::int32_t* offsets;  ///< [batch + 1] first tokens of sequences; null: q_len each
  IndexerUnit* units;           ///< [indexer_max_units + 1]
  IndexerShare* shares;         ///< [ctas]
  std::int32_t tokens, batch, q_len, ctas;
};
/// indexer_range_schedule: the same for keys without pages, all of which are one sequence. A unit's
/// tokens are neighbours whose ranges together have at most a chunk more than the longest of them.
struct IndexerRangeScheduleParams {
  IndexerRanges ranges;
  IndexerUnit* units;    ///< [tokens + 1]
  IndexerShare* shares;  ///< [ctas]
  std::int32_t tokens, ctas;
};
/// Entries indexer_schedule and indexer_range_schedule, one CTA.
inline constexpr int kIndexerScheduleThreads = 1024;

/// Most units there can be.
constexpr std::int64_t indexer_max_units(std::int64_t tokens, std::int64_t batch,
                                         std::int64_t q_len, bool is_ragged) {
  if (is_ragged) return (tokens + kIndexerUnitTokens - 1) / kIndexerUnitTokens + batch;
  return batch * ((q_len + kIndexerUnitTokens - 1) / kIndexerUnitTokens);
}

/// logits[t,j] = k_scale[j] * sum_h relu(q[t,h,:] . k[j,:]) * weights[t,h], j < lengths of t
///
/// e4m3 keys and queries: q_scale is folded into the weights. MXFP4: the scales of queries are
/// given. A key whose page is not there has logit -inf. What lies beyond a token's length is -inf
/// up to max_len if is_filled, else not touched.
struct IndexerLogitsParams {
  alignas(64) std::uint8_t key_map[128];  ///< tensor map of the codes: rows of a page, pages
  const std::uint8_t* q;         ///< codes [tokens, heads, 128 or 64 bytes], 16-byte aligned
  const std::uint8_t* q_scales;  ///< MXFP4: ue8m0 [tokens, heads, 4], 4-byte aligned
  const float* weights;          ///< [tokens, heads]
  IndexPages keys;
  const std::int32_t* block_table;  ///< [batch, block_table_stride] pages of each sequence
  std::int64_t block_table_stride;
  std::int32_t num_blocks;  ///< of a sequence; keys beyond have no page
  std::int32_t heads, tokens;
  IndexerLengths lengths;
  const IndexerUnit* units;
  const IndexerShare* shares;
  float* logits;               ///< [tokens, logits_stride]
  std::int64_t logits_stride;  ///< elements
  std::int32_t is_filled;
  std::int32_t box_rows;  ///< indexer_box_rows()
  /// The launch before this one made the queries and nothing else that is read here, and let this
  /// one begin when all before it was done: keys are fetched at once.
  std::int32_t is_behind_queries;
};

/// The same over keys without pages, codes [num_keys, 128 or 64 bytes] at keys.pages and their
/// scales apart; a token sees those of its range. What lies outside of it is -inf, in all columns,
/// if is_filled. Block table and lengths are not used.
struct IndexerRangeLogitsParams : IndexerLogitsParams {
  IndexerRanges ranges;
  const std::uint8_t* key_scales;  ///< [num_keys] of 4 bytes, 4-byte aligned
  /// Four scales at a time may be read: they begin at a multiple of 16 bytes, and so many are
  /// there. For Blackwell's kernels.
  std::int32_t has_scale_quads;
};
template <class Params>
inline constexpr bool kHasRanges = std::is_base_of_v<IndexerRangeLogitsParams, Params>;

/// Entries indexer_logits_{fp8,mxfp4}_h{8,16,32,64}, for up to so many heads, and
/// indexer_range_logits_{fp8,mxfp4}_h{32,64}; grid: the ctas of the schedule, one per SM.
inline constexpr int kIndexerWarpgroups = 4;  ///< that multiply; a warp more for each fetches keys
inline constexpr int kIndexerLogitsThreads = kIndexerWarpgroups * (128 + 32);
inline constexpr int kIndexerTileKeys = 64;  ///< of a warpgroup
inline constexpr int kIndexerStages = 4;     ///< tiles of each warpgroup

/// Keys come in boxes of so many rows: the largest power of two in the page size, up to 64.
constexpr int indexer_box_rows(std::int64_t page_size) {
  int rows = 1;
  while (rows < kIndexerTileKeys && page_size % (2 * rows) == 0) rows *= 2;
  return rows;
}

/// Steps of 128 columns: elsewhere the registers of a consumer do not hold them.
constexpr bool has_wide_steps(IndexFormat format, int head_slots) {
  return format == IndexFormat::kFp8 && head_slots == 64;
}

/// How the queries of a unit are multiplied: in one step, or pairs of steps, of 64 or 128 columns,
/// a column a head of a token.
struct IndexerSteps {
  int columns, steps;

  constexpr IndexerSteps(IndexFormat format, int tokens, int head_slots) {
    columns = has_wide_steps(format, head_slots) && tokens > 1 ? 128 : 64;
    steps = (tokens * head_slots + columns - 1) / columns;
    if (steps > 1) steps += steps % 2;
  }
  constexpr int query_bytes() const { return steps * columns * kIndexDims; }
  /// Weights of a step in the order of accumulators: a quarter of them for each lane of a quad,
  /// with a gap against bank conflicts.
  constexpr int lane_weights() const { return columns / 4 + 4; }
};

/// A tile of keys: codes, scales, and a gap up to the next multiple of 1024.
constexpr int indexer_stage_bytes(IndexFormat format) {
  return kIndexerTileKeys * index_data_bytes(format) + 1024;
}
/// Dynamic shared memory for units of up to so many tokens: tiles, queries, weights, lengths or
/// ranges.
constexpr int indexer_logits_shared_bytes(IndexFormat format, int unit_tokens, int head_slots,
                                          bool has_ranges = false) {
  const IndexerSteps s(format, unit_tokens, head_slots);
  const int ring = kIndexerWarpgroups * kIndexerStages * indexer_stage_bytes(format);
  return ring + s.query_bytes() + s.steps * 4 * s.lane_weights() * 4 + (has_ranges ? 192 : 64);
}

}  // namespace tilewright::kernels
