#include "sim/check/sync/phase_checker.h"

#include "sim/async/mbarrier.h"
#include "sim/state/code.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kGridsBefore = 0, kFirstWarp = 1;  // agents; mbarriers follow the warps

std::uint32_t agent_of(const Warp& warp) {
  return kFirstWarp + warp.cta->rank * kLanes + warp.index;
}

}  // namespace

void PhaseChecker::Knowledge::raise(std::uint32_t agent, std::uint32_t time) {
  if (agent >= times_.size()) times_.resize(agent + 1);
  times_[agent] = std::max(times_[agent], time);
}

void PhaseChecker::Knowledge::join(const Knowledge& other) {
  if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
  for (std::size_t i = 0; i < other.times_.size(); ++i) {
    times_[i] = std::max(times_[i], other.times_[i]);
  }
}

void PhaseChecker::cta_started(Cta& cta) {
  const std::lock_guard lock(mutex_);
  if (cta.rank == 0) states_[cta.cluster] = {};
  ClusterState& state = states_[cta.cluster];
  ++state.num_live;
  state.num_agents =
      std::max(state.num_agents, kFirstWarp + (cta.rank + 1) * std::uint32_t{kLanes});
}

void PhaseChecker::cta_ended(Cta& cta) {
  const std::lock_guard lock(mutex_);
  const auto at = states_.find(cta.cluster);
  if (at != states_.end() && --at->second.num_live == 0) states_.erase(at);
}

void PhaseChecker::launch_ended(Grid&) {
  const std::lock_guard lock(mutex_);
  states_.clear();
}

PhaseChecker::ClusterState* PhaseChecker::find(const Warp& warp) {
  const auto at = states_.find(warp.cta->cluster);
  return at == states_.end() ? nullptr : &at->second;
}

/// A flag in memory may mean anything: a warp that polls one counts as knowing all.
void PhaseChecker::polled(Warp& warp, const WarpAccess& access) {
  if (access.kind == AccessKind::kWrite) return;
  const std::lock_guard lock(mutex_);
  ClusterState* const state = find(warp);
  if (state != nullptr) learn_all(*state, warp);
}

void PhaseChecker::learn_all(ClusterState& state, const Warp& warp) {
  Knowledge& own = state.warps[agent_of(warp)];
  own.join(state.truth);
  if (is_any_told_) own.raise(kGridsBefore, 1);  // perhaps in another cluster
}

void PhaseChecker::fence(Warp& warp, const Insn&, std::uint32_t, const FenceEvent& event) {
  if (event.kind != FenceKind::kGridWait) return;
  const std::lock_guard lock(mutex_);
  ClusterState* const state = find(warp);
  if (state == nullptr) return;
  state->warps[agent_of(warp)].raise(kGridsBefore, 1);
  is_any_told_ = true;
}

bool PhaseChecker::knows_grids_before(const Warp& warp) {
  const std::lock_guard lock(mutex_);
  ClusterState* const state = find(warp);
  return state != nullptr && state->warps[agent_of(warp)].of(kGridsBefore) != 0;
}

void PhaseChecker::barrier(Warp& warp, const Insn&, std::uint32_t, const BarrierEvent& event) {
  if (event.kind == BarrierKind::kWarpSync) return;
  const std::lock_guard lock(mutex_);
  ClusterState* const state = find(warp);
  if (state == nullptr) return;
  Knowledge& own = state->warps[agent_of(warp)];
  if (event.kind == BarrierKind::kGrid) {
    if (event.is_passed) learn_all(*state, warp);
    return;
  }
  const bool is_cluster = event.kind == BarrierKind::kCluster;
  auto& slots = is_cluster ? state->cluster : state->named[{warp.cta->rank, event.id}];
  if (event.is_arrive) {
    Rendezvous& slot = slots[event.generation & 1];
    if (slot.generation != event.generation) slot.met.clear();
    slot.generation = event.generation;
    slot.met.join(own);
  }
  if (!event.is_passed) return;
  // A wait at the cluster barrier implies the generation after it.
  const std::uint64_t generation = event.generation - (is_cluster ? 1 : 0);
  own.join(slots[generation & 1].met);
}

void PhaseChecker::init(ClusterState& state, Barrier& barrier, Knowledge& own,
                        const Execution& by) {
  const std::uint32_t agent = barrier.agent != 0 ? barrier.agent : state.num_agents++;
  const std::uint32_t number = barrier.number;
  barrier = {};
  barrier.agent = agent;
  barrier.first = barrier.number = number;
  barrier.init = by;
  own.raise(agent, number);
}

/// Without a wait: all arrivals are known to have come, and no bytes belong to the phase.
bool PhaseChecker::knows(const Knowledge& own, const Phase& phase) {
  return !phase.has_bytes && std::ranges::all_of(phase.arrivals, [&](const Arrival& arrival) {
    return own.of(arrival.agent) >= arrival.time;
  });
}

/// Phases of which the warp knows that they are over.
std::uint32_t PhaseChecker::num_known(const Knowledge& own, const Barrier& barrier) {
  const std::uint32_t told = std::max(barrier.first, own.of(barrier.agent));
  for (std::uint32_t age = 0; age < barrier.past.size(); ++age) {
    if (barrier.number - age <= told) break;
    if (knows(own, barrier.past[age])) return barrier.number - age;
  }
  return told;
}

void PhaseChecker::arrive(ClusterState& state, Barrier& barrier, Warp& warp, const Insn& insn,
                          const MbarrierEvent& event) {
  Knowledge& own = state.warps[agent_of(warp)];
  const Execution now = execution_of(warp, insn, 1U << event.lane);
  if (num_known(own, barrier) < barrier.number && !barrier.is_told && reports_) {
    barrier.is_told = true;
    Finding finding;
    finding.check = "sync";
    finding.kernel = warp.grid->code->info.name;
    finding.what = fmt::format(
        "an arrival at the mbarrier at shared {:#x} comes too late for its {} phase, or too early "
        "for the next",
        event.address & kSharedOffsetMask, ordinal(barrier.number - barrier.first));
    finding.places = {place_of(now, "arrived")};
    const Phase& before = barrier.past.front();
    if (!before.arrivals.empty()) {
      finding.places.push_back(
          place_of(before.arrivals.back().by, "last to arrive in the phase before"));
    }
    finding.places.push_back(place_of(barrier.init, "initialised"));
    finding.missing =
        before.has_bytes
            ? "the phase before was a copy, and nothing told this thread that it was over: a wait "
              "is missing between that copy and this arrival"
            : "the phase before ended without it, and nothing told this thread so: mbarrier.init "
              "expects fewer arrivals than there are in a phase, or a wait is missing before this "
              "arrival";
    finding.cause = "late arrival " + finding.places.front().ptx;
    findings_.add(std::move(finding));
    own.raise(barrier.agent, barrier.number);
  }
  const std::uint32_t agent = agent_of(warp);
  // Lanes that arrive by one instruction, each in a CTA of its own, are one arrival: who knows of
  // one of them knows that the warp was done. If another one lands late, and so in the next phase,
  // then one of the next was counted in its place, and no phase ends before all were done.
  const LastArrival before = std::exchange(state.last, {agent, event.lane, &insn});
  const bool is_same = before.agent == agent && before.insn == &insn && before.lane < event.lane;
  const std::uint32_t time = own.of(agent) + (is_same ? 0 : 1);
  own.raise(agent, time);
  state.truth.raise(agent, time);
  std::erase_if(barrier.phase.arrivals, [&](const Arrival& a) { return a.agent == agent; });
  barrier.phase.arrivals.push_back({agent, time, now});
}

void PhaseChecker::wait(Barrier& barrier, Knowledge& own, Warp& warp, const Insn& insn,
                        const MbarrierEvent& event) {
  const std::uint32_t known = num_known(own, barrier);
  if (barrier.number >= known + 3 && !barrier.is_told && reports_) {
    barrier.is_told = true;
    Finding finding;
    finding.check = "sync";
    finding.kernel = warp.grid->code->info.name;
    finding.what = fmt::format(
        "a wait at the mbarrier at shared {:#x} skips phases: it succeeds by the {} phase, and of "
        "those after the {} nothing was known to this warp",
        event.address & kSharedOffsetMask, ordinal(barrier.number - barrier.first),
        ordinal(known - barrier.first));
    finding.places = {place_of(execution_of(warp, insn, 1U << event.lane), "waited"),
                      place_of(barrier.init, "initialised")};
    finding.missing =
        "phases went by without this warp, which has missed what they stood for: threads that "
        "arrive must wait for it first; the mbarrier that it arrives on may expect too few "
        "arrivals";
    finding.cause = "skipped phase " + finding.places.front().ptx;
    findings_.add(std::move(finding));
  }
  if (own.of(barrier.agent) < barrier.number) own.join(barrier.completed);
  own.raise(barrier.agent, barrier.number);
}

void PhaseChecker::notice_phase(ClusterState& state, Barrier& barrier, Knowledge& own,
                                const Warp& warp, std::uint32_t address) {
  const Cta& cta = *warp.cta->cluster->ctas[address >> kSharedRankShift];
  Mbarrier object;
  mbarrier_read(cta.shared + (address & kSharedOffsetMask), object);
  if (object.parity == barrier.parity) return;
  barrier.parity = object.parity;
  ++barrier.number;
  barrier.current.raise(barrier.agent, barrier.number);
  state.truth.raise(barrier.agent, barrier.number);
  barrier.completed = std::exchange(barrier.current, {});
  std::rotate(barrier.past.begin(), barrier.past.end() - 1, barrier.past.end());
  barrier.past.front() = std::exchange(barrier.phase, {});
  if (knows(own, barrier.past.front())) own.raise(barrier.agent, barrier.number);
}

void PhaseChecker::mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) {
  if (event.action == MbarrierAction::kWaitFailure || event.action == MbarrierAction::kInvalidate) {
    return;
  }
  const std::lock_guard lock(mutex_);
  ClusterState* const state = find(warp);
  if (state == nullptr) return;
  Knowledge& own = state->warps[agent_of(warp)];
  if (event.action == MbarrierAction::kInit) {
    init(*state, state->barriers[event.address], own, execution_of(warp, insn, 1U << event.lane));
    return;
  }
  const auto at = state->barriers.find(event.address);
  if (at == state->barriers.end()) return;
  Barrier& barrier = at->second;
  if (event.action == MbarrierAction::kWaitSuccess) return wait(barrier, own, warp, insn, event);
  if (event.action == MbarrierAction::kArrive) {
    arrive(*state, barrier, warp, insn, event);
  } else {
    state->last = {};
  }
  barrier.phase.has_bytes |= event.bytes != 0;
  barrier.current.join(own);
  notice_phase(*state, barrier, own, warp, event.address);
}

}  // namespace tilewright::sim
