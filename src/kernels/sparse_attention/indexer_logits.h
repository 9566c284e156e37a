// Contract of the lightning indexer's logits: every visible key of a sequence against the queries
// of its tokens.
#pragma once

#include "kernels/sparse_attention/index_pages.h"

#include <cstdint>

namespace tilewright::kernels {

/// How many keys a token sees: numbers[t], or where ratio > 0 the entries that a compressor has
/// made up to position numbers[t], (numbers[t] + 1) / ratio. At most max_len.
struct IndexerLengths {
  const std::int32_t* numbers;  ///< [tokens]; < 0: none
  std::int32_t ratio, max_len;

  constexpr std::int32_t clamp(std::int32_t number) const {
    std::int32_t n = number < 0 ? 0 : number;
    if (ratio > 0) n = number < 0 ? 0 : static_cast<std::int32_t>((std::int64_t{n} + 1) / ratio);
    return n < max_len ? n : max_len;
  }
};

/// Up to kIndexerUnitTokens neighbouring tokens of one sequence, whose queries a CTA keeps while
/// keys stream by. first_chunk counts the chunks of keys of all units before.
struct IndexerUnit {
  std::int32_t token, count, sequence, first_chunk;
};
inline constexpr int kIndexerUnitTokens = 8;
inline constexpr int kIndexerChunk = 128;  ///< keys that a CTA takes at a time

/// What the schedule says beside the units.
struct IndexerTotals {
  std::int32_t num_units, num_chunks;
};

/// indexer_schedule: cuts tokens into units and chunks into equal shares for `ctas` CTAs: CTA c has
/// chunks c * num_chunks / ctas up to (c + 1) * num_chunks / ctas and begins in unit first_unit[c].
struct IndexerScheduleParams {
  IndexerLengths lengths;
  const std::int32_t* offsets;  ///< [batch + 1] first tokens of sequences; null: q_len each
  IndexerTotals* totals;
  IndexerUnit* units;        ///< [indexer_max_units + 1]
  std::int32_t* first_unit;  ///< [ctas]
  std::int32_t tokens, batch, q_len, ctas;
};
/// Entry indexer_schedule, one CTA.
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
  const std::uint8_t* q;         ///< codes [tokens, heads, 128 or 64 bytes], 16-byte aligned
  const std::uint8_t* q_scales;  ///< MXFP4: ue8m0 [tokens, heads, 4], 4-byte aligned
  const float* weights;          ///< [tokens, heads]
  IndexPages keys;
  const std::int32_t* block_table;  ///< [batch, block_table_stride] pages of each sequence
  std::int64_t block_table_stride;
  std::int32_t num_blocks;  ///< of a sequence; keys beyond have no page
  std::int32_t heads, tokens;
  IndexerLengths lengths;
  const IndexerTotals* totals;
  const IndexerUnit* units;
  const std::int32_t* first_unit;
  float* logits;               ///< [tokens, logits_stride]
  std::int64_t logits_stride;  ///< elements
  std::int32_t is_filled;
};

/// Entries indexer_logits_{fp8,mxfp4}_h{8,16,32,64}, for up to so many heads; grid: the ctas of the
/// schedule.
inline constexpr int kIndexerLogitsThreads = 256;
inline constexpr int kIndexerLogitsCtasPerSm = 2;
inline constexpr int kIndexerStepColumns = 64;  ///< tokens x heads of a product
inline constexpr int kIndexerStepQueryBytes = kIndexerStepColumns * kIndexDims;
/// Weights of a step, in the order of accumulators: of each of four lanes 16, with a gap against
/// bank conflicts.
inline constexpr int kIndexerLaneWeights = 20;
inline constexpr int kIndexerStepWeightBytes = 4 * kIndexerLaneWeights * 4;

/// Products that the queries of a unit take: one, or pairs.
constexpr int indexer_steps(int unit_tokens, int head_slots) {
  const int steps = (unit_tokens * head_slots + kIndexerStepColumns - 1) / kIndexerStepColumns;
  return steps <= 1 ? 1 : (steps + 1) / 2 * 2;
}
/// Dynamic shared memory for units of that many tokens.
constexpr int indexer_logits_shared_bytes(int unit_tokens, int head_slots) {
  return indexer_steps(unit_tokens, head_slots) *
             (kIndexerStepQueryBytes + kIndexerStepWeightBytes) +
         kIndexerUnitTokens * 4 + 16;
}

}  // namespace tilewright::kernels
