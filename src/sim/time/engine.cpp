#include "sim/time/engine.h"

#include "base/error.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <utility>

namespace tilewright::sim {

Engine::Engine(const KernelTiming& kernel, const MemoryShare& memory,
               std::span<const PlaceQueue> queues, std::uint32_t slots, const Around& around)
    : kernel_(kernel), p_(kernel.parameters), memory_(memory), around_(around) {
  misses_.resize(memory.miss.size());
  asked_.resize(memory.miss.size());
  if (memory.is_cold) dirty_bytes_ = p_.dirty_bytes;
  waits_.resize(kNumWaitCauses);
  lines_.resize(kernel.code.insns.size());
  for (const PlaceQueue& queue : queues) {
    PlayingPlace& place = *places_.emplace_back(std::make_unique<PlayingPlace>());
    place.queue = queue;
    place.slots.resize(slots);
    for (std::size_t rank = 0; rank < queue.front()->size(); ++rank, ++num_sms_) {
      place.sms.push_back(std::make_unique<Sm>(memory.l1_bytes, p_, memory.is_cold));
    }
  }
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    for (const auto& place : places_) start_cluster(*place, slot, 0);
  }
}

EngineResult Engine::run() {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    end_ = std::max(end_, now_);
    switch (event.kind) {
      case EventKind::kWarp:
        advance(*event.warp);
        break;
      case EventKind::kArrival:
        --event.cta->cluster->num_arriving;
        arrive_at_mbarrier(event);
        break;
      case EventKind::kStart:
        start_cluster(*event.place, event.count, now_);
        break;
    }
  }
  require(num_live_ == 0, ErrorKind::kInternal,
          "the timing model: {} CTAs of {} wait for each other without an end", num_live_,
          kernel_.code.info.name);
  return result();
}

// Events.

void Engine::push(Event event) {
  event.number = num_events_++;
  events_.push(event);
}

void Engine::wake(PlayingWarp& warp, double time) {
  push({.time = time, .kind = EventKind::kWarp, .warp = &warp});
}

void Engine::arrive_later(double time, PlayingWarp& warp, std::uint64_t mbarrier,
                          std::uint32_t count, std::int64_t bytes) {
  ++warp.cta->cluster->num_arriving;
  push({.time = time,
        .kind = EventKind::kArrival,
        .warp = &warp,
        .cta = &cta_of(*warp.cta, mbarrier),
        .mbarrier = static_cast<std::uint32_t>(mbarrier & kSharedOffsetMask),
        .count = count,
        .bytes = bytes});
}

PlayingCta& Engine::cta_of(PlayingCta& cta, std::uint64_t address) {
  const std::size_t rank = address >> kSharedRankShift & 0xff;
  return rank < cta.cluster->ctas.size() ? *cta.cluster->ctas[rank] : cta;
}

PlayingMbarrier& Engine::mbarrier_of(PlayingCta& cta, std::uint64_t address) {
  return cta_of(cta, address).mbarriers[static_cast<std::uint32_t>(address & kSharedOffsetMask)];
}

// The life of CTAs.

const PreparedCta& Engine::prepared(const CtaTrace& trace) {
  auto& entry = prepared_[&trace];
  if (entry == nullptr)
    entry = std::make_unique<PreparedCta>(
        prepare(trace, kernel_.order, kernel_.machine, kernel_.costs));
  return *entry;
}

void Engine::start_cluster(PlayingPlace& place, std::uint32_t slot, double time) {
  if (place.next == place.queue.size()) return;
  const std::vector<CtaTrace>& traces = *place.queue[place.next++];
  auto cluster = std::make_unique<PlayingCluster>();
  cluster->place = &place;
  cluster->slot = slot;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    auto cta = std::make_unique<PlayingCta>();
    cta->trace = &prepared(traces[rank]);
    cta->cluster = cluster.get();
    cta->sm = place.sms[rank].get();
    cta->instance = ++num_ctas_;
    cta->is_of_start = time == 0;
    cta->is_shown = rank == 0 && place.next == 1 && &place == places_.front().get();
    cta->sm->code.expect(cta->trace->code_lines);
    start_warps(*cta, time);
    ++cluster->num_live;
    ++num_live_;
    count_arrivals(*cluster, traces[rank]);
    cluster->ctas.push_back(std::move(cta));
  }
  std::swap(place.slots[slot], cluster);
  if (cluster != nullptr && cluster->num_arriving != 0) ended_.push_back(std::move(cluster));
}

void Engine::start_warps(PlayingCta& cta, double time) {
  const std::size_t count = cta.trace->warps.size();
  cta.warps.resize(count);
  cta.warpgroups.resize((count + kWarpgroupWarps - 1) / kWarpgroupWarps);
  cta.num_live = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    PlayingWarp& warp = cta.warps[i];
    warp.trace = &cta.trace->warps[i];
    warp.cta = &cta;
    warp.index = static_cast<std::uint32_t>(i);
    warp.scheduler = cta.sm->next_scheduler++ % kSchedulers;
    if (kernel_.machine.is_empty()) {
      warp.ready.resize(kernel_.order.values.count);
      warp.producer.resize(kernel_.order.values.count);
    }
    warp.began = warp.wait_began = time;
    wake(warp, time);
  }
}

void Engine::end_warp(PlayingWarp& warp) {
  warp_clocks_ += now_ - warp.began;
  PlayingCta& cta = *warp.cta;
  if (--cta.num_live != 0) return;
  --num_live_;
  PlayingCluster& cluster = *cta.cluster;
  if (--cluster.num_live != 0 || cluster.place->next == cluster.place->queue.size()) return;
  push({.time = now_ + p_.cta_start,
        .kind = EventKind::kStart,
        .place = cluster.place,
        .count = cluster.slot});
}

// The result.

EngineResult Engine::result() {
  EngineResult out;
  out.clocks = end_;
  out.warp_instructions = num_instructions_;
  out.warp_clocks = warp_clocks_;
  out.waits = std::move(waits_);
  out.lines = std::move(lines_);
  out.timeline = std::move(timeline_);
  out.grid_trigger = grid_trigger_;
  out.busy.resize(kNumTimedUnits);
  for (const auto& place : places_) {
    for (const auto& sm : place->sms) {
      add_busy(*sm, out.busy);
      out.low_clocks += std::min(end_, sm->low_clocks) / static_cast<double>(num_sms_);
    }
  }
  add_busy_memory(out.busy);
  return out;
}

void Engine::add_busy(const Sm& sm, std::vector<double>& busy) const {
  const auto add = [&](TimedUnit unit, double clocks) {
    busy[static_cast<std::size_t>(unit)] += clocks / static_cast<double>(num_sms_);
  };
  const auto pipe = [&](Pipe which) {
    return sm.pipe_busy[static_cast<std::size_t>(which)] / kSchedulers;
  };
  add(TimedUnit::kTensor, sm.tensor.busy + pipe(Pipe::kMmaSync));
  add(TimedUnit::kSpecial, pipe(Pipe::kSpecial));
  add(TimedUnit::kFma, pipe(Pipe::kFma));
  add(TimedUnit::kAlu, pipe(Pipe::kAlu));
  add(TimedUnit::kDouble, pipe(Pipe::kDouble));
  add(TimedUnit::kIssue, sm.issue_busy / kSchedulers);
  add(TimedUnit::kShared, sm.shared.busy);
  add(TimedUnit::kL2, std::max(sm.port_in.busy, sm.port_out.busy));
}

// An SM's way to L2 and the cache itself are one unit in reports: what is busier of the two.
void Engine::add_busy_memory(std::vector<double>& busy) const {
  double& l2 = busy[static_cast<std::size_t>(TimedUnit::kL2)];
  l2 = std::max(l2, l2_.busy);
  busy[static_cast<std::size_t>(TimedUnit::kHbm)] = hbm_.busy;
}

}  // namespace tilewright::sim
