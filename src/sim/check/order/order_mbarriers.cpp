// mbarriers: what an arrival hands over and a wait takes, and what strict wants of their scopes.
#include "sim/async/mbarrier.h"
#include "sim/check/order/order_checker.h"
#include "sim/state/code.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tilewright::sim {

namespace {

/// Whether one of these moments follows `init`, and is known up to `known`.
bool is_followed(const std::vector<std::uint32_t>& moments, std::uint32_t init,
                 std::uint32_t known) {
  const auto first = std::ranges::lower_bound(moments, init);
  return first != moments.end() && *first <= known;
}

}  // namespace

// A fence counts for who knows of it: one that the warp executes later, for something else, comes
// too late for a copy that another warp has started by then.
void OrderChecker::check_init(Warp& warp, const Insn& insn, std::uint32_t lanes,
                              std::uint64_t address, Mbarrier& barrier, bool is_async) {
  WarpState& own = state_of(warp);
  const AccessRecord& init = barrier.init;
  if (!checks_.race) return;
  const bool is_far = agents_[init.agent].rank != warp.cta->rank;
  // CUTLASS's last mbarrier.init before the cluster meets has no fence behind it.
  const bool is_met = !checks_.strict && init.time <= own.now.met.of(init.agent);
  const bool is_ordered =
      own.agent == init.agent || is_met || init.time <= own.now.seen.of(init.agent);
  const std::uint32_t known = own.agent == init.agent ? own.time : own.now.seen.of(init.agent);
  const bool is_fenced = (!is_async || is_followed(barrier.fences->to_async, init.time, known)) &&
                         (!is_far || is_followed(barrier.fences->to_cluster, init.time, known));
  if ((is_ordered && (is_fenced || !checks_.strict)) || barrier.is_init_said) return;
  Access now;
  now.record = {own.agent, own.time, index_of(warp, insn), lanes, own.agent, init.bytes};
  now.is_shared = true;
  now.warp = &warp;
  barrier.is_init_said = is_ordered;
  const std::uint64_t cell = address / AccessCell::kBytes * AccessCell::kBytes;
  if (!is_ordered) {
    return report(now, init, "race", cell,
                  "a barrier must come between mbarrier.init and the first use by others");
  }
  report(now, init, "strict", cell,
         "fence.mbarrier_init.release.cluster after mbarrier.init, by the thread that initialised "
         "it, before other CTAs or copies use it",
         kUnfencedInit);
}

void OrderChecker::take(WarpState& warp, const Phase& phase, MemoryScope scope) {
  warp.now.join(phase.near);
  warp.now.join_narrow(phase.narrow);
  scope >= MemoryScope::kCluster ? warp.now.join(phase.far) : warp.now.join_narrow(phase.far);
  warp.withheld.join(phase.withheld);
}

/// A .relaxed wait acquires nothing; a fence behind it does.
void OrderChecker::wait(WarpState& warp, const Phase& phase, MemoryOrder order) {
  if (order.semantics != MemorySemantics::kRelaxed) return take(warp, phase, order.scope);
  warp.unfenced.near.join(phase.near);
  warp.unfenced.far.join(phase.far);
  warp.unfenced.narrow.join(phase.narrow);
  for (const Knowledge* part : {&phase.near, &phase.far, &phase.narrow}) {
    warp.withheld.join(part->seen);
  }
}

/// Strict: what threads of another CTA loaded from or stored to Tensor Memory. CUTLASS's
/// accumulators go from CTA to CTA at the default scope.
/// Returns   whether it was said
bool OrderChecker::check_moves(Warp& warp, const Insn& insn, const MbarrierEvent& event,
                               const Phase& phase) {
  const AccessRecord& arrival = phase.after_moves;
  const bool is_narrow =
      arrival.scope < MemoryScope::kCluster || event.order.scope < MemoryScope::kCluster;
  if (!checks_.strict || !checks_.tmem || arrival.agent == 0 || !is_narrow) return false;
  Finding finding;
  finding.check = "strict";
  finding.kernel = warp.grid->code->info.name;
  finding.what = "Tensor Memory handed to another CTA at CTA scope";
  finding.places = {place_as(warp, arrival, "arrived, after tcgen05.ld or st,"),
                    place_of(warp, insn, 1U << event.lane, "waited")};
  finding.missing =
      "between CTAs the arrival must be .release.cluster and the wait "
      ".acquire.cluster; without a scope they are .cta";
  findings_.add(std::move(finding));
  return true;
}

/// Strict: release and acquire synchronise only if the scope of each holds the other. A phase that
/// another CTA's thread or tensor pipe arrives at is known at cluster scope only. The bytes that
/// copies of any CTA bring complete the phase themselves. What the waiter knew before needs no
/// acquire.
void OrderChecker::check_wait_scope(Warp& warp, const Insn& insn, const MbarrierEvent& event,
                                    const Phase& phase) {
  const AccessRecord& arrival = phase.from_afar;
  if (!checks_.strict || !checks_.race || arrival.agent == 0) return;
  if (event.order.scope >= MemoryScope::kCluster) return;
  if (arrival.time <= state_of(warp).now.seen.of(arrival.agent)) return;
  Finding finding;
  finding.check = "strict";
  finding.kernel = warp.grid->code->info.name;
  finding.what = "a wait of CTA scope for what another CTA has done";
  finding.places = {place_of(warp, insn, 1U << event.lane, "waited"),
                    place_as(warp, arrival, "arrived from another CTA")};
  finding.missing =
      "mbarrier.try_wait or test_wait with .acquire.cluster: without a scope it is .cta, which "
      "orders nothing after the arrivals and commits of other CTAs";
  findings_.add(std::move(finding));
}

void OrderChecker::arrive(Warp& warp, const Insn& insn, const MbarrierEvent& event, Phase& phase) {
  WarpState& own = state_of(warp);
  const bool is_near = event.address >> kSharedRankShift == warp.cta->rank;
  const std::uint32_t num_moves = own.tensor_loads.time + own.tensor_stores.time;
  if (!is_near && !event.is_async && num_moves != own.num_moves_told) {
    own.num_moves_told = num_moves;
    phase.after_moves = {own.agent,           own.time,        index_of(warp, insn),
                         1U << event.lane,    own.agent,       std::uint16_t{},
                         AccessKind::kAtomic, Proxy::kGeneric, event.order.scope};
  }
  if (!event.is_async) converge(warp, own, event.lanes);
  if (!is_near && phase.from_afar.agent == 0) {
    const bool is_commit = event.commit != 0;
    phase.from_afar = {is_commit ? own.tensor.agent : own.agent,
                       is_commit ? event.commit : own.time, index_of(warp, insn), 1U << event.lane,
                       own.agent};
  }
  if (is_near) {
    pass_on(own, event.order, MemoryScope::kCta, phase.near);
  } else if (event.order.scope >= MemoryScope::kCluster) {
    pass_on(own, event.order, MemoryScope::kCluster, phase.far);
  } else {
    pass_on(own, event.order, MemoryScope::kCta, phase.narrow);
  }
  if (event.order.semantics == MemorySemantics::kRelaxed) phase.withheld.join(own.now.seen);
  if (event.commit != 0) {
    phase.near.seen.raise(own.tensor.agent, event.commit);
    phase.near.raise_fenced(own.tensor.agent, event.commit);
  } else if (event.is_async) {
    phase.near.converged.raise(own.cp_async.agent, own.cp_async.time);
    phase.near.seen.raise(own.cp_async.agent, own.cp_async.time++);
  } else {
    tick(own);
  }
}

void OrderChecker::phase_changed(Warp& warp, const MbarrierEvent& event, Mbarrier& barrier) {
  const std::uint32_t rank = event.address >> kSharedRankShift;
  sim::Mbarrier state;
  mbarrier_read(warp.cta->cluster->ctas[rank]->shared + (event.address & kSharedOffsetMask), state);
  if (state.parity == barrier.parity) return;
  barrier.completed[barrier.parity ? 1 : 0] = std::exchange(barrier.current, {});
  barrier.parity = state.parity;
  ++barrier.phase;
}

void OrderChecker::mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) {
  reads_before_.forget();
  WarpState& own = state_of(warp);
  auto& all = cta_at(warp, event.address).mbarriers;
  const std::uint32_t offset = event.address & kSharedOffsetMask;
  if (event.action == MbarrierAction::kInit) {
    Mbarrier fresh;
    fresh.agent = new_agent(AgentKind::kMbarrier, warp);
    const auto bytes = static_cast<std::uint16_t>(0xff << (offset & 8));
    fresh.init = {own.agent, own.time, index_of(warp, insn), 1U << event.lane,
                  own.agent, bytes,    AccessKind::kWrite};
    fresh.fences = &own.init_fences;
    own.init_fences.last_init = own.time;
    all[offset] = std::move(fresh);
    return;
  }
  const auto at = all.find(offset);
  if (at == all.end()) return;
  Mbarrier& barrier = at->second;
  if (!event.is_async) check_init(warp, insn, 1U << event.lane, event.address, barrier, false);
  if (event.action == MbarrierAction::kWaitSuccess) {
    const Phase& phase = barrier.completed[event.phase & 1];
    if (!check_moves(warp, insn, event, phase)) check_wait_scope(warp, insn, event, phase);
    wait(own, phase, event.order);
    own.last_wait = index_of(warp, insn);
    return;
  }
  if (event.action == MbarrierAction::kArrive) arrive(warp, insn, event, barrier.current);
  phase_changed(warp, event, barrier);
}

}  // namespace tilewright::sim
