#include "sim/state/warp.h"
#include "sim/time/engine.h"

#include <algorithm>
#include <utility>

namespace tilewright::sim {

// mbarriers.

bool Engine::handle_mbarrier(PlayingWarp& warp, const TraceEvent& event) {
  PlayingCta& cta = *warp.cta;
  switch (event.kind) {
    case TraceKind::kMbarrierInit:
      cta.mbarriers[static_cast<std::uint32_t>(event.b & kSharedOffsetMask)].init(event.a);
      return true;
    case TraceKind::kExpect:
      mbarrier_of(cta, event.b).bytes += event.a;
      delay(p_.mbarrier_issue);
      return true;
    case TraceKind::kArrive: {
      const bool is_remote = &cta_of(cta, event.b) != &cta;
      arrive_later(now_ + (is_remote ? p_.remote_arrival : p_.mbarrier_arrival), warp, event.b,
                   event.a, 0);
      delay(p_.mbarrier_issue);
      return true;
    }
    case TraceKind::kComplete:
      arrive_later(now_ + p_.mbarrier_arrival, warp, event.b, 0, event.a);
      return true;
    case TraceKind::kMbarrierWait:
      return await_mbarrier(warp, event);
    default:
      return true;
  }
}

void Engine::release(PlayingWarp& warp, const PlayingWarp& by, double time) {
  warp.ended_by = warp.cta == by.cta ? static_cast<std::int32_t>(by.index) : -1;
  wake(warp, time);
}

void Engine::arrive_at_mbarrier(const Event& arrival) {
  PlayingMbarrier& barrier = arrival.cta->mbarriers[arrival.mbarrier];
  barrier.pending -= arrival.count;
  barrier.bytes -= arrival.bytes;
  if (!barrier.is_initialised || barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  for (PlayingWarp* const warp : std::exchange(barrier.waiting, {})) {
    release(*warp, *arrival.warp, now_ + p_.mbarrier_wake);
  }
}

bool Engine::await_mbarrier(PlayingWarp& warp, const TraceEvent& event) {
  PlayingMbarrier& barrier = mbarrier_of(*warp.cta, event.b);
  // Whom the end of a phase has woken it lets go, though the next may be over, too.
  const bool is_over = warp.is_woken || (barrier.is_initialised && (barrier.phase & 1) != event.a);
  if (!is_over) {
    barrier.waiting.push_back(&warp);
    warp.is_woken = true;
    return false;
  }
  account(warp, WaitCause::kMbarrier, now_);
  if (!warp.is_woken) delay(p_.mbarrier_ready);
  return true;
}

// Named barriers and those of the cluster.

bool Engine::handle_barrier(PlayingWarp& warp, const TraceEvent& event) {
  PlayingCta& cta = *warp.cta;
  PlayingCluster& cluster = *cta.cluster;
  switch (event.kind) {
    case TraceKind::kBarrierArrive: {
      const std::uint32_t needed = cta.trace->barrier_arrivals.at(barrier_key(event));
      arrive_at_barrier(warp, cta.barriers[barrier_key(event)], needed,
                        p_.barrier_release + p_.barrier_per_warp * needed);
      return true;
    }
    case TraceKind::kBarrierWait:
      return await_barrier(warp, cta.barriers[barrier_key(event)], WaitCause::kNamedBarrier);
    case TraceKind::kClusterArrive:
      arrive_at_barrier(warp, cluster.barriers[event.b], cluster.arrivals[event.b],
                        p_.cluster_release);
      return true;
    case TraceKind::kClusterWait:
      return await_barrier(warp, cluster.barriers[event.b], WaitCause::kClusterBarrier);
    case TraceKind::kGridArrive:
      arrive_at_grid_barrier(warp, event.b);
      return true;
    case TraceKind::kGridPoll:
      return await_barrier(warp, grid_barriers_[event.b], WaitCause::kGridBarrier);
    default:
      return true;
  }
}

// How many a barrier that is not of one CTA waits for.
void Engine::count_arrivals(PlayingCluster& cluster, const CtaTrace& trace) {
  for (const WarpTrace& warp : trace.warps) {
    for (const TraceEvent& event : warp.events) {
      if (event.kind == TraceKind::kClusterArrive) ++cluster.arrivals[event.b];
      if (event.kind == TraceKind::kGridArrive) ++grid_arrivals_[event.b];
    }
  }
}

void Engine::arrive_at_barrier(const PlayingWarp& warp, PlayingBarrier& barrier,
                               std::uint32_t needed, double clocks) {
  if (++barrier.arrived != needed) return;
  barrier.released_at = now_ + clocks;
  for (PlayingWarp* const waiting : std::exchange(barrier.waiting, {})) {
    release(*waiting, warp, barrier.released_at);
  }
}

bool Engine::await_barrier(PlayingWarp& warp, PlayingBarrier& barrier, WaitCause cause) {
  if (barrier.released_at < 0) {
    barrier.waiting.push_back(&warp);
    return false;
  }
  if (barrier.released_at > now_) return wait_until(warp, cause, barrier.released_at), false;
  account(warp, cause, now_);
  return true;
}

// The barrier of the grid is a counter in L2: an atomic gets there in half of its time, and a poll
// that finds it complete was on its way, too.

void Engine::arrive_at_grid_barrier(PlayingWarp& warp, std::uint64_t generation) {
  arrive_at_barrier(warp, grid_barriers_[generation], grid_arrivals_[generation],
                    p_.atomic_latency / 2 + p_.l2_latency);
  set_results(warp, now_ + p_.atomic_latency, WaitCause::kGlobalData);
}

// Fences.

void Engine::handle_fence(PlayingWarp& warp, const TraceEvent& event) {
  if (event.kind == TraceKind::kProxyFence) {
    // Stores to shared memory that are under way come first.
    delay(p_.proxy_fence + std::max(0.0, warp.cta->sm->shared.free_at - now_));
  } else if (event.kind == TraceKind::kMemoryFence && kernel_.machine.is_empty()) {
    delay(fence_clocks(warp));  // machine code has them itself: MEMBAR
  }
}

// Fences of several warps go one after the other.
double Engine::fence_clocks(PlayingWarp& warp) const {
  const double turn = warp.cta->sm->fences.serve(now_, p_.fence_interval) - p_.fence_interval;
  const double clocks = warp.stored == 0
                            ? p_.memory_fence_alone
                            : std::max(p_.memory_fence, std::exchange(warp.stored, 0) - turn);
  return turn - now_ + clocks;
}

}  // namespace tilewright::sim
