// Lanes of a warp in words, for messages.
#pragma once

#include "sim/state/warp.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::sim {

/// "lanes 0-15"
std::string describe_lane_mask(std::uint32_t lanes);

/// "warps 0-3,7"
std::string describe_warps(const std::vector<std::uint32_t>& warps);

/// "CTA (0,1,0) warp 2 lanes 0-15"
std::string describe_lanes(const Warp& warp, std::uint32_t lanes);

}  // namespace tilewright::sim
