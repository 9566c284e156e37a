// Partial results of sparse decode and of latent attention: which slots a query has, and who merges
// them.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// A query that several groups share. Its part 0 is in `first_slot`, part i > 0 in slot
/// sparse_part_slot(first_slot, i).
struct SparseMerge {
  std::int32_t query;  ///< -1: none begins in this group
  std::int32_t first_slot, parts;
};
/// A group's first piece has slot 2 group, its last one, if it is another, 2 group + 1; parts from
/// the second on are the first pieces of the groups that follow.
constexpr std::int32_t sparse_part_slot(std::int32_t first_slot, std::int32_t part) {
  return part == 0 ? first_slot : 2 * (first_slot / 2 + part);
}

constexpr std::int64_t sparse_max_pieces(std::int64_t queries, std::int64_t groups) {
  return queries + groups;
}

/// For each group and tile of 64 heads (two), of each half of the columns: bit 63 changes its value
/// whenever all parts of the query that begins in the group are there; below are those that are.
inline constexpr int kSparseCountersOfGroup = 4;

/// Kernels that merge have a warp for each row of a head.
inline constexpr int kSparseCombineHeads = 8;
inline constexpr int kSparseCombineThreads = kSparseCombineHeads * 32;

}  // namespace tilewright::kernels
