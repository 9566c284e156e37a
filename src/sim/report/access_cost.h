// What an access of a warp costs in shared-memory wavefronts and in sectors of global memory.
#pragma once

#include "sim/event/observer.h"

#include <cstdint>

namespace tilewright::sim {

inline constexpr std::uint32_t kBanks = 32;
inline constexpr std::uint32_t kBankBytes = 4;
inline constexpr std::uint32_t kSectorBytes = 32;

struct SharedCost {
  std::uint32_t wavefronts = 0;
  std::uint32_t ideal = 0;  ///< without bank conflicts
};

/// 32 banks of 4 bytes. A warp's access of up to 4 bytes a lane is served at once, of 8 bytes by
/// half warps, of 16 by quarter warps; each takes as many wavefronts as a bank has different words
/// to give. Atomics on one word are served one after the other.
/// Source   CUDA programming guide, "Shared memory"; Nsight Compute's l1tex__data_bank_conflicts
SharedCost shared_cost(const WarpAccess& access);

struct GlobalCost {
  std::uint32_t sectors = 0;  ///< different ones that the lanes touch
  std::uint32_t bytes = 0;    ///< different bytes that they use
};

/// 32-byte sectors; lanes that share bytes share the sector.
GlobalCost global_cost(const WarpAccess& access);

}  // namespace tilewright::sim
