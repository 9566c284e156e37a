// When a wait is over.
#pragma once

#include "sim/state/warp.h"

#include <cstdint>

namespace tilewright::sim {

/// Whether lanes that wait could go on now.
bool is_over(const Warp& warp, const Wait& wait);

/// Whether all warps of this one's warpgroup that live have committed so many groups of wgmma.
bool has_warpgroup_committed(const Warp& warp, std::uint64_t num_groups);

/// Whether they all have come to so many wgmmas.
bool has_warpgroup_come(const Warp& warp, std::uint64_t num_wgmmas);

/// Registers of all lanes that the warp must get to have so many for each.
std::uint64_t registers_missing(const Warp& warp, std::uint64_t registers_per_thread);

}  // namespace tilewright::sim
