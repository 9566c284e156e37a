// What orders accesses: barriers, fences, strong accesses, waits for asynchronous work.
#include "sim/check/order/order_checker.h"
#include "sim/state/code.h"

#include <algorithm>
#include <bit>

namespace tilewright::sim {

void OrderChecker::Groups::commit() {
  constexpr std::ptrdiff_t kFewestRemembered = 256;
  commits.push_back(time++);
  if (commits.size() > 2 * kFewestRemembered) {
    commits.erase(commits.begin(), commits.end() - kFewestRemembered);
  }
}

std::uint32_t OrderChecker::Groups::done(std::uint32_t num_open) const {
  return num_open < commits.size() ? commits[commits.size() - 1 - num_open] : 0;
}

void OrderChecker::pass_on(const WarpState& warp, MemoryOrder order, MemoryScope scope,
                           Knowledge& to) {
  const bool is_release = order.semantics == MemorySemantics::kRelease ||
                          order.semantics == MemorySemantics::kAcquireRelease ||
                          order.semantics == MemorySemantics::kSequential;
  if (is_release) return to.join(warp.now);
  if (warp.fence_scope >= scope) to.join(warp.at_fence);
  to.seen.join(warp.now.released);
  to.released.join(warp.now.released);
  to.join_fenced(warp.now);
}

// A location passes on what was known when it was written, to all that may see it by the scope.
void OrderChecker::synchronize(Warp& warp, const WarpAccess& access, bool is_shared) {
  reads_before_.forget();
  WarpState& own = state_of(warp);
  const std::uint64_t cta = (warp.cta->linear_index + 1) << 1;
  const std::uint64_t cluster = std::uint64_t{state_of(*warp.cta->cluster).index} << 1 | 1;
  const MemoryScope scope =
      access.order.scope == MemoryScope::kNone ? MemoryScope::kGpu : access.order.scope;
  struct Domain {
    std::uint64_t name;
    MemoryScope scope;
  };
  const Domain domains[] = {
      {cta, MemoryScope::kCta}, {cluster, MemoryScope::kCluster}, {0, MemoryScope::kGpu}};
  std::uint64_t last = ~std::uint64_t{0};
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    std::uint64_t address = access.addresses[std::countr_zero(rest)];
    if (is_shared) address |= cluster << 40;  // no address of global memory
    if (address == last) continue;
    last = address;
    for (const Domain& domain : domains) {
      if (access.kind != AccessKind::kWrite) {
        const auto at = locations_.find({address, domain.name});
        if (at != locations_.end()) own.now.join(at->second);
      }
      if (access.kind != AccessKind::kRead && domain.scope <= scope) {
        pass_on(own, access.order, domain.scope, locations_[{address, domain.name}]);
      }
    }
  }
  if (access.kind != AccessKind::kRead) tick(own);
}

void OrderChecker::fence(Warp& warp, const Insn&, std::uint32_t, const FenceEvent& event) {
  WarpState& own = state_of(warp);
  const bool is_init = event.kind == FenceKind::kMbarrierInit;
  const MemoryScope scope = is_init ? MemoryScope::kCluster : event.order.scope;
  switch (event.kind) {
    case FenceKind::kMemory:
    case FenceKind::kMbarrierInit:
      if (!is_init && event.order.semantics != MemorySemantics::kRelease) {
        take(own, own.unfenced, scope);
        own.unfenced = {};
      }
      own.fence_scope = scope;
      if (own.fence_scope >= MemoryScope::kGpu) own.now.released.join(own.now.seen);
      own.at_fence = own.now;
      if (is_init) own.init_fences.add(own.init_fences.to_async, own.time);
      if (scope >= MemoryScope::kCluster) {
        own.init_fences.add(own.init_fences.to_cluster, own.time);
      }
      break;
    case FenceKind::kProxyAsync:
      if (event.is_shared) own.init_fences.add(own.init_fences.to_async, own.time);
      if (event.is_shared) own.now.fenced_shared.join(own.now.seen);
      if (event.is_global) own.now.fenced_global.join(own.now.seen);
      if (checks_.strict && event.is_shared) {
        own.now.fenced_shared_by_writer.raise(own.agent, own.time);
      }
      if (checks_.strict && event.is_global) {
        own.now.fenced_global_by_writer.raise(own.agent, own.time);
      }
      break;
    case FenceKind::kProxyTensorMapAcquire:
      own.acquired_maps[event.address] = {own.now.released_maps, own.agent, own.time};
      own.cta->acquired_maps[event.address] = own.acquired_maps[event.address];
      break;
    case FenceKind::kProxyTensorMapRelease:
      own.now.released_maps.join(own.now.seen);
      break;
    default:
      return;
  }
  tick(own);
}

void OrderChecker::barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
                           const BarrierEvent& event) {
  reads_before_.forget();
  WarpState& own = state_of(warp);
  if (event.kind == BarrierKind::kWarpSync) return converge(warp, own, event.id);
  const bool is_cluster = event.kind == BarrierKind::kCluster;
  Rendezvous& slot =
      is_cluster ? state_of(*warp.cta->cluster).barrier : own.cta->barriers[event.id];
  // Who waits may learn of it when the barrier is phases ahead.
  std::shared_ptr<Knowledge>& phase = own.arrived_at[is_cluster ? kNumNamedBarriers : event.id];
  if (event.is_arrive) {
    converge(warp, own, lanes);
    if (slot.generation != event.generation) {
      slot.met = std::make_shared<Knowledge>();
      slot.generation = event.generation;
    }
    phase = slot.met;
    if (event.order.semantics == MemorySemantics::kRelaxed) {
      pass_on(own, event.order, MemoryScope::kCluster, *phase);
      phase->met.join(own.now.seen);
      phase->met.join(own.now.met);
    } else {
      if (is_cluster) own.init_fences.add(own.init_fences.to_cluster, own.time);
      phase->join(own.now);
      if (!event.is_passed) tick(own);
    }
  }
  if (!event.is_passed || phase == nullptr) return;
  own.now.join(*phase);
  own.last_wait = index_of(warp, insn);
  if (event.is_arrive) tick(own);
}

void OrderChecker::group_committed(Warp& warp, const Insn&, GroupKind kind, std::uint32_t lanes) {
  WarpState& own = state_of(warp);
  if (kind == GroupKind::kCpAsync) return own.cp_async.commit();
  if (kind == GroupKind::kWgmma) return own.wgmma.commit();
  for (auto& [lane, groups] : own.bulk) {
    if ((lanes >> lane & 1) == 0) continue;
    groups.reads.commit();
    groups.writes.commit();
  }
}

void OrderChecker::group_waited(Warp& warp, const Insn&, GroupKind kind, std::uint32_t lanes,
                                std::uint32_t num_open) {
  reads_before_.forget();
  WarpState& own = state_of(warp);
  const auto learn = [&](const Groups& groups) {
    if (const std::uint32_t time = groups.done(num_open)) {
      own.now.seen.raise(groups.agent, time);
      // The wait is a proxy fence for what the async proxy did itself.
      own.now.raise_fenced(groups.agent, groups.agent == own.cp_async.agent ? 0 : time);
    }
  };
  if (kind == GroupKind::kCpAsync) {
    own.lanes_since |= lanes;
    return learn(own.cp_async);
  }
  if (kind == GroupKind::kWgmma) {
    // A group is the warpgroup's, and complete for all four warps at once.
    const std::uint32_t time = own.wgmma.done(num_open);
    const std::size_t first = warp.index / 4 * 4;
    for (std::size_t w = first; w < std::min(first + 4, own.cta->warps.size()); ++w) {
      Groups& groups = own.cta->warps[w].wgmma;
      if (time == 0 || groups.agent == 0) continue;
      own.now.seen.raise(groups.agent, std::min(time, groups.time - 1));
      own.now.raise_fenced(groups.agent, std::min(time, groups.time - 1));
    }
    return;
  }
  for (auto& [lane, groups] : own.bulk) {
    if ((lanes >> lane & 1) == 0) continue;
    learn(groups.reads);
    if (kind == GroupKind::kBulk) learn(groups.writes);
  }
}

OrderChecker::TensorMoments OrderChecker::tensor_moments(const Warp& warp) {
  const WarpState& own = state_of(warp);
  return {own.agent,
          own.tensor.agent,
          own.tensor_loads.agent,
          own.tensor_uses.agent,
          own.tensor_stores.agent,
          own.time,
          own.tensor.time,
          own.tensor_loads.time,
          own.tensor_stores.time};
}

void OrderChecker::load_used(const Warp& warp, std::uint32_t time) {
  reads_before_.forget();
  WarpState& own = state_of(warp);
  own.now.seen.raise(own.tensor_uses.agent, time);
}

void OrderChecker::tensor_waited(Warp& warp, const Insn&, AccessKind kind) {
  reads_before_.forget();
  WarpState& own = state_of(warp);
  Groups& groups = kind == AccessKind::kRead ? own.tensor_loads : own.tensor_stores;
  own.now.seen.raise(groups.agent, groups.time++);
}

void OrderChecker::tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) {
  ++state_of(warp).tensor.time;
  auto& all = cta_at(warp, commit.mbarrier).mbarriers;
  const auto at = all.find(commit.mbarrier & kSharedOffsetMask);
  if (at == all.end()) return;
  check_init(warp, insn, 1U << commit.lane, commit.mbarrier, at->second, true);
}

bool OrderChecker::has_acquired(const WarpState& warp, const AcquiredMap& acquired,
                                const AccessRecord& old) {
  return acquired.time <= warp.now.seen.of(acquired.agent) &&
         old.time <= acquired.maps.of(old.agent);
}

// The manual wants the fence by the thread that uses the map. Triton has one warp fence for all of
// the CTA, before a barrier.
void OrderChecker::use_tensor_map(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                                  const AsyncRange& map) {
  if (!checks_.proxy) return;
  WarpState& own = state_of(warp);
  const AcquiredMap& mine = own.acquired_maps[map.address];
  const AcquiredMap& shared = own.cta->acquired_maps[map.address];
  bool is_said = false;
  for (std::uint64_t at = map.address; at < map.address + map.bytes; at += AccessCell::kBytes) {
    cell_at(warp, map.is_shared, at).for_each([&](const AccessRecord& old) {
      const bool is_acquired =
          has_acquired(own, mine, old) || (!checks_.strict && has_acquired(own, shared, old));
      if (is_said || old.kind == AccessKind::kRead || is_acquired) return;
      is_said = true;
      Access now;
      now.record = {own.agent,       own.time,  index_of(warp, insn),
                    operation.lanes, own.agent, old.bytes};
      now.is_shared = map.is_shared;
      now.warp = &warp;
      const bool is_released = old.time <= own.now.released_maps.of(old.agent);
      report(now, old, "proxy", at,
             is_released
                 ? "the tensor map has been changed: fence.proxy.tensormap::generic.acquire by the "
                   "thread that uses it, after it knows of the release"
                 : "the tensor map has been changed: fence.proxy.tensormap::generic.release by the "
                   "writer, and .acquire by the thread that uses it");
    });
  }
}

// A wgmma reads shared memory when all four warps have come to it, on hardware: what one of them
// knows, all of its operands are ordered behind. Nothing else is. A warp that knew something once
// knows it still, so nothing is taken back.
void OrderChecker::warpgroup_met(Warp& warp, const Insn&) {
  reads_before_.forget();
  CtaState& cta = *state_of(warp).cta;
  const std::size_t first = warp.index / 4 * 4;
  Knowledge& met = cta.warpgroups[first / 4];
  for (std::size_t w = first; w < std::min(first + 4, cta.warps.size()); ++w) {
    met.join(cta.warps[w].now);
    tick(cta.warps[w]);
  }
}

std::uint64_t OrderChecker::async_issued(Warp& warp, const Insn& insn,
                                         const AsyncOperation& operation) {
  WarpState& own = state_of(warp);
  Access now;
  now.knows = &own.now;
  now.warp = &warp;
  now.record.issuer = own.agent;
  now.record.insn = index_of(warp, insn);
  now.record.lanes = operation.lanes;
  // Each lane of a cp.async copies for itself.
  if (operation.kind != AsyncKind::kCpAsync) converge(warp, own, operation.lanes);
  Groups mbarrier_work;
  const Groups* reads = nullptr;
  const Groups* writes = nullptr;
  switch (operation.completion) {
    case AsyncCompletion::kMbarrier: {
      auto& all = cta_at(warp, operation.mbarrier).mbarriers;
      const auto at = all.find(static_cast<std::uint32_t>(operation.mbarrier) & kSharedOffsetMask);
      if (at == all.end()) return 0;
      Mbarrier& barrier = at->second;
      check_init(warp, insn, operation.lanes, operation.mbarrier, barrier, true);
      // The phase hands on what the operation does itself, and nothing that its thread did before:
      // PTX ISA, "Asynchronous Operations" under "Program Order".
      const bool is_store = operation.kind == AsyncKind::kStoreAsync;
      if (is_store && barrier.stores == 0) barrier.stores = new_agent(AgentKind::kMbarrier, warp);
      mbarrier_work.agent = is_store ? barrier.stores : barrier.agent;
      mbarrier_work.time = barrier.phase;
      barrier.current.near.seen.raise(mbarrier_work.agent, barrier.phase);
      if (!is_store) barrier.current.near.raise_fenced(barrier.agent, barrier.phase);
      reads = writes = &mbarrier_work;
      break;
    }
    case AsyncCompletion::kBulkGroup: {
      BulkGroups& groups = own.bulk[static_cast<std::uint32_t>(std::countr_zero(operation.lanes))];
      if (groups.reads.agent == 0) {
        groups.reads.agent = new_agent(AgentKind::kBulkRead, warp);
        groups.writes.agent = new_agent(AgentKind::kBulkWrite, warp);
      }
      reads = &groups.reads;
      writes = &groups.writes;
      break;
    }
    case AsyncCompletion::kCpAsyncGroup:
      reads = writes = &own.cp_async;
      break;
    case AsyncCompletion::kWgmmaGroup:
      reads = writes = &own.wgmma;
      (checks_.strict ? now.met : now.knows) = &own.cta->warpgroups[warp.index / 4];
      break;
    case AsyncCompletion::kTensorCommit:
      reads = writes = &own.tensor;
      break;
    case AsyncCompletion::kNone:
      break;
  }
  touch_ranges(now, insn, operation, reads, writes);
  return 0;
}

void OrderChecker::touch_ranges(Access& now, const Insn& insn, const AsyncOperation& operation,
                                const Groups* reads, const Groups* writes) {
  const WarpState& own = state_of(*now.warp);
  for (const AsyncRange& range : operation.ranges) {
    if (range.proxy == Proxy::kTensorMap && range.kind == AccessKind::kRead) {
      use_tensor_map(*now.warp, insn, operation, range);
      continue;
    }
    const Groups* groups = range.kind == AccessKind::kRead ? reads : writes;
    now.record.agent = groups == nullptr ? own.agent : groups->agent;
    now.record.time = groups == nullptr ? own.time : groups->time;
    now.record.kind = range.kind;
    now.record.proxy = range.proxy == Proxy::kTensorMap ? Proxy::kGeneric : range.proxy;
    now.is_shared = range.is_shared;
    touch(now, range.address, range.bytes);
  }
}

}  // namespace tilewright::sim
