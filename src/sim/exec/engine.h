// Running warps: which lanes go on, when they wait, when everything is stuck.
#pragma once

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <optional>

namespace tilewright::sim {

/// How a warp left its turn.
enum class WarpStatus : std::uint8_t {
  kDone,      ///< all lanes have ended
  kBlocked,   ///< every group waits
  kYielded,   ///< every group waits or polls
  kTurnOver,  ///< it could go on
};

/// Runs a warp for at most `turn` instructions. Lanes at different places take turns, those at the
/// lowest place first, and go on together when they meet: nvcc and ptxas lay code out so that this
/// brings a warp together again where its paths join.
WarpStatus run_warp(Warp& warp, std::uint64_t turn);

/// Lets every try_wait of the warp return false. Whether there was one.
bool time_out(Warp& warp);

/// A cluster of CTAs with all their warps, ready to start.
std::unique_ptr<Cluster> start_cluster(Grid& grid, std::uint64_t cluster_idx);

/// How a cluster left its turn.
enum class ClusterStatus : std::uint8_t { kDone, kProgress, kPolling, kStuck };

/// Gives every warp of the cluster a turn. kStuck: all wait, for nothing that can still come from
/// within the cluster; another cluster may help if CTAs talk to each other.
ClusterStatus run_cluster(Cluster& cluster);

/// Runs the whole grid.
std::optional<Fault> run_grid(Grid& grid);

}  // namespace tilewright::sim
