#include "sim/time/launch_time.h"

#include "base/error.h"
#include "sim/report/usage.h"
#include "sim/time/l2_contents.h"
#include "sim/time/sm_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

namespace tilewright::sim {

namespace {

using ClusterTrace = std::vector<CtaTrace>;

/// Warp instructions that are played of one launch; what is left is taken to go on as it went.
constexpr std::uint64_t kMostPlayed = 8'000'000;
/// Places of the device that are played at the same time, and whose requests meet at L2 and HBM.
/// They stand for all; as many as make a ring of copies as fast as recorded (copy_stream of 8 and
/// 16 KiB an SM). One would have all SMs ask at the same time; many would hardly ever wait.
constexpr std::size_t kMostPlaces = 3, kMostCooperativePlaces = 32;

std::uint64_t work_of(const ClusterTrace& cluster) {
  std::uint64_t sum = 0;
  for (const CtaTrace& cta : cluster) sum += cta.num_ops;
  return sum;
}

std::array<std::uint64_t, 3> place_of(const Dim3& index) {
  return {index.x, index.y, index.z};
}

/// Which traced cluster stands for each cluster of the grid: one near to it along the axis of the
/// grid by which the work differs most regularly.
class Representatives {
 public:
  Representatives(const std::vector<ClusterTrace>& traced, const Launch& launch)
      : launch_(launch),
        is_each_traced_(traced.size() == launch.grid.count() / launch.cluster.count()) {
    for (std::size_t i = 0; i < traced.size(); ++i) {
      samples_.push_back(
          {place_of(traced[i].front().index), static_cast<double>(work_of(traced[i])), i});
    }
    std::array<double, 3> roughness{};
    for (std::size_t axis = 0; axis < 3; ++axis) roughness[axis] = roughness_along(axis);
    axis_ = static_cast<std::size_t>(std::ranges::min_element(roughness) - roughness.begin());
    std::ranges::stable_sort(samples_, {}, [this](const Sample& s) { return s.place[axis_]; });
  }

  std::size_t of(std::uint64_t cluster) const {
    if (is_each_traced_) return cluster;
    const std::uint64_t at = place_of_cluster(cluster);
    const auto after = std::ranges::lower_bound(samples_, at, {},
                                                [this](const Sample& s) { return s.place[axis_]; });
    auto best = after;
    if (after == samples_.end() ||
        (after != samples_.begin() && at - (after - 1)->place[axis_] < after->place[axis_] - at)) {
      best = after - 1;
    }
    // Of several at the same place each has its turn.
    const std::uint64_t place = best->place[axis_];
    const auto [first, last] = std::ranges::equal_range(
        samples_, place, {}, [this](const Sample& s) { return s.place[axis_]; });
    const auto count = static_cast<std::uint64_t>(last - first);
    return (first + static_cast<std::ptrdiff_t>(cluster % count))->number;
  }

 private:
  struct Sample {
    std::array<std::uint64_t, 3> place;
    double work = 0;
    std::size_t number = 0;
  };

  double roughness_along(std::size_t axis) {
    std::ranges::stable_sort(samples_, {}, [axis](const Sample& s) { return s.place[axis]; });
    double sum = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i) {
      sum += std::abs(samples_[i].work - samples_[i - 1].work);
    }
    return sum;
  }

  std::uint64_t place_of_cluster(std::uint64_t cluster) const {
    const std::uint64_t width = launch_.grid.x / launch_.cluster.x;
    const std::uint64_t height = launch_.grid.y / launch_.cluster.y;
    if (axis_ == 0) return cluster % width * launch_.cluster.x;
    if (axis_ == 1) return cluster / width % height * launch_.cluster.y;
    return cluster / (width * height) * launch_.cluster.z;
  }

  const Launch& launch_;
  bool is_each_traced_ = false;  ///< in their order
  std::vector<Sample> samples_;
  std::size_t axis_ = 0;
};

/// Whether its CTAs come to the device while those of the launch before are still there.
bool begins_beside(const Launch& launch) {
  return launch.is_in_graph && launch.is_dependent;
}

/// Whether some places get two clusters though there is one for each. The launch before, taken to
/// be of the same, is still at its places: those that it left are empty and get two before the
/// others have theirs.
bool is_uneven(const Launch& launch, std::uint64_t count, std::uint64_t places,
               std::uint64_t slots) {
  return begins_beside(launch) && slots > 1 && count <= places && 2 * count > places;
}

/// How long each traced cluster takes by itself, if they differ and come in several waves; else
/// what they do, which is the same.
std::vector<double> lengths_of(const KernelTiming& kernel, const MemoryShare& share,
                               const std::vector<ClusterTrace>& traced, bool has_waves) {
  constexpr double kSame = 1.02;
  std::vector<double> lengths;
  for (const ClusterTrace& cluster : traced) {
    lengths.push_back(static_cast<double>(work_of(cluster)));
  }
  const auto [least, most] = std::ranges::minmax(lengths);
  if (!has_waves || most < kSame * least) return lengths;
  for (std::size_t i = 0; i < traced.size(); ++i) {
    const PlaceQueue one[] = {{&traced[i]}};
    lengths[i] = play(kernel, share, one, 1).clocks + kernel.parameters.cta_start;
  }
  return lengths;
}

/// What comes to the places of the device: of each the numbers of traced clusters, in order, and
/// when it ends.
struct DealtClusters {
  std::vector<std::vector<std::size_t>> queues;
  std::vector<double> ends;

  /// Each cluster goes to the place that is free first.
  DealtClusters(const std::vector<ClusterTrace>& traced, const std::vector<double>& work,
                const Launch& launch, std::uint64_t places, std::uint64_t slots) {
    const Representatives representatives(traced, launch);
    const std::uint64_t count = launch.grid.count() / launch.cluster.count();
    const std::uint64_t sharing = is_uneven(launch, count, places, slots) ? 2 : 1;
    struct Slot {
      double free_at = 0;
      std::uint64_t number = 0;
      bool operator<(const Slot& other) const {
        return free_at != other.free_at ? free_at > other.free_at : number > other.number;
      }
    };
    std::priority_queue<Slot> free;
    for (std::uint64_t i = 0; i < std::min(places * slots, count); ++i) free.push({0, i});
    queues.resize(std::min(places, count));
    ends.resize(queues.size());
    for (std::uint64_t i = 0; i < count; ++i) {
      Slot slot = free.top();
      free.pop();
      const std::size_t sample = representatives.of(i);
      const std::size_t place = slot.number / sharing % queues.size();
      queues[place].push_back(sample);
      slot.free_at += work[sample];
      ends[place] = std::max(ends[place], slot.free_at);
      free.push(slot);
    }
    std::erase_if(queues, [](const auto& queue) { return queue.empty(); });
  }

  /// The place that ends last, and others at even distances in the order in which places end: of
  /// what all have to do they have their part, wherever the last one lies.
  std::vector<std::size_t> some(std::size_t most) const {
    std::vector<std::size_t> order(queues.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [this](std::size_t i) { return ends[i]; });
    const std::size_t count = std::min(most, order.size());
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(order[i * order.size() / count]);
    return out;
  }
};

/// What is played of a launch.
struct PlayedPlaces {
  std::vector<PlaceQueue> queues;
  std::uint64_t played = 0, all = 0;  ///< work of the queues' clusters

  /// Of a cooperative launch, whose CTAs wait for the slowest, more places.
  PlayedPlaces(const std::vector<ClusterTrace>& traced, const DealtClusters& dealt,
               std::uint64_t slots, bool is_whole) {
    const std::size_t most = is_whole ? kMostCooperativePlaces : kMostPlaces;
    for (const std::size_t place : dealt.some(most)) {
      PlaceQueue& queue = queues.emplace_back();
      std::uint64_t of_place = 0;
      for (const std::size_t sample : dealt.queues[place]) {
        const std::uint64_t work = work_of(traced[sample]);
        all += work;
        // A few rounds of those that are resident show how it goes on.
        if (!is_whole && of_place >= kMostPlayed / kMostPlaces && queue.size() >= 3 * slots)
          continue;
        queue.push_back(&traced[sample]);
        of_place += work;
      }
      played += of_place;
    }
  }

  double scale() const {
    return static_cast<double>(all) / static_cast<double>(std::max<std::uint64_t>(1, played));
  }
};

/// A launch behind another one, and its CTAs.
struct PlayedLaunch {
  double launch_clocks = 0, clocks = 0;
  EngineResult result;
};

/// In a graph a dependent launch begins as the one before ends, and waits for it where it says so.
/// With room on the device it is there long before: since that one, taken to be of the same, let it
/// go. Then nothing counts of what it does before it waits.
template <class Play>
PlayedLaunch play_launch(const TimeParameters& p, const Launch& launch, bool has_room,
                         Play&& play_around) {
  PlayedLaunch out;
  Around around;
  out.launch_clocks = std::max(0.0, (launch.is_in_graph ? p.graph_launch : p.launch) -
                                        (launch.is_dependent ? p.dependent_gain : 0));
  const double waits = std::max(0.0, out.launch_clocks - p.dependent_start);
  const bool is_chained = begins_beside(launch);
  if (is_chained) around.launch_before_ends = waits;
  out.result = play_around(around);
  out.clocks = out.result.clocks;
  if (!is_chained) return out;
  if (out.result.grid_trigger < 0) {  // it lets nothing go before it ends
    around.launch_before_ends = 0;
    out.result = play_around(around);
    out.clocks = out.result.clocks;
    return out;
  }
  const double lead = out.clocks - out.result.grid_trigger - p.dependent_start;
  if (!has_room || lead <= waits) {
    out.launch_clocks -= waits;
    return out;
  }
  around.launch_before_ends = lead;
  out.clocks = play_around(around).clocks - lead;
  return out;
}

MemoryShare memory_share(const LaunchTrace& trace, const Launch& launch, const DeviceModel& model,
                         const TimeParameters& parameters, std::uint64_t resident) {
  MemoryShare share;
  share.is_cold = !launch.is_in_graph;
  share.active_sms =
      static_cast<double>(std::min<std::uint64_t>(model.num_sms, launch.grid.count()));
  const double all =
      static_cast<double>(trace.num_clusters) / static_cast<double>(trace.clusters.size());
  for (const TracedArea& area : trace.areas) {
    // Of an allocation each byte comes from HBM once, if it is touched at all and L2 has it not. In
    // a graph a launch is behind one of the same kernel, as for its code.
    const bool is_held =
        launch.is_in_graph && (area.is_variable || (area.is_held && !is_written(area)));
    const double distinct = is_held ? 0 : touched_bytes(trace, area);
    const double requested = area.requested_bytes * all;
    share.miss.push_back(requested == 0 ? 0 : std::min(1.0, distinct / requested));
    share.fading.push_back(miss_fading(share.miss.back()));
    share.is_written.push_back(is_written(area));
  }
  share.l1_bytes = std::max(
      4096.0, parameters.l1_bytes - static_cast<double>(resident) * launch.dynamic_shared_bytes);
  return share;
}

/// Nothing where there is no cubin; a cubin that cannot be read is told.
std::vector<MachineInsn> machine_code_of(const KernelCode& code, Prediction& out) {
  if (code.module == nullptr || code.module->cubin == nullptr) return {};
  try {
    return read_machine_code(std::as_bytes(std::span(*code.module->cubin)), code.info.name);
  } catch (const Error& error) {
    out.note = error.what();
    return {};
  }
}

/// Products lower the clock at once, on all SMs: to the one of the data sheet as long as there are
/// some, and further by the part of the time for which tensor cores are busy.
double loaded_clock(const TimeParameters& p, const EngineResult& result, double active_part) {
  const double clocks = std::max(1.0, result.clocks);
  const double busy = result.busy[static_cast<std::size_t>(TimedUnit::kTensor)];
  const double part = std::min(1.0, busy / clocks), low = std::min(1.0, result.low_clocks / clocks);
  return p.clock_hz - low * (p.clock_hz - p.tensor_clock_hz) -
         part * active_part * p.tensor_clock_drop_hz;
}

void describe(Prediction& out, const KernelTiming& kernel, const EngineResult& result,
              double scale) {
  const double hz = out.clock_hz;
  for (std::size_t i = 0; i < kNumTimedUnits; ++i) out.busy[i] = result.busy[i] * scale / hz;
  constexpr auto kHbm = static_cast<std::size_t>(TimedUnit::kHbm);
  out.busy[kHbm] *= hz / kernel.parameters.clock_hz;
  const double to_seconds = (out.seconds - out.launch_seconds) / std::max(1.0, result.warp_clocks);
  for (std::size_t i = 0; i < kNumWaitCauses; ++i) out.waits[i] = result.waits[i] * to_seconds;
  for (std::size_t insn = 0; insn < result.lines.size(); ++insn) {
    if (result.lines[insn].empty()) continue;
    const Instruction* const text = kernel.code.place(kernel.code.insns[insn]).syntax;
    auto& causes = out.lines[text == nullptr ? 0 : text->pos.line];
    for (std::size_t i = 0; i < kNumWaitCauses; ++i) {
      causes[i] += result.lines[insn][i] * to_seconds;
    }
  }
  out.timeline = result.timeline;
}

}  // namespace

Prediction predict_launch(const KernelCode& code, const Launch& launch, const DeviceModel& model,
                          const TimeParameters& parameters, const LaunchTrace& trace) {
  Prediction out;
  out.num_launches = 1;
  out.num_ctas = launch.grid.count();
  out.num_traced = trace.clusters.size() * launch.cluster.count();
  out.clock_hz = parameters.clock_hz;
  if (trace.clusters.empty()) {
    out.problem = "no CTA of the sample ran to its end";
    return out;
  }
  const Occupancy occupancy = occupancy_of(model, code.info, launch);
  const std::uint64_t slots = std::max(1U, occupancy.ctas_per_sm);
  const std::uint64_t places = std::max<std::uint64_t>(1, model.num_sms / launch.cluster.count());
  const KernelTiming kernel(code, model, parameters, machine_code_of(code, out));
  out.has_machine_code = !kernel.machine.is_empty();
  MemoryShare share = memory_share(trace, launch, model, parameters, slots);
  try {
    const std::uint64_t count = launch.grid.count() / launch.cluster.count();
    const std::vector<double> lengths =
        lengths_of(kernel, share, trace.clusters, count > places * slots);
    const DealtClusters dealt(trace.clusters, lengths, launch, places, slots);
    const PlayedPlaces played(trace.clusters, dealt, slots, launch.is_cooperative);
    for (const TracedArea& area : trace.areas) {
      const double all = area.requested_bytes * static_cast<double>(trace.num_clusters) /
                         static_cast<double>(trace.clusters.size());
      const double sms = static_cast<double>(played.queues.size() * launch.cluster.count());
      share.asked.push_back(all * sms / share.active_sms / played.scale());
    }
    const auto resident = static_cast<std::uint32_t>(slots);
    // Clusters of four and more do not find each free place: two times 16 of them do not fit.
    const std::uint64_t beside = launch.cluster.count() <= 2 ? 2 : 3;
    const bool has_room = beside * count <= places * slots;
    const PlayedLaunch played_launch = play_launch(
        parameters, launch, has_room,
        [&](const Around& around) { return play(kernel, share, played.queues, resident, around); });
    const EngineResult& result = played_launch.result;
    const double launch_clocks = played_launch.launch_clocks;
    const double scale = played.scale();
    // The last step: from clocks to seconds.
    out.clock_hz = loaded_clock(parameters, result, share.active_sms / model.num_sms);
    out.launch_seconds = launch_clocks / parameters.clock_hz;
    const double hbm = result.busy[static_cast<std::size_t>(TimedUnit::kHbm)] * scale;
    out.seconds = out.launch_seconds +
                  std::max(played_launch.clocks * scale / out.clock_hz, hbm / parameters.clock_hz);
    describe(out, kernel, result, scale);
  } catch (const Error& error) {
    out.problem = error.what();
  }
  return out;
}

}  // namespace tilewright::sim
