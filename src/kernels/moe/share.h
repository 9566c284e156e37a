// Contract of the share: from the experts of all ranks to those of this one.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// own[i] = ids[i] - first if that is one of `experts`; -1 for the other experts of `all`, and for
/// an id of -1; what is no expert at all becomes kMoeNoExpert, which the permutation reports.
struct MoeShareParams {
  const std::int32_t* ids;  ///< [slots]
  std::int32_t* own;        ///< [slots]; may be ids
  std::int32_t slots, first, experts, all;
};

/// Entry moe_share; grid (ceil(slots / kMoeShareThreads)).
inline constexpr int kMoeShareThreads = 128;

}  // namespace tilewright::kernels
