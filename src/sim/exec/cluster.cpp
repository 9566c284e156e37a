// Starting and running the CTAs of a cluster.
#include "sim/async/cluster_barrier.h"
#include "sim/async/mbarrier.h"
#include "sim/async/named_barrier.h"
#include "sim/event/observer.h"
#include "sim/exec/engine.h"
#include "sim/exec/random_timing.h"
#include "sim/exec/special_value.h"
#include "sim/tensor/tensor_memory.h"

#include <algorithm>
#include <cstring>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kTurn = 20'000;  // instructions of a warp before the next warp's turn
constexpr std::uint32_t kLongestRandomTurn = 64;  // so that work can take effect at many places
constexpr std::size_t kRowAlign = 64;

std::size_t aligned(std::size_t value, std::size_t align) {
  return (value + align - 1) / align * align;
}

void fill_row(Warp& warp, Row row, bool is_wide, const auto& value_of_lane) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t value = value_of_lane(lane);
    if (is_wide) {
      warp.row<std::uint64_t>(row)[lane] = value;
    } else {
      warp.row<std::uint32_t>(row)[lane] = static_cast<std::uint32_t>(value);
    }
  }
}

void start_warp(Warp& warp, Cta& cta, std::uint32_t index) {
  const KernelCode& code = *cta.grid->code;
  warp.cta = &cta;
  warp.grid = cta.grid;
  warp.observer = cta.grid->observer;
  warp.index = index;
  warp.shared = cta.shared;
  warp.shared_bytes = cta.shared_bytes;
  warp.local_bytes = code.info.local_bytes;
  const std::uint32_t left = cta.num_threads - 32 * index;
  warp.live = warp.existing = left >= 32 ? kAllLanes : (1U << left) - 1;
  warp.groups.push_back({0, warp.live, {}, false, false, 0});
  constexpr std::uint32_t kRegisterUnit = 8;  // of a thread: 256 of a warp
  warp.num_registers =
      static_cast<std::uint32_t>(aligned(code.info.entry_registers, kRegisterUnit));
  // What a register holds at first is arbitrary on the device and the same every time here.
  std::memset(warp.registers, 0xcd, code.constants_begin);
  std::memset(warp.registers, 0xff, kRowAlign);
  std::ranges::copy(code.constants, warp.registers + code.constants_begin);
  for (const SpecialRow& special : code.specials) {
    fill_row(warp, special.row, special.is_wide,
             [&](int lane) { return special_value(warp, special, lane); });
  }
  for (const SharedAddressRow& shared : code.shared_addresses) {
    const std::uint64_t address = (std::uint64_t{cta.rank} << kSharedRankShift) + shared.offset;
    fill_row(warp, shared.row, shared.is_wide, [&](int) { return address; });
  }
}

/// What a CTA of this launch needs, in bytes.
struct CtaSizes {
  std::size_t shared = 0, registers = 0, local = 0;  ///< registers and local memory of a warp
  std::uint32_t num_warps = 0;

  explicit CtaSizes(const Grid& grid) {
    const KernelCode& code = *grid.code;
    num_warps = static_cast<std::uint32_t>((grid.launch->block.count() + 31) / 32);
    shared = aligned(code.dynamic_shared_offset + grid.launch->dynamic_shared_bytes, 1024);
    registers = aligned(code.register_bytes, kRowAlign);
    local = aligned(std::size_t{32} * code.info.local_bytes, kRowAlign);
  }
  std::size_t total() const { return 1024 + shared + num_warps * (registers + local); }
};

std::unique_ptr<Cta> start_cta(Cluster& cluster, std::uint32_t rank, const Dim3& index) {
  const Grid& grid = *cluster.grid;
  const Launch& launch = *grid.launch;
  const KernelCode& code = *grid.code;
  auto cta = std::make_unique<Cta>();
  cta->cluster = &cluster;
  cta->grid = cluster.grid;
  cta->rank = rank;
  cta->index = index;
  cta->linear_index =
      index.x + std::uint64_t{launch.grid.x} * (index.y + std::uint64_t{launch.grid.y} * index.z);
  cta->num_threads = cta->num_live_threads = static_cast<std::uint32_t>(launch.block.count());
  cta->shared_bytes = code.dynamic_shared_offset + launch.dynamic_shared_bytes;
  cta->barriers = std::make_unique<NamedBarriers>(cta->num_threads);
  const CtaSizes sizes(grid);
  const auto [shared, registers, local, num_warps] = sizes;
  cta->storage = take_bytes(sizes.total());
  std::byte* next = cta->storage.get();
  next += 1024 - reinterpret_cast<std::uintptr_t>(next) % 1024;
  cta->shared = next;
  std::memset(cta->shared, 0xcd, shared);
  next += shared;
  cta->warps.resize(num_warps);
  for (std::uint32_t w = 0; w < num_warps; ++w) {
    Warp& warp = cta->warps[w];
    warp.registers = next;
    warp.local = next + registers;
    std::memset(warp.local, 0xcd, local);
    next += registers + local;
    start_warp(warp, *cta, w);
  }
  return cta;
}

std::uint64_t num_wakes(const Cluster& cluster) {
  std::uint64_t sum = 0;
  for (const std::unique_ptr<Cta>& cta : cluster.ctas) {
    sum += cta->num_threads - cta->num_live_threads;
    for (const Warp& warp : cta->warps) sum += warp.num_wakes;
  }
  return sum;
}

/// Where a round begins: anywhere if there is a seed.
std::size_t first_of(Cluster& cluster, std::size_t count) {
  if (cluster.grid->options.seed == 0) return 0;
  return random_below(cluster, static_cast<std::uint32_t>(count));
}

/// Whether turns are short and random. A turn that ends inside a polling loop looks like progress.
/// After many turns in which no warp was woken they are long enough to come to the poll, so that a
/// deadlock is seen.
bool has_short_turns(const Cluster& cluster) {
  constexpr std::uint32_t kManyQuietRounds = 2048;
  return is_random(*cluster.grid) && cluster.num_quiet_rounds <= kManyQuietRounds;
}

WarpStatus run_turn(Cluster& cluster, Warp& warp) {
  cluster.running = &warp;
  if (!has_short_turns(cluster)) return run_warp(warp, kTurn);
  run_some_pending(cluster, warp);
  return run_warp(warp, 1 + random_below(cluster, kLongestRandomTurn));
}

/// One turn for each warp of the CTA. Whether all have ended.
bool run_cta(Cluster& cluster, Cta& cta, ClusterStatus& status) {
  bool is_done = true;
  const std::size_t count = cta.warps.size(), first = first_of(cluster, count);
  for (std::size_t i = 0; i < count; ++i) {
    Warp& warp = cta.warps[(first + i) % count];
    if (warp.live == 0) continue;
    const std::uint64_t before = warp.num_executed;
    const WarpStatus left = run_turn(cluster, warp);
    is_done &= left == WarpStatus::kDone;
    const bool polls = left == WarpStatus::kYielded;
    if (warp.num_executed != before && !polls) {
      status = ClusterStatus::kProgress;
    } else if (polls && status == ClusterStatus::kStuck) {
      status = ClusterStatus::kPolling;
    }
  }
  return is_done;
}

/// One turn for each warp.
ClusterStatus run_round(Cluster& cluster, bool& is_done) {
  ClusterStatus status = ClusterStatus::kStuck;
  is_done = true;
  const std::size_t count = cluster.ctas.size(), first = first_of(cluster, count);
  for (std::size_t i = 0; i < count; ++i) {
    Cta& cta = *cluster.ctas[(first + i) % count];
    if (cta.is_done) continue;
    cta.is_done = run_cta(cluster, cta, status);
    if (cta.is_done && cta.grid->observer != nullptr) cta.grid->observer->cta_ended(cta);
    if (cta.is_done && cta.tensor_memory) cta.tensor_memory->end();
    is_done &= cta.is_done;
  }
  return status;
}

}  // namespace

std::unique_ptr<Cluster> start_cluster(Grid& grid, std::uint64_t cluster_idx) {
  const Launch& launch = *grid.launch;
  auto cluster = std::make_unique<Cluster>();
  cluster->grid = &grid;
  cluster->next_claim = cluster_idx + grid.num_seats;
  cluster->random_state = random_start(grid.options.seed, cluster_idx);
  cluster->barrier =
      std::make_unique<ClusterBarrier>(static_cast<std::uint32_t>(launch.cluster.count()),
                                       static_cast<std::uint32_t>(launch.block.count()));
  const Dim3 where = index_of(cluster_idx, divide(launch.grid, launch.cluster));
  for (std::uint32_t rank = 0; rank < launch.cluster.count(); ++rank) {
    const Dim3 inside = index_of(rank, launch.cluster);
    const Dim3 index{where.x * launch.cluster.x + inside.x, where.y * launch.cluster.y + inside.y,
                     where.z * launch.cluster.z + inside.z};
    cluster->ctas.push_back(start_cta(*cluster, rank, index));
    if (grid.observer != nullptr) grid.observer->cta_started(*cluster->ctas.back());
  }
  return cluster;
}

// When nothing can go on, asynchronous work takes effect; when there is none, polls of barriers
// end. A poll that ends without success may be what others wait for: a producer asks for the next
// stage before it fills this one, and in a cluster the next waits for all before it. So it takes
// many in a row, without any wait that comes to its end, until the cluster counts as stuck.
ClusterStatus run_cluster(Cluster& cluster) {
  constexpr int kFruitlessTimeouts = 64, kMostPollsPerTimeout = 16;
  int num_timeouts = 0, num_polls = 0;
  for (;;) {
    const std::uint64_t wakes = num_wakes(cluster), async_done = cluster.num_async_done;
    bool is_done = false;
    const ClusterStatus status = run_round(cluster, is_done);
    if (is_done) {
      while (run_pending(cluster)) {
      }
      cluster.is_done = true;
      return ClusterStatus::kDone;
    }
    if (num_wakes(cluster) != wakes) {
      num_timeouts = 0;
      cluster.num_quiet_rounds = 0;
    } else {
      ++cluster.num_quiet_rounds;
    }
    // Short turns take many rounds from one wait to the next.
    const bool may_go_on = num_timeouts == 0 || has_short_turns(cluster);
    if (status == ClusterStatus::kProgress && may_go_on) {
      if (cluster.grid->code->is_cross_cta) return status;
      continue;
    }
    // Work that took effect in the round may release a warp that had its turn before.
    if (run_pending(cluster) || cluster.num_async_done != async_done) continue;
    if (status == ClusterStatus::kPolling) {
      // A wait that was released has yielded; its loop is about to wait again.
      if (num_timeouts > 0 && num_polls++ < kMostPollsPerTimeout) continue;
      return status;
    }
    num_polls = 0;
    if (num_timeouts++ == kFruitlessTimeouts) return ClusterStatus::kStuck;
    bool any = false;
    for (const std::unique_ptr<Cta>& cta : cluster.ctas) {
      for (Warp& warp : cta->warps) any |= time_out(warp);
    }
    if (!any) return ClusterStatus::kStuck;
  }
}

}  // namespace tilewright::sim
