// Running warps: which lanes go on, when they wait, when everything is stuck.
#pragma once

#include "sim/program/code.h"
#include "sim/program/warp.h"

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

/// Whether lanes that wait could go on now.
bool is_over(const Warp& warp, const Wait& wait);

/// Whether all warps of this one's warpgroup that live have committed so many groups of wgmma.
bool has_warpgroup_committed(const Warp& warp, std::uint64_t num_groups);

/// Whether they all have come to so many wgmmas.
bool has_warpgroup_come(const Warp& warp, std::uint64_t num_wgmmas);

/// Memory for the CTAs of a launch: of the right size, none yet.
std::shared_ptr<StoragePool> make_storage_pool(const Grid& grid);

/// A cluster of CTAs with all their warps, ready to start.
std::unique_ptr<Cluster> start_cluster(Grid& grid, std::uint64_t cluster_idx);

/// How a cluster left its turn.
enum class ClusterStatus : std::uint8_t { kDone, kProgress, kPolling, kStuck };

/// Gives every warp of the cluster a turn. kStuck: all wait, for nothing that can still come from
/// within the cluster; another cluster may help if CTAs talk to each other.
ClusterStatus run_cluster(Cluster& cluster);

/// Runs the whole grid.
std::optional<Fault> run_grid(Grid& grid);

/// "lanes 0-15"
std::string describe_lane_mask(std::uint32_t lanes);

/// "CTA (0,1,0) warp 2 lanes 0-15"
std::string describe_lanes(const Warp& warp, std::uint32_t lanes);

}  // namespace tilewright::sim
