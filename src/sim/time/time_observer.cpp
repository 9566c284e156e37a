#include "sim/time/time_observer.h"

#include "sim/async/tensor_copy.h"
#include "sim/report/access_cost.h"
#include "sim/state/global_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kLineBytes = 128;

/// Whether it waits until others than the CTA see what the warp has stored.
bool is_wide_release(const MemoryOrder& order) {
  const bool is_wide = order.scope == MemoryScope::kCluster || order.scope == MemoryScope::kGpu ||
                       order.scope == MemoryScope::kSystem;
  return is_wide && (order.semantics == MemorySemantics::kRelease ||
                     order.semantics == MemorySemantics::kAcquireRelease ||
                     order.semantics == MemorySemantics::kSequential);
}

/// Of the launch, by the place of the CTA in the grid.
std::uint64_t cluster_index(const Cta& cta) {
  const Dim3 &grid = cta.grid->launch->grid, &cluster = cta.grid->launch->cluster;
  const std::uint64_t width = grid.x / cluster.x, height = grid.y / cluster.y;
  return cta.index.x / cluster.x +
         width * (cta.index.y / cluster.y + height * (cta.index.z / cluster.z));
}

/// Different lines that the lanes touch, each once.
template <class Visit>
std::uint32_t for_each_line(const WarpAccess& access, Visit&& visit) {
  std::array<std::uint64_t, 2 * kLanes> seen;
  std::uint32_t count = 0;
  for_each_lane(access.lanes, [&](int lane) {
    const std::uint64_t begin = access.addresses[lane];
    for (std::uint64_t line = begin / kLineBytes; line <= (begin + access.bytes - 1) / kLineBytes;
         ++line) {
      const auto known = seen.begin() + count;
      if (count == seen.size() || std::find(seen.begin(), known, line) != known) continue;
      seen[count++] = line;
      visit(line);
    }
  });
  return count;
}

std::uint64_t sampled_cluster(std::uint64_t num_clusters, std::uint64_t number) {
  constexpr double kGolden = 0.6180339887498949;
  const double fraction = std::fmod(kGolden * static_cast<double>(number), 1.0);
  return static_cast<std::uint64_t>(fraction * static_cast<double>(num_clusters));
}

}  // namespace

std::vector<std::uint64_t> sample_clusters(std::uint64_t num_clusters, std::uint64_t most) {
  std::vector<std::uint64_t> out;
  if (num_clusters <= most) {
    for (std::uint64_t i = 0; i < num_clusters; ++i) out.push_back(i);
    return out;
  }
  for (std::uint64_t i = 0; i < most; ++i) out.push_back(sampled_cluster(num_clusters, i));
  std::ranges::sort(out);
  const auto rest = std::ranges::unique(out);
  out.erase(rest.begin(), rest.end());
  return out;
}

std::vector<std::uint64_t> more_clusters(std::uint64_t num_clusters, std::uint64_t from,
                                         std::uint64_t to) {
  std::vector<bool> is_known(num_clusters);
  for (const std::uint64_t known : sample_clusters(num_clusters, from)) is_known[known] = true;
  std::vector<std::uint64_t> out;
  const auto add = [&](std::uint64_t cluster) {
    if (is_known[cluster]) return;
    is_known[cluster] = true;
    out.push_back(cluster);
  };
  for (std::uint64_t i = from; i < to; ++i) add(sampled_cluster(num_clusters, i));
  // The sequence meets some clusters twice before it has met all.
  for (std::uint64_t i = 0; to >= num_clusters && i < num_clusters; ++i) add(i);
  return out;
}

struct TimeObserver::Recorder {
  CtaTrace trace;
  std::map<std::uint16_t, Footprint> touched;
  std::uint64_t grid_arrivals = 0;
  /// The last poll of the grid's barrier: its instruction, generation and place in its warp's trace
  const Insn* poll = nullptr;
  std::uint64_t polled = 0;
  std::size_t poll_op = 0;
};

TimeObserver::TimeObserver(const KernelCode& code, const GlobalMemory& memory,
                           std::vector<std::uint64_t> sample, MoreOfSample more)
    : code_(code), memory_(memory), more_(std::move(more)), sample_(std::move(sample)) {
  sample_.insert(sample_.end(), more_.clusters.begin(), more_.clusters.end());
  std::ranges::sort(sample_);
}

TimeObserver::~TimeObserver() = default;

void TimeObserver::cta_started(Cta& cta) {
  if (!std::ranges::binary_search(sample_, cluster_index(cta))) return;
  if (variables_.empty() && cta.grid->launch->module != nullptr) {
    variables_ = cta.grid->launch->module->variables();
  }
  auto recorder = std::make_unique<Recorder>();
  recorder->trace.linear_index = cta.linear_index;
  recorder->trace.index = cta.index;
  recorder->trace.rank = cta.rank;
  recorder->trace.warps.resize(cta.warps.size());
  recorders_[&cta] = std::move(recorder);
  last_cta_ = nullptr;
}

void TimeObserver::cta_ended(Cta& cta) {
  const auto found = recorders_.find(&cta);
  if (found == recorders_.end()) return;
  Recorder& recorder = *found->second;
  for (const auto& [area, footprint] : recorder.touched) {
    areas_[area].distinct_bytes += static_cast<double>(footprint.num_sectors() * kSectorBytes);
    unions_[area].add(footprint);
  }
  for (const WarpTrace& warp : recorder.trace.warps) recorder.trace.num_ops += warp.ops.size();
  num_ops_ += recorder.trace.num_ops;
  std::vector<CtaTrace>& ctas = clusters_[cluster_index(cta)];
  ctas.resize(cta.grid->launch->cluster.count());
  ctas[cta.rank] = std::move(recorder.trace);
  recorders_.erase(found);
  last_cta_ = nullptr;
  ask_for_more(*cta.grid);
}

void TimeObserver::ask_for_more(Grid& grid) {
  const bool is_sample_done = recorders_.empty() && clusters_.size() >= grid.sample.size();
  if (!is_sample_done || has_atomics_ || num_ops_ >= more_.little_work) return;
  if (num_asked_ < more_.clusters.size()) grid.sample.push_back(more_.clusters[num_asked_++]);
}

TimeObserver::Recorder* TimeObserver::recorder(const Warp& warp) {
  if (warp.cta == last_cta_) return last_recorder_;
  const auto found = recorders_.find(warp.cta);
  last_cta_ = warp.cta;
  last_recorder_ = found == recorders_.end() ? nullptr : found->second.get();
  return last_recorder_;
}

WarpTrace* TimeObserver::trace(const Warp& warp) {
  Recorder* const found = recorder(warp);
  return found == nullptr ? nullptr : &found->trace.warps[warp.index];
}

void TimeObserver::add(const Warp& warp, const TraceEvent& event) {
  if (WarpTrace* const to = trace(warp); to != nullptr && !to->ops.empty()) {
    to->events.push_back(event);
  }
}

// An instruction that waited runs again and is one all the same, unless other lanes of its warp
// came in between.
void TimeObserver::executing(Warp& warp, const Insn& insn, std::uint32_t) {
  WarpTrace* const to = trace(warp);
  if (to == nullptr) return;
  const auto number = static_cast<std::uint32_t>(&insn - code_.insns.data());
  if (warp.is_resumed && !to->ops.empty() && to->ops.back().insn == number) return;
  to->ops.push_back({number, static_cast<std::uint32_t>(to->events.size())});
}

void TimeObserver::shared_access(Warp& warp, const Insn&, const WarpAccess& access) {
  if (recorder(warp) == nullptr) return;
  const int lane = std::countr_zero(access.lanes);
  const bool is_remote = (access.addresses[lane] >> kSharedRankShift) != warp.cta->rank;
  TraceEvent event;
  event.kind = is_remote ? TraceKind::kRemoteShared : TraceKind::kShared;
  event.is_write = access.kind != AccessKind::kRead;
  event.a = shared_cost(access).wavefronts;
  add(warp, event);
}

std::uint16_t TimeObserver::area_of(std::uint64_t address) {
  if (address >= area_begin_ && address < area_end_) return last_area_;
  const auto found = memory_.find(address);
  const std::uint64_t id = found ? found->id : 0;
  auto at = std::ranges::find(areas_, id, &TracedArea::id);
  if (at == areas_.end()) {
    const bool is_variable = found && std::ranges::find(variables_, found->address,
                                                        &VariableInfo::address) != variables_.end();
    areas_.push_back(
        {.id = id, .size_bytes = found ? found->size_bytes : 0, .is_variable = is_variable});
    unions_.emplace_back();
    at = areas_.end() - 1;
  }
  area_begin_ = found ? found->address : address;
  area_end_ = found ? found->address + found->size_bytes : address + 1;
  last_area_ = static_cast<std::uint16_t>(at - areas_.begin());
  return last_area_;
}

// Addresses are the host's, other ones in every run: a prediction may not depend on them.
std::uint64_t TimeObserver::line_in_area(std::uint64_t line, std::uint16_t area) const {
  constexpr int kAreaBit = 30;  // an allocation has less than 2^30 lines, 128 GiB
  return (std::uint64_t{area} << kAreaBit) + (line - area_begin_ / kLineBytes);
}

void TimeObserver::count_bytes(Recorder& recorder, std::uint16_t area, std::uint64_t address,
                               std::uint64_t bytes) {
  recorder.touched[area].add(address, bytes);
}

// How often a poll fails is a result of the timing: what came since the first is forgotten.
bool TimeObserver::is_grid_barrier(Warp& warp, const Insn& insn, const WarpAccess& access) {
  constexpr std::uint64_t kBytes = 64;  // of the workspace
  const std::uint64_t address = access.addresses[std::countr_zero(access.lanes)];
  if (address - warp.grid->workspace_address >= kBytes || warp.grid->workspace_address == 0) {
    return false;
  }
  Recorder& to = *recorder(warp);
  WarpTrace& trace = to.trace.warps[warp.index];
  if (access.kind == AccessKind::kAtomic) {
    add(warp, {.kind = TraceKind::kGridArrive, .b = ++to.grid_arrivals});
  } else if (access.kind == AccessKind::kRead && to.grid_arrivals != 0) {
    if (to.poll == &insn && to.polled == to.grid_arrivals) {
      trace.ops.resize(to.poll_op + 1);
      trace.events.resize(trace.ops.back().first_event + 1);
    } else {
      to.poll = &insn;
      to.polled = to.grid_arrivals;
      to.poll_op = trace.ops.size() - 1;
      add(warp, {.kind = TraceKind::kGridPoll, .b = to.grid_arrivals});
    }
  }
  return true;
}

void TimeObserver::global_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  Recorder* const to = recorder(warp);
  if (to == nullptr) return;
  if (is_wide_release(access.order)) add(warp, {.kind = TraceKind::kMemoryFence});
  if (is_grid_barrier(warp, insn, access)) return;
  TraceEvent event;
  event.kind = TraceKind::kGlobal;
  event.is_write = access.kind == AccessKind::kWrite;
  event.is_read = access.kind == AccessKind::kAtomic;
  has_atomics_ |= event.is_read;
  event.area = area_of(access.addresses[std::countr_zero(access.lanes)]);
  event.a = global_cost(access).sectors;
  areas_[event.area].requested_bytes += event.a * double{kSectorBytes};
  if (access.kind != AccessKind::kRead) {
    areas_[event.area].written_bytes += event.a * double{kSectorBytes};
  }
  for_each_lane(access.lanes, [&](int lane) {
    count_bytes(*to, event.area, access.addresses[lane], access.bytes);
  });
  std::vector<TraceEvent> lines;
  event.b = for_each_line(access, [&](std::uint64_t line) {
    lines.push_back({.kind = TraceKind::kLine, .b = line_in_area(line, event.area)});
  });
  add(warp, event);
  if (access.kind != AccessKind::kRead || access.is_strong()) return;
  for (const TraceEvent& line : lines) add(warp, line);
}

void TimeObserver::local_access(Warp& warp, const Insn&, const WarpAccess& access) {
  const auto lanes = static_cast<std::uint32_t>(std::popcount(access.lanes));
  add(warp, {.kind = TraceKind::kLocal,
             .is_write = access.kind != AccessKind::kRead,
             .a = lanes * access.bytes});
}

std::uint64_t TimeObserver::async_issued(Warp& warp, const Insn&, const AsyncOperation& operation) {
  Recorder* const to = recorder(warp);
  if (to == nullptr) return 0;
  TraceEvent event;
  switch (operation.kind) {
    case AsyncKind::kCpAsync:
      event.kind = TraceKind::kThreadCopy;
      break;
    case AsyncKind::kBulkCopy:
    case AsyncKind::kTensorCopy:
      event.kind = operation.completion == AsyncCompletion::kBulkGroup ? TraceKind::kCopyOut
                                                                       : TraceKind::kCopyIn;
      break;
    case AsyncKind::kBulkReduce:
    case AsyncKind::kTensorReduce:
      event.kind = TraceKind::kCopyOut;
      break;
    case AsyncKind::kStoreAsync:
      event.kind = TraceKind::kStoreAsync;
      break;
    default:
      return 0;
  }
  event.area = kNoArea;
  event.b = operation.mbarrier;
  event.is_repeat = operation.is_repeat;
  std::uint64_t shared_bytes = 0, global_bytes = 0, last_line = ~std::uint64_t{0}, lines = 0;
  for (const AsyncRange& range : operation.ranges) {
    if (range.is_shared) {
      if (range.kind != AccessKind::kRead) {
        event.rank = static_cast<std::uint8_t>(range.address >> kSharedRankShift);
      }
      if (range.kind != AccessKind::kRead || event.kind == TraceKind::kCopyOut)
        shared_bytes += range.bytes;
      continue;
    }
    event.area = area_of(range.address);
    global_bytes += range.bytes;
    areas_[event.area].requested_bytes += static_cast<double>(range.bytes);
    if (range.kind != AccessKind::kRead) {
      areas_[event.area].written_bytes += static_cast<double>(range.bytes);
    }
    count_bytes(*to, event.area, range.address, range.bytes);
    lines += range.address / kLineBytes != last_line;
    last_line = range.address / kLineBytes;
  }
  const auto bytes = static_cast<std::uint32_t>(std::max(shared_bytes, global_bytes));
  event.a = operation.tensor != nullptr ? transaction_bytes(*operation.tensor) : bytes;
  event.shared_units = static_cast<std::uint16_t>(bytes / kSharedUnitBytes);
  if (event.kind == TraceKind::kThreadCopy) event.b = lines;
  add(warp, event);
  return 0;
}

void TimeObserver::group_committed(Warp& warp, const Insn&, GroupKind kind, std::uint32_t) {
  TraceKind what = TraceKind::kBulkCommit;
  if (kind == GroupKind::kCpAsync) what = TraceKind::kCopyCommit;
  if (kind == GroupKind::kWgmma) what = TraceKind::kWgmmaCommit;
  add(warp, {.kind = what});
}

void TimeObserver::group_waited(Warp& warp, const Insn&, GroupKind kind, std::uint32_t,
                                std::uint32_t num_open) {
  TraceEvent event{.kind = TraceKind::kBulkWait, .a = num_open};
  if (kind == GroupKind::kCpAsync) event.kind = TraceKind::kCopyWait;
  if (kind == GroupKind::kWgmma) event.kind = TraceKind::kWgmmaWait;
  event.is_read = kind == GroupKind::kBulkRead;
  add(warp, event);
}

// Each lane tells its own; lanes that do the same are one event.
void TimeObserver::mbarrier(Warp& warp, const Insn&, const MbarrierEvent& event) {
  WarpTrace* const to = trace(warp);
  if (to == nullptr || to->ops.empty()) return;
  const bool is_first = to->events.size() == to->ops.back().first_event;
  TraceEvent* const last = is_first ? nullptr : &to->events.back();
  const auto add_up = [&](TraceKind kind, std::uint32_t count) {
    if (last != nullptr && last->kind == kind && last->b == event.address &&
        kind != TraceKind::kExpect) {
      last->a += count;
    } else {
      to->events.push_back({.kind = kind, .a = count, .b = event.address});
    }
  };
  switch (event.action) {
    case MbarrierAction::kInit:
      to->events.push_back(
          {.kind = TraceKind::kMbarrierInit, .a = event.count, .b = event.address});
      return;
    case MbarrierAction::kExpect:
      add_up(TraceKind::kExpect, static_cast<std::uint32_t>(event.bytes));
      return;
    case MbarrierAction::kComplete:
      if (!event.is_async) add_up(TraceKind::kComplete, static_cast<std::uint32_t>(event.bytes));
      return;
    case MbarrierAction::kArrive:
      if (event.commit != 0) return;  // tensor_committed
      if (event.is_async) return add_up(TraceKind::kCopyArrive, event.count);
      if (is_wide_release(event.order) && is_first) {
        to->events.push_back({.kind = TraceKind::kMemoryFence});
      }
      if (event.bytes != 0) {
        to->events.push_back({.kind = TraceKind::kExpect,
                              .a = static_cast<std::uint32_t>(event.bytes),
                              .b = event.address});
        to->events.push_back({.kind = TraceKind::kArrive, .a = 1, .b = event.address});
        return;
      }
      return add_up(TraceKind::kArrive, event.count);
    case MbarrierAction::kWaitSuccess:
      if (last != nullptr && last->kind == TraceKind::kMbarrierWait && last->b == event.address) {
        return;
      }
      to->events.push_back({.kind = TraceKind::kMbarrierWait,
                            .a = static_cast<std::uint32_t>(event.phase),
                            .b = event.address});
      return;
    case MbarrierAction::kInvalidate:
    case MbarrierAction::kWaitFailure:  // how often is a result of the timing
      return;
  }
}

void TimeObserver::fence(Warp& warp, const Insn&, std::uint32_t, const FenceEvent& event) {
  if (event.kind == FenceKind::kProxyAsync) add(warp, {.kind = TraceKind::kProxyFence});
  if (event.kind == FenceKind::kGridWait) add(warp, {.kind = TraceKind::kGridWait});
  if (event.kind == FenceKind::kGridTrigger) add(warp, {.kind = TraceKind::kGridTrigger});
  if (event.kind == FenceKind::kMemory && is_wide_release(event.order)) {
    add(warp, {.kind = TraceKind::kMemoryFence});
  }
}

void TimeObserver::barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
                           const BarrierEvent& event) {
  if (event.kind == BarrierKind::kCluster) {
    const std::uint64_t generation = event.generation - (event.is_arrive ? 0 : 1);
    if (event.is_arrive && is_wide_release(event.order)) {
      add(warp, {.kind = TraceKind::kMemoryFence});
    }
    add(warp, {.kind = event.is_arrive ? TraceKind::kClusterArrive : TraceKind::kClusterWait,
               .b = generation});
    return;
  }
  if (event.kind != BarrierKind::kNamed || !event.is_arrive) return;
  WarpTrace* const to = trace(warp);
  // Lanes of a warp that come one after the other go on together: the last ones wait. Between them
  // are few events.
  if (to != nullptr && lanes != ~std::uint32_t{0}) {
    constexpr std::size_t kFarthest = 64;
    const std::size_t count = std::min(kFarthest, to->events.size());
    for (TraceEvent& other : std::span(to->events).last(count)) {
      const bool is_same = other.kind == TraceKind::kBarrierWait && other.a == event.id;
      if (is_same && other.b == event.generation) other.kind = TraceKind::kNothing;
    }
  }
  add(warp, {.kind = TraceKind::kBarrierArrive, .a = event.id, .b = event.generation});
  const Instruction* const text = code_.place(insn).syntax;
  const bool is_waiting =
      text == nullptr ||
      std::ranges::find(text->modifiers, std::string_view("arrive")) == text->modifiers.end();
  if (is_waiting) {
    add(warp, {.kind = TraceKind::kBarrierWait, .a = event.id, .b = event.generation});
  }
}

void TimeObserver::wgmma_issued(Warp& warp, const Insn&, const WgmmaEvent& event) {
  add(warp, {.kind = TraceKind::kWgmma,
             .is_shared = event.a_registers.empty(),
             .a = event.shape_n,
             .b = event.shape_k});
}

void TimeObserver::tensor_allocated(Warp& warp, const Insn&, const TensorAllocEvent& event) {
  if (event.action == TensorAllocAction::kAlloc) add(warp, {.kind = TraceKind::kTensorAlloc});
}

void TimeObserver::tensor_access(Warp& warp, const Insn&, const TensorAccess& access) {
  add(warp, {.kind = TraceKind::kTensorAccess,
             .is_write = access.kind != AccessKind::kRead,
             .a = access.num_cells});
}

void TimeObserver::tensor_waited(Warp& warp, const Insn&, AccessKind kind) {
  add(warp, {.kind = TraceKind::kTensorWait, .is_write = kind != AccessKind::kRead});
}

void TimeObserver::tensor_issued(Warp& warp, const Insn&, const TensorOperation& operation) {
  if (operation.kind != TensorKind::kMma) return;
  TraceEvent event{.kind = TraceKind::kTensorMma, .is_shared = true};
  event.is_pair = operation.cta_group == 2;
  for (const TensorRegion& region : operation.regions) {
    if (region.role == TensorRole::kA) event.is_shared = false;
    if (region.role != TensorRole::kAccumulator) continue;
    event.a = region.m << 16 | region.n;
    event.b = region.k;
  }
  add(warp, event);
}

void TimeObserver::tensor_committed(Warp& warp, const Insn&, const TensorCommit& commit) {
  for (const std::uint32_t target : commit.targets) {
    add(warp, {.kind = TraceKind::kTensorCommit, .b = target});
  }
}

LaunchTrace TimeObserver::take() {
  LaunchTrace out;
  for (std::size_t i = 0; i < areas_.size(); ++i) {
    areas_[i].union_bytes = static_cast<double>(unions_[i].num_sectors() * kSectorBytes);
  }
  out.areas = std::move(areas_);
  for (auto& [index, ctas] : clusters_) out.clusters.push_back(std::move(ctas));
  return out;
}

}  // namespace tilewright::sim
