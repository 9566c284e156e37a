#include "sim/check/order_checker.h"

#include "sim/check/stretch.h"
#include "sim/program/code.h"
#include "sim/program/engine.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kSharedRankShift) - 1;

bool is_strong(const WarpAccess& access) {
  return access.kind == AccessKind::kAtomic || access.order.semantics != MemorySemantics::kWeak;
}

MemoryScope scope_of(const WarpAccess& access) {
  if (!is_strong(access)) return MemoryScope::kNone;
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
  info.cta = warp.cta->linear_index;
  info.cta_index = warp.cta->index;
  agents_.push_back(info);
  return static_cast<Agent>(agents_.size() - 1);
}

void OrderChecker::cta_started(Cta& cta) {
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
  return cta_at(warp, address).shared[(address & kOffsetMask) / AccessCell::kBytes];
}

std::uint32_t OrderChecker::index_of(const Warp& warp, const Insn& insn) const {
  return static_cast<std::uint32_t>(&insn - warp.grid->code->insns.data());
}

void OrderChecker::tick(WarpState& warp) {
  warp.now.seen.raise(warp.agent, ++warp.time);
}

bool OrderChecker::are_both_strong(const AccessRecord& a, const AccessRecord& b) const {
  const auto reaches = [&](const AccessRecord& from, const AccessRecord& to) {
    const AgentInfo& x = agents_[from.agent];
    const AgentInfo& y = agents_[to.agent];
    switch (from.scope) {
      case MemoryScope::kNone:
        return false;
      case MemoryScope::kCta:
        return x.cta == y.cta;
      case MemoryScope::kCluster:
        return x.cluster == y.cluster;
      default:
        return true;
    }
  };
  return reaches(a, b) && reaches(b, a);
}

/// A CTA's accesses to its own shared memory go in order, so that a cluster barrier orders them
/// also if the arrival was .relaxed. DeepGEMM hands on the address of its Tensor Memory so.
bool OrderChecker::has_met_in_own_cta(const Access& now, const AccessRecord& old) const {
  return !checks_.strict && now.is_shared && old.time <= now.knows->met.of(old.agent) &&
         agents_[old.issuer].cta == agents_[now.record.issuer].cta;
}

/// A weak read beside a compare-and-swap: how the programming guide makes atomics that there are
/// none of, and harmless, for the swap fails if the value was old.
bool OrderChecker::is_guess_for_swap(const Access& now, const AccessRecord& old) const {
  const AccessRecord& record = now.record;
  const bool is_now_swap = record.kind == AccessKind::kAtomic;
  const AccessRecord &swap = is_now_swap ? record : old, &read = is_now_swap ? old : record;
  if (checks_.strict || swap.kind != AccessKind::kAtomic || read.kind != AccessKind::kRead ||
      read.proxy != Proxy::kGeneric) {
    return false;
  }
  const KernelCode& code = *now.warp->grid->code;
  const Instruction* syntax = code.place(code.insns[swap.insn]).syntax;
  return syntax != nullptr && std::ranges::count(syntax->modifiers, "cas") > 0;
}

bool OrderChecker::is_ordered(const Access& now, const AccessRecord& old,
                              std::uint64_t cell_address) {
  const AccessRecord& record = now.record;
  const bool both_read = old.kind == AccessKind::kRead && record.kind == AccessKind::kRead;
  const bool both_atomic = old.kind == AccessKind::kAtomic && record.kind == AccessKind::kAtomic;
  const bool is_before = old.time <= now.knows->seen.of(old.agent) || has_met_in_own_cta(now, old);
  if (both_read) return is_before;
  if (!is_before && now.met != nullptr && old.time <= now.met->seen.of(old.agent)) {
    report(now, old, "strict", cell_address,
           "only wgmma makes the warps wait for each other: the manual wants a barrier of the "
           "warpgroup between the two");
    return true;
  }
  if (!is_before) {
    if (both_atomic || are_both_strong(old, record) || is_guess_for_swap(now, old)) return false;
    const AgentKind kind = agents_[old.agent].kind;
    const bool is_mma = kind == AgentKind::kWgmma && checks_.mma;
    const bool is_tensor = kind == AgentKind::kTensor && checks_.tmem;
    if (is_mma || is_tensor || checks_.race) {
      report(now, old,
             is_mma      ? "mma"
             : is_tensor ? "tmem"
                         : "race",
             cell_address, missing_order(record, old));
    }
    return true;  // said; not again for every access that follows
  }
  const bool crosses = record.proxy == Proxy::kAsync && old.proxy == Proxy::kGeneric &&
                       old.kind != AccessKind::kRead;
  if (crosses) check_proxy(now, old, cell_address);
  return true;
}

std::string OrderChecker::missing_order(const AccessRecord& now, const AccessRecord& old) const {
  switch (agents_[old.agent].kind) {
    case AgentKind::kMbarrier:
      return "the copy may still be under way: wait for the mbarrier on which it completes";
    case AgentKind::kCpAsync:
      return "cp.async may still be under way: cp.async.wait_group by the warp that issued it, "
             "then "
             "a barrier";
    case AgentKind::kBulkRead:
      return "the copy may still read: cp.async.bulk.wait_group.read by the thread that issued it, "
             "then a barrier";
    case AgentKind::kBulkWrite:
      return "the copy may still be under way: cp.async.bulk.wait_group (without .read) by the "
             "thread that issued it, then a barrier";
    case AgentKind::kWgmma:
      return "wgmma may still read it: wgmma.wait_group of the warps that issued it, then a "
             "barrier";
    case AgentKind::kTensor:
      return "the tensor pipe may still read it: tcgen05.commit by the thread that issued it, "
             "and a wait for the mbarrier at which that arrives";
    case AgentKind::kTensorMove:  // never in shared or global memory
    case AgentKind::kWarp:
      break;
  }
  if (old.scope != MemoryScope::kNone || now.scope != MemoryScope::kNone) {
    return "no barrier and no release / acquire of a sufficient scope orders them: both must be "
           "strong, of a scope that holds the other, or a fence must come between data and flag";
  }
  if (agents_[old.agent].cta != agents_[now.issuer].cta) {
    return agents_[old.agent].cluster == agents_[now.issuer].cluster
               ? "no barrier orders them: barrier.cluster, or an mbarrier with .release / .acquire "
                 "at .cluster, between the two"
               : "no barrier orders them: CTAs need a flag with release / acquire at .gpu, or two "
                 "launches";
  }
  return "no barrier orders them: bar.sync between the two, or an mbarrier on which the first "
         "arrives and the second waits";
}

// Triton's pipelined matmuls feed wgmma by cp.async without a proxy fence, and are right on
// hardware: what the manual demands there is left to strict. So is who fences: the manual says the
// writer, and kernels that are right have one thread fence for all after the barrier.
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
  if (!checks_.strict || is_cp_async || old.time <= known.fenced_by_writer.of(old.agent)) return;
  report(now, old, "strict", cell_address,
         "only another thread fenced: the manual wants fence.proxy.async by the writer, after the "
         "write and before the barrier");
}

void OrderChecker::touch(const Access& access, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  Access now = access;
  AccessCell* cell = nullptr;
  for (std::uint64_t at = address; at < end; ++cell) {
    const std::uint64_t begin = at / AccessCell::kBytes * AccessCell::kBytes;
    // Cells lie side by side within a page.
    if (cell == nullptr || begin % GlobalHistory::kPageBytes == 0) {
      cell = &cell_at(*access.warp, access.is_shared, begin);
    }
    const std::uint64_t stop = std::min(end, begin + AccessCell::kBytes);
    const auto below = [&](std::uint64_t place) { return (1U << (place - begin)) - 1; };
    now.record.bytes = static_cast<std::uint16_t>(below(stop) & ~below(at));
    cell->add(now.record, [&](const AccessRecord& old) { return is_ordered(now, old, begin); });
    at = stop;
  }
}

void OrderChecker::warp_access(Warp& warp, const Insn& insn, const WarpAccess& access,
                               bool is_shared) {
  WarpState& own = state_of(warp);
  if (is_strong(access)) synchronize(warp, access, is_shared);
  Access now;
  now.record.agent = now.record.issuer = own.agent;
  now.record.time = own.time;
  now.record.insn = index_of(warp, insn);
  now.record.kind = access.kind;
  now.record.scope = scope_of(access);
  now.knows = &own.now;
  now.is_shared = is_shared;
  now.warp = &warp;
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

FindingPlace OrderChecker::place(const Warp& any_warp, const AccessRecord& record) const {
  const KernelCode& code = *any_warp.grid->code;
  const AgentInfo& agent = agents_[record.issuer];
  const bool is_async = record.agent != record.issuer;
  const char* role =
      record.kind == AccessKind::kRead    ? is_async ? "read by async work, issued" : "read"
      : record.kind == AccessKind::kWrite ? is_async ? "written by async work, issued" : "written"
                                          : "updated atomically";
  FindingPlace out =
      place_of(code, code.insns[record.insn], role,
               fmt::format("CTA ({},{},{}) warp {} {}", agent.cta_index.x, agent.cta_index.y,
                           agent.cta_index.z, agent.warp, describe_lane_mask(record.lanes)));
  out.order = agent.cta;
  return out;
}

namespace {

std::string text_of(std::string_view check, bool is_shared, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t rank = is_shared ? from >> kSharedRankShift : 0;
  const std::uint64_t mask = is_shared ? kOffsetMask : ~std::uint64_t{0};
  const char* const what = check == "mma"    ? "wgmma operand overwritten: race"
                           : check == "tmem" ? "operand of the tensor pipe overwritten: race"
                           : check == "race" ? "race"
                                             : "missing proxy fence";
  std::string out = fmt::format("{} on {}[{:#x}..{:#x}]", what, is_shared ? "shared" : "global",
                                from & mask, to & mask);
  if (rank != 0) out += fmt::format(" of the cluster's CTA of rank {}", rank);
  return out;
}

}  // namespace

void OrderChecker::report(const Access& now, const AccessRecord& old, std::string_view check,
                          std::uint64_t cell_address, std::string missing) {
  const auto common = static_cast<std::uint32_t>(old.bytes & now.record.bytes);
  const std::uint64_t from = cell_address + static_cast<unsigned>(std::countr_zero(common));
  const std::uint64_t to = cell_address + 31 - static_cast<unsigned>(std::countl_zero(common));
  const auto [at, is_new] = said_.try_emplace({old.insn, now.record.insn, check});
  Said& said = at->second;
  if (!is_new) {
    const bool is_same = said.agent == now.record.issuer && said.time == now.record.time;
    const bool grows = said.from != 0 && (to + 1 == said.from || from == said.to + 1);
    if (grows) {
      said.from = std::min(said.from, from);
      said.to = std::max(said.to, to);
    }
    said.agent = now.record.issuer, said.time = now.record.time;
    if (is_same && !grows) return;
    findings_.add_again(said.handle,
                        grows ? text_of(check, now.is_shared, said.from, said.to) : std::string());
    return;
  }
  Finding finding;
  finding.check = check;
  finding.kernel = now.warp->grid->code->info.name;
  finding.what = text_of(check, now.is_shared, from, to);
  finding.places = {place(*now.warp, now.record), place(*now.warp, old)};
  finding.cause =
      fmt::format("{} {} {}", stretches_[old.insn], stretches_[now.record.insn], missing);
  if (!now.is_shared) {
    if (const auto holder = now.warp->grid->memory->find(from)) {
      finding.notes.push_back(fmt::format("{:#x} is byte {} of {}, made by {}", from,
                                          from - holder->address, holder->size_bytes,
                                          holder->origin));
    }
  }
  const std::uint32_t last_wait = state_of(*now.warp).last_wait;
  if (check == "race" && last_wait != kNoInsn) {
    const KernelCode& code = *now.warp->grid->code;
    finding.notes.push_back(fmt::format("{} waited last at {}", describe_warp(*now.warp),
                                        code.describe(code.insns[last_wait])));
  }
  finding.missing = std::move(missing);
  said.agent = now.record.issuer, said.time = now.record.time;
  // Only where the text is of these two instructions may it grow.
  if (findings_.add(std::move(finding), &said.handle)) said.from = from, said.to = to;
}

}  // namespace tilewright::sim
