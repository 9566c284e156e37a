// The parts of a query that several groups share, as one that is to merge them finds them.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// Part 0 is in slot `first`, part i > 0 in slot second + 2 (i - 1) (sparse_part_slot).
struct SparsePartners {
  std::int32_t first, second, parts;
};
/// For each group and tile of 64 heads (two), of each half of the columns: bit 63 changes its value
/// whenever all parts of the query that begins in the group are there; below are those that are.
inline constexpr int kSparseCountersOfGroup = 4;

}  // namespace tilewright::kernels
