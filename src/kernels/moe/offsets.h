// Contract of the sum over the experts: from their counts to where their rows begin.
#pragma once

#include "kernels/moe/permute.h"

#include <cstdint>

namespace tilewright::kernels {

/// offsets[e] = min(sum of max(counts[i], 0) for i < e, rows). status gets how many counts are
/// below 0 or reach beyond the rows, and the first such expert, where others have slots.
///
/// Entry moe_offsets: one warp.
struct MoeOffsetsParams {
  const std::int32_t* counts;  ///< [experts]
  std::int32_t* offsets;       ///< [experts + 1]
  MoeStatus* status;           ///< written anew
  std::int32_t experts, rows;  ///< at most 2^21 rows
};

}  // namespace tilewright::kernels
