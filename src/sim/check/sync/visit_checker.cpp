#include "sim/check/sync/visit_checker.h"

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

std::size_t number_of(const Warp& warp) {
  return warp.cta->rank * warp.cta->warps.size() + warp.index;
}

bool is_alone(const Warp& warp) {
  return warp.cta->cluster->ctas.size() == 1;
}

template <class Counts>
void join_all(Counts& to, const Counts& from) {
  to.resize(std::max(to.size(), from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

/// What the warps of a CTA have done themselves.
template <class Counts>
void join_own(Counts& to, const Counts& made, const Cta& cta) {
  to.resize(made.size());
  const std::size_t first = cta.rank * cta.warps.size();
  for (std::size_t i = first; i < first + cta.warps.size(); ++i) to[i] = std::max(to[i], made[i]);
}

}  // namespace

VisitChecker::ClusterState& VisitChecker::state_of(const Cluster& cluster) {
  ClusterState& state = clusters_[&cluster];
  if (!state.ctas.empty()) return state;
  state.ctas.resize(cluster.ctas.size());
  state.made.resize(cluster.ctas.size() * cluster.ctas.front()->warps.size());
  return state;
}

void VisitChecker::visit(ClusterState& state, Warp& warp, const Insn& insn, std::uint32_t lanes,
                         std::uint64_t address) {
  const std::uint64_t rank = (address & 0xffffffff) >> kSharedRankShift;
  if (rank == warp.cta->rank) return;
  const std::size_t number = number_of(warp);
  state.ctas[rank].open[number] = {execution_of(warp, insn, lanes), ++state.made[number]};
}

void VisitChecker::learn(CtaState& cta, const Counts& counts) {
  join_all(cta.known, counts);
  std::erase_if(cta.open, [&](const auto& entry) {
    return entry.first < cta.known.size() && entry.second.number <= cta.known[entry.first];
  });
}

void VisitChecker::shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  if (is_alone(warp)) return;
  const std::lock_guard lock(mutex_);
  ClusterState& state = state_of(*warp.cta->cluster);
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    visit(state, warp, insn, access.lanes, access.addresses[std::countr_zero(rest)]);
  }
  const bool may_learn = access.is_strong() && access.kind != AccessKind::kWrite;
  if (may_learn) learn(state.ctas[warp.cta->rank], state.made);
}

void VisitChecker::global_access(Warp& warp, const Insn&, const WarpAccess& access) {
  if (is_alone(warp) || !access.is_strong() || access.kind == AccessKind::kWrite) return;
  const std::lock_guard lock(mutex_);
  ClusterState& state = state_of(*warp.cta->cluster);
  learn(state.ctas[warp.cta->rank], state.made);
}

void VisitChecker::mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) {
  const bool is_arrival =
      event.action == MbarrierAction::kArrive || event.action == MbarrierAction::kExpect;
  const bool is_wait = event.action == MbarrierAction::kWaitSuccess;
  if (is_alone(warp) || (!is_wait && !is_arrival && event.action != MbarrierAction::kComplete)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  ClusterState& state = state_of(*warp.cta->cluster);
  CtaState& own = state.ctas[warp.cta->rank];
  if (is_wait) return learn(own, state.handed_over[event.address]);
  // CommitChecker looks after the arrivals of a tcgen05.commit.
  if (is_arrival && event.commit == 0) {
    visit(state, warp, insn, 1U << event.lane, event.address);
  }
  Counts& counts = state.handed_over[event.address];
  join_all(counts, own.known);
  counts.resize(state.made.size());
  const std::size_t number = number_of(warp);
  counts[number] = std::max(counts[number], state.made[number]);
}

void VisitChecker::barrier(Warp& warp, const Insn&, std::uint32_t, const BarrierEvent& event) {
  if (is_alone(warp) || event.kind == BarrierKind::kWarpSync) return;
  const std::lock_guard lock(mutex_);
  ClusterState& state = state_of(*warp.cta->cluster);
  CtaState& own = state.ctas[warp.cta->rank];
  join_own(own.known, state.made, *warp.cta);
  if (event.kind == BarrierKind::kGrid && event.is_passed) learn(own, state.made);
  if (event.kind != BarrierKind::kCluster) return;
  if (event.is_arrive) {
    own.generation = event.generation;
    join_all(state.met[event.generation], own.known);
    // Nobody is further behind than the generation before.
    std::erase_if(state.met, [&](const auto& met) { return met.first + 1 < event.generation; });
  }
  if (event.is_passed) learn(own, state.met[own.generation]);
}

void VisitChecker::cta_ended(Cta& cta) {
  if (cta.cluster->ctas.size() == 1) return;
  const std::lock_guard lock(mutex_);
  const auto at = clusters_.find(cta.cluster);
  if (at == clusters_.end()) return;
  const auto& open = at->second.ctas[cta.rank].open;
  if (!open.empty()) report(cta, open.begin()->second);
  if (++at->second.num_ended == cta.cluster->ctas.size()) clusters_.erase(at);
}

void VisitChecker::report(const Cta& cta, const Visit& visit) {
  Finding finding;
  finding.check = "sync";
  finding.kernel = cta.grid->code->info.name;
  finding.what =
      fmt::format("{} ends while its peers may still address its shared memory", describe_cta(cta));
  finding.places = {place_of(visit.by, "addressed")};
  finding.missing =
      "nothing that it waited for comes after this access: end with a cluster barrier, or wait for "
      "the mbarrier on which the peer arrives";
  findings_.add(std::move(finding));
}

}  // namespace tilewright::sim
