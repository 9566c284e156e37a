// When asynchronous work takes effect if its timing is random: numbers that depend on nothing but
// the seed and the cluster, so that a run can be repeated, on any number of host threads.
#pragma once

#include "sim/state/warp.h"

#include <cstdint>

namespace tilewright::sim {

inline bool is_random(const Grid& grid) {
  return grid.options.async_timing == AsyncTiming::kRandom;
}

/// The start of a cluster's numbers.
std::uint64_t random_start(std::uint64_t seed, std::uint64_t cluster_idx);
/// The next number, below `bound`.
std::uint32_t random_below(Cluster& cluster, std::uint32_t bound);

/// One piece of asynchronous work takes effect: the oldest or, if timing is random, any. Copies are
/// not ordered among each other; groups and mbarriers count them in whatever order they come.
/// Returns  whether there was one
bool run_pending(Cluster& cluster);

/// Random timing, when a warp issues or commits wgmmas: some of its own may be done already.
void run_some_wgmmas(Warp& warp);

/// Random timing, between the turns of warps: some of the copies take effect, and some of the
/// warp's wgmmas, which go in order.
void run_some_pending(Cluster& cluster, Warp& warp);

}  // namespace tilewright::sim
