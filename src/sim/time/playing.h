// What is being played: warps, CTAs, clusters and their barriers, and the SMs that they run on.
// Plain state; what changes it, and when, is in engine.h. Times are clocks from the start.
#pragma once

#include "sim/report/prediction.h"
#include "sim/time/insn_cost.h"
#include "sim/time/prepared_trace.h"
#include "sim/time/sm_engine.h"
#include "sim/time/time_parameters.h"

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
  /// A line, and when it is there: others that ask for it meanwhile wait for the same answer.
  struct Line {
    std::uint64_t number = 0;
    double ready = 0;
  };

  explicit L1Cache(double bytes)
      : sets_(std::max<std::size_t>(1,
                                    static_cast<std::size_t>(bytes / (kCacheLineBytes * kWays)))) {}

  /// The line, if it is there or on its way; else nullptr, and it is on its way: see arrives().
  const Line* touch(std::uint64_t number) {
    Set& set = set_of(number);
    const auto found = std::ranges::find(set, number, &Line::number);
    const bool is_hit = found != set.end();
    std::rotate(set.begin(), is_hit ? found : set.end() - 1, is_hit ? found + 1 : set.end());
    if (!is_hit) set.front() = {.number = number};
    return is_hit ? &set.front() : nullptr;
  }
  /// When a line that touch() did not find is there.
  void arrives(std::uint64_t number, double ready) {
    Set& set = set_of(number);
    const auto found = std::ranges::find(set, number, &Line::number);
    if (found != set.end()) found->ready = ready;
  }

 private:
  static constexpr std::size_t kWays = 4;
  using Set = std::array<Line, kWays>;

  // Lines of a tile are far apart by powers of two: the sets are found by a hash.
  Set& set_of(std::uint64_t number) {
    return sets_[(number * 0x9e3779b97f4a7c15 >> 20) % sets_.size()];
  }

  std::vector<Set> sets_;
};

/// The code that an SM holds, by lines of eight instructions: a small cache in front of a larger
/// one. The line behind one that is used for the first time is fetched as well, so that straight
/// code comes as fast as lines do. Code that was not used before is where an earlier launch of the
/// same left it: near, if all that CTAs run has room there and no other kernel ran since; else what
/// was used longest ago is gone.
class CodeCache {
 public:
  static constexpr std::uint32_t kLineInstructions = kCodeLineInstructions;

  CodeCache(const TimeParameters& p, bool is_cold)
      : p_(p),
        is_cold_(is_cold),
        near_(sets_of(p.code_bytes)),
        behind_(sets_of(p.code_bytes_behind)) {}

  /// Lines that a CTA comes to.
  void expect(const std::vector<bool>& lines) {
    if (expected_.size() < lines.size()) expected_.resize(lines.size());
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (!lines[line] || expected_[line]) continue;
      expected_[line] = true;
      all_bytes_ += double{kCacheLineBytes};
    }
  }

  /// When a warp that comes to the line at `now` can go on.
  double use(std::uint32_t line, double now) {
    const double ready = entry(line, now);
    Way& way = find(near_, line)->front();
    if (!std::exchange(way.is_used, true)) {
      entry(line + 1, now);
      find(near_, line);
    }
    return ready;
  }

 private:
  static constexpr std::size_t kWays = 8;
  static constexpr std::uint32_t kNoLine = ~std::uint32_t{0};
  struct Way {
    std::uint32_t line = kNoLine;
    double ready = 0;
    bool is_used = false;
  };
  using Set = std::array<Way, kWays>;

  static std::size_t sets_of(double bytes) {
    return std::max<std::size_t>(1, static_cast<std::size_t>(bytes / (kCacheLineBytes * kWays)));
  }

  /// The set with the line in front; nullptr if it is not there.
  static Set* find(std::vector<Set>& sets, std::uint32_t line) {
    Set& set = sets[line % sets.size()];
    const auto found = std::ranges::find(set, line, &Way::line);
    if (found == set.end()) return nullptr;
    std::rotate(set.begin(), found, found + 1);
    return &set;
  }
  /// Puts it in front, in the place of the one that was not used for longest.
  static Way& add(std::vector<Set>& sets, std::uint32_t line) {
    Set& set = sets[line % sets.size()];
    std::rotate(set.begin(), set.end() - 1, set.end());
    set.front() = {.line = line};
    return set.front();
  }

  double entry(std::uint32_t line, double now) {
    if (const Set* const set = find(near_, line); set != nullptr) return set->front().ready;
    if (line >= is_known_.size()) is_known_.resize(line + 1);
    const bool is_behind = find(behind_, line) != nullptr;
    if (!is_behind) add(behind_, line);
    const bool is_known = is_known_[line];
    const bool is_from_l2 = !is_behind && (is_known || all_bytes_ > p_.code_bytes_behind);
    is_known_[line] = true;
    Way& way = add(near_, line);
    if (!is_known && !is_cold_ && all_bytes_ <= p_.code_bytes) return way.ready = now;
    way.ready = fetches_.serve(now, is_from_l2 ? p_.code_line_from_l2 : p_.code_line);
    return way.ready;
  }

  const TimeParameters& p_;
  bool is_cold_ = false;
  std::vector<Set> near_, behind_;
  std::vector<bool> is_known_, expected_;
  double all_bytes_ = 0;  ///< of expected_
  Server fetches_;
};

struct PlayingCta;
struct PlayingCluster;
struct PlayingPlace;

struct PlayingWarp {
  const PreparedWarp* trace = nullptr;
  PlayingCta* cta = nullptr;
  std::uint32_t index = 0, scheduler = 0;
  std::size_t next = 0;                         ///< instruction, of the trace
  std::uint32_t event = 0;                      ///< of that instruction: the next
  bool is_issued = false;                       ///< it is, though events of it are to come
  bool is_woken = false;                        ///< by the mbarrier that the event waits for
  std::int32_t ended_by = -1;                   ///< TimelineSpan::ended_by of the wait that ends
  double slots = 0;                             ///< of issue that the instruction took
  std::uint32_t code_line = ~std::uint32_t{0};  ///< from which it issues, or waits to
  double code_ready = 0;                        ///< when that line is there
  std::vector<double> ready;                    ///< by value, ValueNumbers
  std::vector<WaitCause> producer;              ///< likewise: what a wait for it is
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
  double tensor_loaded = 0, tensor_stored = 0;         ///< ends of the last tcgen05.ld and st
  double stored = 0;  ///< when all stores since the last fence are there; 0: there are none
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

/// An SM and its way to L2.
struct Sm {
  struct Scheduler {
    double free_at = 0;
    std::array<double, kNumPipes> pipe_free{};
  };
  std::array<Scheduler, kSchedulers> schedulers;
  Server shared, port_in, port_out, tensor;
  Server remote;              ///< loads and stores to other CTAs of the cluster
  Server fences;              ///< at the scope of the cluster or the GPU
  double product_shared = 0;  ///< what part of shared memory's time the last product of wgmma takes
  std::array<Server, kWarpgroupWarps> tensor_memory;  ///< by quarter of the lanes
  std::deque<double> products;  ///< of wgmma: ends of those that are under way
  bool has_wgmma = false;       ///< products are of registers
  L1Cache l1;
  CodeCache code;
  std::array<double, kNumPipes> pipe_busy{};
  double issue_busy = 0;
  double is_low_until = 0, low_clocks = 0;  ///< of the lower clock that products bring
  std::uint32_t next_scheduler = 0;         ///< that gets the next warp

  Sm(double l1_bytes, const TimeParameters& parameters, bool is_cold)
      : l1(l1_bytes), code(parameters, is_cold) {}

  /// Products run until `end`, and the clock stays low for a while behind them.
  void lower_clock(double now, double end, double hold) {
    const double until = end + hold;
    if (until <= is_low_until) return;
    low_clocks += until - std::max(now, is_low_until);
    is_low_until = until;
  }

  /// When shared memory has moved what takes so long by itself. Products of wgmma that are under
  /// way come first.
  double serve_shared(double now, double clocks) {
    const double start = std::max(now, shared.free_at);
    shared.busy += clocks;
    shared.free_at = start + clocks;
    const double multiplied = tensor.free_at - start, left = 1 - product_shared;
    if (product_shared == 0 || multiplied <= 0) return shared.free_at;
    const double meanwhile = multiplied * left;
    shared.free_at =
        clocks < meanwhile ? start + clocks / left : start + multiplied + clocks - meanwhile;
    return shared.free_at;
  }
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
  bool is_of_start = false;                ///< not in the place of one that ended
};

struct PlayingCluster {
  PlayingPlace* place = nullptr;
  std::vector<std::unique_ptr<PlayingCta>> ctas;
  std::unordered_map<std::uint64_t, PlayingBarrier> barriers;  ///< by generation
  std::unordered_map<std::uint64_t, std::uint32_t> arrivals;   ///< that each generation needs
  std::uint32_t num_live = 0, slot = 0;
  std::uint32_t num_arriving = 0;  ///< arrivals at mbarriers that are under way
};

/// The SMs of a cluster, and the clusters that come to them.
struct PlayingPlace {
  std::vector<std::unique_ptr<Sm>> sms;  ///< by rank
  PlaceQueue queue;
  std::size_t next = 0;
  std::vector<std::unique_ptr<PlayingCluster>> slots;
};

}  // namespace tilewright::sim
