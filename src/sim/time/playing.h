// What is being played: warps, CTAs, clusters and their barriers, and the SMs that they run on.
// Plain state; what changes it, and when, is in engine.h. Times are clocks from the start.
#pragma once

#include "sim/report/prediction.h"
#include "sim/time/insn_cost.h"
#include "sim/time/prepared_trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::sim {

inline constexpr std::uint32_t kSchedulers = 4;  ///< of an SM
inline constexpr std::uint32_t kWarpgroupWarps = 4;
/// Of L1, and what shared memory moves in a clock
inline constexpr std::uint64_t kCacheLineBytes = 128;

/// A unit that serves one after the other.
struct Server {
  double free_at = 0, busy = 0;

  /// When it has done what takes so long.
  double serve(double now, double clocks) {
    free_at = std::max(now, free_at) + clocks;
    busy += clocks;
    return free_at;
  }
};

/// Lines that L1 holds, four to a set; the one that was used last is the first.
class L1Cache {
 public:
  explicit L1Cache(double bytes)
      : sets_(std::max<std::size_t>(1,
                                    static_cast<std::size_t>(bytes / (kCacheLineBytes * kWays)))) {}

  /// Whether the line is there. Afterwards it is.
  bool touch(std::uint64_t line) {
    // Lines of a tile are far apart by powers of two: the sets are found by a hash.
    auto& set = sets_[(line * 0x9e3779b97f4a7c15 >> 20) % sets_.size()];
    const auto found = std::ranges::find(set, line);
    const bool is_hit = found != set.end();
    std::rotate(set.begin(), is_hit ? found : set.end() - 1, is_hit ? found + 1 : set.end());
    set.front() = line;
    return is_hit;
  }

 private:
  static constexpr std::size_t kWays = 4;
  std::vector<std::array<std::uint64_t, kWays>> sets_;
};

struct PlayingCta;
struct PlayingCluster;

struct PlayingWarp {
  const PreparedWarp* trace = nullptr;
  PlayingCta* cta = nullptr;
  std::uint32_t index = 0, scheduler = 0;
  std::size_t next = 0;             ///< instruction, of the trace
  std::uint32_t event = 0;          ///< of that instruction: the next
  bool is_issued = false;           ///< it is, though events of it are to come
  bool is_woken = false;            ///< by the mbarrier that the event waits for
  std::int32_t ended_by = -1;       ///< TimelineSpan::ended_by of the wait that ends
  double slots = 0;                 ///< of issue that the instruction took
  std::vector<double> ready;        ///< by value, ValueNumbers
  std::vector<WaitCause> producer;  ///< likewise: what a wait for it is
  /// Of machine code: when each of the six counters is at zero, and what a wait for it is
  std::array<double, 6> counter{};
  std::array<WaitCause, 6> counter_cause{};
  double began = 0;
  double wait_began = 0;  ///< up to here all time has a cause
  std::uint64_t num_wgmmas = 0;
  std::vector<std::uint64_t> wgmma_groups;  ///< of each group: how many wgmmas came before its end
  double copies_done = 0, open_copies = 0;  ///< cp.async: all, and those not committed
  std::vector<double> copy_groups;
  double open_bulk_read = 0, open_bulk = 0;
  std::vector<std::pair<double, double>> bulk_groups;  ///< read, done
  double tensor_access = 0;                            ///< end of the last tcgen05.ld or st
};

struct Warpgroup {
  std::vector<std::uint8_t> arrived;  ///< warps that issued each wgmma
  std::vector<double> done;           ///< of those that all four did
  std::vector<PlayingWarp*> waiting;
};

struct PlayingMbarrier {
  std::uint32_t expected = 0;
  std::int64_t pending = 0, bytes = 0;
  std::uint64_t phase = 0;
  bool is_initialised = false;
  std::vector<PlayingWarp*> waiting;

  /// Warps that came before keep waiting.
  void init(std::uint32_t count) {
    expected = count;
    pending = count;
    bytes = 0;
    phase = 0;
    is_initialised = true;
  }
};

/// One generation of a named barrier, or of the cluster's.
struct PlayingBarrier {
  std::uint32_t arrived = 0;
  double released_at = -1;  ///< below 0: not yet
  std::vector<PlayingWarp*> waiting;
};

/// An SM and its share of L2 and HBM.
struct Sm {
  struct Scheduler {
    double free_at = 0;
    std::array<double, kNumPipes> pipe_free{};
  };
  std::array<Scheduler, kSchedulers> schedulers;
  Server shared, port_in, port_out, l2, hbm, tensor;
  std::deque<double> products;  ///< of wgmma: ends of those that are under way
  bool has_wgmma = false;       ///< products are of registers
  L1Cache l1;
  std::array<double, kNumPipes> pipe_busy{};
  double issue_busy = 0;
  std::uint32_t next_scheduler = 0;  ///< that gets the next warp

  explicit Sm(double l1_bytes) : l1(l1_bytes) {}
};

struct PlayingCta {
  const PreparedCta* trace = nullptr;
  PlayingCluster* cluster = nullptr;
  Sm* sm = nullptr;
  std::uint64_t instance = 0;  ///< a number of its own: a trace is played more than once
  std::uint32_t num_live = 0;
  std::vector<PlayingWarp> warps;
  std::vector<Warpgroup> warpgroups;
  std::unordered_map<std::uint32_t, PlayingMbarrier> mbarriers;  ///< by offset
  std::unordered_map<std::uint64_t, PlayingBarrier> barriers;    ///< by barrier_key
  std::vector<std::uint32_t> used_copies;  ///< instructions whose tensor map has been fetched
  double tensor_done = 0;                  ///< the last tcgen05.mma
  bool is_shown = false;                   ///< in the timeline
};

struct PlayingCluster {
  std::vector<std::unique_ptr<PlayingCta>> ctas;
  std::unordered_map<std::uint64_t, PlayingBarrier> barriers;  ///< by generation
  std::unordered_map<std::uint64_t, std::uint32_t> arrivals;   ///< that each generation needs
  std::uint32_t num_live = 0, slot = 0;
  std::uint32_t num_arriving = 0;  ///< arrivals at mbarriers that are under way
};

}  // namespace tilewright::sim
