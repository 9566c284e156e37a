// The direct kernels in a plan: tiles and shared memory of their launches.
#pragma once

#include "device/device.h"
#include "kernels/moe/direct/direct.h"
#include "ops/moe/plan.h"

#include <cstdint>
#include <string>

namespace tilewright::ops {

/// Why they cannot do it; empty if they can.
std::string direct_obstacle(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                            const MoeProblem& problem);

/// Parts of K that are four blocks long or more, and bricks for all CTAs.
kernels::MoeDirectTile direct_tile(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                                   bool is_down);

/// What a direct launch may have; the rest of what there is holds the routing.
inline constexpr std::uint32_t kMostDirectSharedBytes = 232448 - 4096;

/// The tiles of two products in one direct launch, whose CTAs end at about the same time.
struct DirectPair {
  kernels::MoeDirectTile first, second;
  std::uint32_t shared_bytes;
};
DirectPair direct_pair(const device::DeviceInfo& device, const MoePlanned& first,
                       const MoePlanned& second, bool is_down);

/// Whether that launch has the shared memory.
bool fits_one_launch(const device::DeviceInfo& device, const MoePlanned& first,
                     const MoePlanned& second);

/// Bytes of shared memory of a launch of the direct kernels.
std::int64_t direct_shared_bytes(const MoeWeightsInfo& weights, const MoeProblem& problem,
                                 const kernels::MoeDirectTile& tile, bool is_down) noexcept;
/// Where it has the warps' rings, behind the tokens; sums stand behind those, y behind them.
std::int64_t direct_rings_at(const MoeWeightsInfo& weights, const MoeProblem& problem,
                             bool is_down) noexcept;

}  // namespace tilewright::ops
