// Running a grid: clusters on the host's cores, faults, deadlocks.
#include "sim/event/observer.h"
#include "sim/exec/engine.h"
#include "sim/exec/random_timing.h"
#include "sim/exec/stillness.h"
#include "sim/exec/stop.h"
#include "sim/exec/turn_order.h"
#include "sim/state/occupancy.h"
#include "sim/tensor/tensor_memory.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace tilewright::sim {

namespace {

/// Why a launch does not go on.
struct Stop {
  FaultKind kind{};
  Finding why;
};

Fault told(const Grid& grid, Stop stop) {
  Fault out{stop.kind, to_string(stop.why)};
  if (grid.findings != nullptr && !stop.why.check.empty()) {
    out.is_told = grid.findings->add(std::move(stop.why));
  }
  return out;
}

Stop deadlock(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  return {FaultKind::kDeadlock, deadlock_of(clusters)};
}

/// What the workers of a launch share. Clusters of which none waits for another have their place in
/// the grid as rank: those before one that was stopped run on, and the first of all that stop is
/// told, whichever host thread came first. All others have rank 0.
struct Work {
  Grid& grid;
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> first_stopped{~std::uint64_t{0}};  ///< the least rank
  std::mutex mutex;
  std::optional<Stop> reason;

  /// Clusters that start of themselves.
  std::uint64_t num_starts() const {
    return grid.sample.empty() ? grid.num_seats : grid.sample.size();
  }
  std::uint64_t cluster_of(std::uint64_t start) const {
    return grid.sample.empty() ? start : grid.sample[start];
  }

  bool is_stopped(std::uint64_t rank) const { return rank >= first_stopped; }
  void stop(std::uint64_t rank, Stop why) {
    const std::lock_guard lock(mutex);
    if (is_stopped(rank)) return;
    reason = std::move(why);
    first_stopped = rank;
  }
};

ClusterStatus run_or_stop(Work& work, Cluster& cluster, std::uint64_t rank) {
  try {
    return run_cluster(cluster);
  } catch (const FaultError& error) {
    await_turn(cluster);  // the first one counts
    if (!work.is_stopped(rank)) {
      work.stop(rank, {error.kind(), finding_of(*cluster.running, error)});
    }
  }
  return ClusterStatus::kDone;
}

/// Returns  the cluster that comes after this one in its seat
std::uint64_t run_one(Work& work, std::uint64_t index) {
  std::vector<std::unique_ptr<Cluster>> one;
  one.push_back(start_cluster(work.grid, index));
  Stillness stillness;
  while (!one[0]->is_done && !work.is_stopped(index)) {
    const ClusterStatus status = run_or_stop(work, *one[0], index);
    const bool is_polling = status == ClusterStatus::kPolling;
    if (!is_polling) stillness.start_again();
    if (status == ClusterStatus::kStuck || (is_polling && stillness.has_stopped(one))) {
      work.stop(index, deadlock(one));
    }
  }
  return one[0]->next_claim;
}

/// CTAs that cannot talk to each other: one cluster after the other.
void run_apart(Work& work) {
  for (;;) {
    const std::uint64_t start = work.next++;
    if (start >= work.num_starts() || work.is_stopped(start)) return;
    std::uint64_t index = work.cluster_of(start);
    while (index < work.grid.num_clusters && !work.is_stopped(index)) index = run_one(work, index);
  }
}

/// Clusters that have ended make room for what comes after them.
void replace_done(Grid& grid, std::vector<std::unique_ptr<Cluster>>& resident,
                  std::vector<std::uint64_t>& free_slots) {
  for (std::unique_ptr<Cluster>& cluster : resident) {
    if (!cluster->is_done || cluster->next_claim >= grid.num_clusters) continue;
    const auto slot = cluster->slot;
    cluster = start_cluster(grid, cluster->next_claim);
    cluster->slot = slot;
  }
  for (const std::unique_ptr<Cluster>& cluster : resident) {
    if (cluster->is_done) free_slots.push_back(*cluster->slot);
  }
  std::erase_if(resident, [](const auto& cluster) { return cluster->is_done; });
}

/// Those that wait for another CTA's permit to allocate columns go on without it; whether there may
/// be any. Not in strict.
bool open_columns(const Grid& grid) {
  bool any = false;
  if (grid.options.checks.strict) return any;
  for (const auto& [sm, columns] : grid.tensor_columns) {
    any |= !columns->is_open && columns->permit != nullptr;
    columns->is_open = true;
    ++columns->version;
  }
  return any;
}

/// CTAs that may wait for each other: as many at a time as the device holds, in turns.
void run_together(Work& work, std::uint64_t most_resident, std::uint32_t num_threads) {
  // Enough for many host threads; the order of turns may not depend on how many there are.
  const std::uint32_t starts_per_round = work.grid.code->has_tensor_memory ? 1 : 32;
  std::vector<std::unique_ptr<Cluster>> resident;
  std::vector<std::uint64_t> free_slots;
  bool is_fruitless = false;
  Stillness stillness;
  std::atomic<bool> progress = false;
  const auto take_turn = [&](Cluster& cluster) {
    if (work.is_stopped(0)) return;
    const ClusterStatus status = run_or_stop(work, cluster, 0);
    if (status == ClusterStatus::kDone || status == ClusterStatus::kProgress) progress = true;
  };
  std::optional<Crew> crew;
  while (!work.is_stopped(0)) {
    progress = false;
    // A round of polls is over too soon to be shared.
    if (num_threads > 1 && resident.size() > 1 && !is_fruitless) {
      if (!crew) crew.emplace(num_threads, take_turn);
      crew->run_round(resident);
    } else {
      for (const std::unique_ptr<Cluster>& cluster : resident) take_turn(*cluster);
    }
    if (work.is_stopped(0)) return;
    replace_done(work.grid, resident, free_slots);
    for (std::uint32_t i = 0;
         i < starts_per_round && resident.size() < most_resident && work.next < work.num_starts();
         ++i) {
      const std::uint64_t slot = free_slots.empty() ? resident.size() : free_slots.back();
      if (!free_slots.empty()) free_slots.pop_back();
      resident.push_back(start_cluster(work.grid, work.cluster_of(work.next++)));
      resident.back()->slot = slot;
      progress = true;
    }
    if (resident.empty()) return;
    is_fruitless = !progress;
    if (progress) stillness.start_again();
    if (progress || !stillness.has_stopped(resident)) continue;
    is_fruitless = false;
    stillness.start_again();
    if (!open_columns(work.grid)) work.stop(0, deadlock(resident));
  }
}

std::uint64_t most_resident_clusters(const Grid& grid) {
  const std::uint64_t ctas =
      std::uint64_t{grid.device->num_sms} *
      std::max(1U, max_active_ctas_per_sm(*grid.device, grid.code->info,
                                          static_cast<std::uint32_t>(grid.launch->block.count()),
                                          grid.launch->dynamic_shared_bytes));
  return std::max<std::uint64_t>(1, ctas / grid.launch->cluster.count());
}

// How many clusters a device has started when one asks for the work of another is chance: others
// may use it at the same time. A third of them at first, so that all that such a kernel does comes
// up also in small grids; some other number with a seed. Which one takes over which is fixed.
std::uint64_t num_seats(const Grid& grid) {
  const std::uint64_t all = grid.num_clusters;
  if (!grid.code->claims_clusters || grid.launch->is_cooperative) return all;
  const std::uint64_t most = std::min(all, most_resident_clusters(grid));
  const std::uint64_t seed = grid.options.seed;
  if (seed != 0) return 1 + (random_start(seed, all) >> 33) % most;
  return std::min(most, (all + 2) / 3);
}

}  // namespace

std::optional<Fault> run_grid(Grid& grid) {
  const Launch& launch = *grid.launch;
  grid.num_clusters = launch.grid.count() / launch.cluster.count();
  grid.num_seats = num_seats(grid);
  Work work{.grid = grid, .mutex = {}, .reason = {}};
  if (grid.observer != nullptr) grid.observer->launch_started(grid);
  std::uint32_t num_workers = grid.options.num_threads;
  if (num_workers == 0) num_workers = std::max(1U, std::thread::hardware_concurrency());
  const bool is_alone = grid.observer != nullptr && !grid.observer->is_thread_safe();
  if (is_alone) num_workers = 1;
  num_workers = static_cast<std::uint32_t>(std::min<std::uint64_t>(num_workers, grid.num_seats));
  if (grid.code->is_cross_cta) {
    // Which CTA gets which columns of Tensor Memory depends on the order of asking.
    run_together(work, most_resident_clusters(grid),
                 grid.code->has_tensor_memory ? 1 : num_workers);
  } else {
    std::vector<std::jthread> others;
    for (std::uint32_t i = 1; i < num_workers; ++i) others.emplace_back([&] { run_apart(work); });
    run_apart(work);
  }
  std::optional<Fault> out;
  if (work.reason) out = told(grid, std::move(*work.reason));
  if (grid.observer != nullptr) grid.observer->launch_ended(grid);
  return out;
}

}  // namespace tilewright::sim
