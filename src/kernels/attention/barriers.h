// The named barriers of the warp-specialised attention kernels.
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// Number 0 is the barrier of the whole CTA.
enum AttentionBarrier : std::uint32_t {
  kTurnBarrier = 1,         ///< + i: warpgroup i may issue its products
  kStagingBarrier = 4,      ///< + i: the threads of warpgroup i, around its staged results
  kConsumersBarrier = 8,    ///< all consumers of the CTA
  kTransposersBarrier = 9,  ///< K7: the warps that transpose values
};

}  // namespace tilewright::tile
