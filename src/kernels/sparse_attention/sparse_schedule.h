// Contract of the schedule of sparse decode: which group does which blocks of which query.
#pragma once

#include "kernels/sparse_attention/decode.h"
#include "kernels/sparse_attention/sparse_merge.h"

namespace tilewright::kernels {

/// Costs are in quarters of the time that a block takes.
inline constexpr int kSparseBlockCost = 4;

/// The blocks of all queries, in their order, are cut into as many pieces as there are groups, so
/// that the group with most to do has as little as possible. A piece of a query costs `piece_cost`
/// beside its blocks, and `partial_cost` more if it is not the whole query; if there is any such
/// piece, all wait `combine_cost` for the combination. The result depends on nothing but the
/// lengths.
struct SparseScheduleParams {
  SparseKeys keys[2];  ///< topk and lengths are read
  std::int32_t batch, q_len, groups;
  std::int32_t piece_cost, partial_cost, combine_cost;
  SparseWork* work;          ///< [sparse_max_pieces]
  std::int32_t* work_begin;  ///< [groups + 1]
  SparseMerge* merges;       ///< [groups]
  /// For kernels that merge parts themselves: of each slot in use the query's; zeros. Or null.
  SparseMerge* merge_of_slot;  ///< [sparse_partial_slots(groups)]
  std::uint64_t* counters;     ///< [groups, kSparseCountersOfGroup]
};

/// One CTA of kSparseScheduleThreads: entry sparse_schedule.
inline constexpr int kSparseScheduleThreads = 1024;
/// There are enough queries beyond to give every group whole ones.
inline constexpr int kSparseScheduleMaxQueries = 8192;
inline constexpr int kSparseScheduleMaxGroups = 1024;

/// Entry sparse_combine: merges partial results, with the sink. Grid (groups, ceil(heads /
/// kSparseCombineHeads)), a warp per head.
struct SparseCombineParams {
  SparseDecodeParams decode;
  const SparseMerge* merges;  ///< [groups]
};

}  // namespace tilewright::kernels
