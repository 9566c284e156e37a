#include "sim/check/order/order_checker.h"

#include "sim/check/order/stretch.h"
#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

MemoryScope scope_of(const WarpAccess& access) {
  if (!access.is_strong()) return MemoryScope::kNone;
  if (access.order.scope != MemoryScope::kNone) return access.order.scope;
  return access.order.semantics == MemorySemantics::kVolatile ? MemoryScope::kSystem
                                                              : MemoryScope::kGpu;
}

}  // namespace

void OrderChecker::launch_started(Grid& grid) {
  stretches_ = stretches_of(*grid.code);
}

Agent OrderChecker::new_agent(AgentKind kind, const Warp& warp) {
  AgentInfo info;
  info.kind = kind;
  info.cluster = state_of(*warp.cta->cluster).index;
  info.warp = warp.index;
  info.rank = warp.cta->rank;
  info.cta = warp.cta->linear_index;
  info.cta_index = warp.cta->index;
  agents_.push_back(info);
  return static_cast<Agent>(agents_.size() - 1);
}

void OrderChecker::cta_started(Cta& cta) {
  reads_before_.forget();
  ClusterState& cluster = state_of(*cta.cluster);
  if (cluster.num_ended == cluster.ctas.size()) {
    cluster = {};  // an ended one was at the same place
    cluster.index = ++num_clusters_;
  }
  auto state = std::make_unique<CtaState>();
  state->shared.resize(cta.shared_bytes / AccessCell::kBytes + 1);
  state->warps.resize(cta.warps.size());
  state->warpgroups.resize((cta.warps.size() + 3) / 4);
  for (Warp& warp : cta.warps) {
    WarpState& own = state->warps[warp.index];
    own.cta = state.get();
    own.agent = new_agent(AgentKind::kWarp, warp);
    own.cp_async.agent = new_agent(AgentKind::kCpAsync, warp);
    own.wgmma.agent = new_agent(AgentKind::kWgmma, warp);
    own.tensor.agent = new_agent(AgentKind::kTensor, warp);
    own.tensor_loads.agent = new_agent(AgentKind::kTensorMove, warp);
    own.tensor_uses.agent = new_agent(AgentKind::kTensorMove, warp);
    own.tensor_stores.agent = new_agent(AgentKind::kTensorMove, warp);
    own.now.seen.raise(own.agent, own.time);
  }
  cluster.ctas.push_back(std::move(state));
}

void OrderChecker::cta_ended(Cta& cta) {
  ClusterState& cluster = state_of(*cta.cluster);
  last_warp_ = nullptr;
  if (++cluster.num_ended != cta.cluster->ctas.size()) return;
  // Copies that are late may still tell of their mbarriers.
  for (const std::unique_ptr<CtaState>& ended : cluster.ctas) {
    ended->shared.clear();
    ended->shared.shrink_to_fit();
  }
}

OrderChecker::WarpState& OrderChecker::state_of(const Warp& warp) {
  if (&warp != last_warp_) {
    last_state_ = &state_of(*warp.cta->cluster).ctas[warp.cta->rank]->warps[warp.index];
    last_warp_ = &warp;
  }
  return *last_state_;
}

OrderChecker::CtaState& OrderChecker::cta_at(const Warp& warp, std::uint64_t shared_address) {
  const std::uint64_t rank = (shared_address & 0xffffffff) >> kSharedRankShift;
  if (rank == warp.cta->rank) return *state_of(warp).cta;
  return *state_of(*warp.cta->cluster).ctas[rank];
}

AccessCell& OrderChecker::cell_at(const Warp& warp, bool is_shared, std::uint64_t address) {
  if (!is_shared) return global_.at(address);
  return cta_at(warp, address).shared[(address & kSharedOffsetMask) / AccessCell::kBytes];
}

std::uint32_t OrderChecker::index_of(const Warp& warp, const Insn& insn) const {
  return static_cast<std::uint32_t>(&insn - warp.grid->code->insns.data());
}

void OrderChecker::tick(WarpState& warp) {
  reads_before_.forget();
  warp.now.seen.raise(warp.agent, ++warp.time);
}

const Clock& OrderChecker::seen(const Warp& warp) {
  WarpState& own = state_of(warp);
  if (own.now.narrow.is_empty()) return own.now.seen;
  own.any = own.now.seen;
  own.any.join(own.now.narrow);
  return own.any;
}

void OrderChecker::converge(const Warp& warp, WarpState& own, std::uint32_t lanes) {
  if (!checks_.strict || (own.lanes_since & warp.live & ~lanes) != 0) return;
  own.now.converged.raise(own.agent, own.time);
  // And all have waited for the copies that are known to be done.
  if (const std::uint32_t done = own.now.seen.of(own.cp_async.agent)) {
    own.now.converged.raise(own.cp_async.agent, done);
  }
  own.lanes_since = 0;
  tick(own);
}

// Triton's pipelined matmuls feed wgmma by cp.async without a proxy fence, and are right on
// hardware: what the manual demands there is left to strict. So is which thread fences: the manual
// says the writer, and kernels that are right have one thread fence for all after the barrier.
void OrderChecker::check_proxy(const Access& now, const AccessRecord& old,
                               std::uint64_t cell_address) {
  const Knowledge& known = *now.knows;
  const Clock& fenced = now.is_shared ? known.fenced_shared : known.fenced_global;
  const bool is_cp_async = agents_[old.agent].kind == AgentKind::kCpAsync;
  const bool is_tolerated = is_cp_async && now.record.kind == AccessKind::kRead;
  if (old.time > fenced.of(old.agent)) {
    const Clock& other = now.is_shared ? known.fenced_global : known.fenced_shared;
    if (is_tolerated ? !checks_.strict : !checks_.proxy) return;
    report(now, old, is_tolerated ? "strict" : "proxy", cell_address,
           old.time <= other.of(old.agent)
               ? fmt::format("the fence.proxy.async between them is for the other state space: it "
                             "must be fence.proxy.async or fence.proxy.async.{}",
                             now.is_shared ? "shared::cta" : "global")
               : "fence.proxy.async is missing: by the writer, after the write and before the "
                 "barrier that orders the two");
    return;
  }
  const Clock& by_writer =
      now.is_shared ? known.fenced_shared_by_writer : known.fenced_global_by_writer;
  if (!checks_.strict || is_cp_async || old.time <= by_writer.of(old.agent)) return;
  const Clock& other_by_writer =
      now.is_shared ? known.fenced_global_by_writer : known.fenced_shared_by_writer;
  if (old.time <= other_by_writer.of(old.agent)) {
    report(now, old, "strict", cell_address,
           fmt::format("the writer's fence.proxy.async is for the other state space, and only "
                       "another thread's is for this one: the manual wants fence.proxy.async or "
                       "fence.proxy.async.{} by the writer, before the barrier",
                       now.is_shared ? "shared::cta" : "global"));
    return;
  }
  report(now, old, "strict", cell_address,
         "only another thread fenced: the manual wants fence.proxy.async by the writer, after the "
         "write and before the barrier");
}

void OrderChecker::touch(const Access& access, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  Access now = access;
  AccessCell* cell = nullptr;
  if (now.record.kind == AccessKind::kRead) reads_before_.ask_for(*now.knows);
  for (std::uint64_t at = address; at < end; ++cell) {
    const std::uint64_t begin = at / AccessCell::kBytes * AccessCell::kBytes;
    // Cells lie side by side within a page.
    if (cell == nullptr || begin % GlobalHistory::kPageBytes == 0) {
      cell = &cell_at(*access.warp, access.is_shared, begin);
    }
    const std::uint64_t stop = std::min(end, begin + AccessCell::kBytes);
    const auto below = [&](std::uint64_t place) { return (1U << (place - begin)) - 1; };
    now.record.bytes = static_cast<std::uint16_t>(below(stop) & ~below(at));
    cell->add(now.record, [&](const AccessRecord& old, const LaterAccesses& later) {
      const bool both_read = now.record.kind == AccessKind::kRead && old.kind == AccessKind::kRead;
      if (!both_read) return is_ordered(now, old, begin, later);
      return reads_before_.of(old, [&] { return is_ordered(now, old, begin, later); });
    });
    at = stop;
  }
}

void OrderChecker::warp_access(Warp& warp, const Insn& insn, const WarpAccess& access,
                               bool is_shared) {
  WarpState& own = state_of(warp);
  if (access.is_strong()) synchronize(warp, access, is_shared);
  own.lanes_since |= access.lanes;
  Access now;
  now.record.agent = now.record.issuer = own.agent;
  now.record.time = own.time;
  now.record.insn = index_of(warp, insn);
  now.record.kind = access.kind;
  now.record.scope = scope_of(access);
  now.knows = &own.now;
  now.is_shared = is_shared;
  now.warp = &warp;
  if (access.kind == AccessKind::kWrite) now.store = &access;
  if (access.is_run) {
    now.record.lanes = kAllLanes;
    return touch(now, access.addresses[0], std::uint64_t{kLanes} * access.bytes);
  }
  std::uint64_t begin = 0, end = 0;
  std::uint32_t lanes = 0;
  const auto flush = [&] {
    if (lanes == 0) return;
    now.record.lanes = lanes;
    touch(now, begin, end - begin);
  };
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = access.addresses[lane];
    const bool is_same = lanes != 0 && address >= begin && address + access.bytes <= end;
    if (lanes != 0 && (is_same || address == end)) {
      end = std::max(end, address + access.bytes);
      lanes |= 1U << lane;
      continue;
    }
    flush();
    begin = address;
    end = address + access.bytes;
    lanes = 1U << lane;
  }
  flush();
}

void OrderChecker::shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  warp_access(warp, insn, access, true);
}

void OrderChecker::global_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  warp_access(warp, insn, access, false);
}

}  // namespace tilewright::sim
