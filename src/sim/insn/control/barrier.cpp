// Barriers of warps, CTAs and clusters: PTX ISA, "bar, barrier", "bar.warp.sync",
// "barrier.cluster".
#include "sim/async/cluster_barrier.h"
#include "sim/async/named_barrier.h"
#include "sim/event/observer.h"
#include "sim/insn/sections.h"
#include "sim/state/warp.h"

#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

/// How a barrier.cta is used; Insn::small.
enum class BarMode : std::uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

enum BarOp { kBarResult, kBarId, kBarCount, kBarPredicate };

void report(Warp& warp, const Insn& insn, std::uint32_t lanes, BarrierEvent event) {
  if (warp.observer != nullptr) warp.observer->barrier(warp, insn, lanes, event);
}

void give_reduction(Warp& warp, const Insn& insn, std::uint32_t active,
                    const BarrierReduction& reduction) {
  const auto mode = static_cast<BarMode>(insn.small);
  if (mode == BarMode::kPopc) {
    auto* out = warp.row<std::uint32_t>(insn.op[kBarResult]);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((active >> lane & 1) != 0) out[lane] = reduction.popc;
    }
  } else if (mode == BarMode::kAnd || mode == BarMode::kOr) {
    const bool value = mode == BarMode::kAnd ? reduction.all : reduction.any;
    warp.set_predicate(insn.op[kBarResult], active, value ? kAllLanes : 0);
  }
}

Step bar(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto mode = static_cast<BarMode>(insn.small);
  const int lane = std::countr_zero(active);
  BarrierArrival arrival;
  arrival.id = warp.row<std::uint32_t>(insn.op[kBarId])[lane];
  arrival.warp = warp.index;
  arrival.lanes = active;
  arrival.is_waiting = mode != BarMode::kArrive;
  if (insn.op[kBarCount] != kNoRow)
    arrival.count = warp.row<std::uint32_t>(insn.op[kBarCount])[lane];
  BarrierEvent event{BarrierKind::kNamed, arrival.id, 0, false, false, {}};
  if (warp.is_resumed) {
    give_reduction(warp, insn, active, warp.cta->reductions[arrival.id]);
    event.generation = warp.cta->barriers->generation(arrival.id) - 1;
    event.is_passed = true;
    report(warp, insn, active, event);
    return Step::kNext;
  }
  if (insn.op[kBarPredicate] != kNoRow) {
    arrival.predicates =
        warp.predicate(insn.op[kBarPredicate]) ^ static_cast<std::uint32_t>(insn.imm);
  }
  const BarrierResult result = warp.cta->barriers->arrive(arrival);
  if (result.error != BarrierError::kNone) {
    fault(FaultKind::kIllegalInstruction, active, result.problem);
  }
  if (result.is_released) warp.cta->reductions[arrival.id] = result.reduction;
  event.generation = result.generation;
  event.is_arrive = true;
  event.is_passed = arrival.is_waiting && result.is_released;
  report(warp, insn, active, event);
  if (!arrival.is_waiting) return Step::kNext;
  if (result.is_released) {
    give_reduction(warp, insn, active, result.reduction);
    return Step::kNext;
  }
  warp.wait = {WaitKind::kNamedBarrier, arrival.id, result.generation};
  return Step::kRetry;
}

void lower_bar(Lowering& l) {
  l.take("cta");
  const int what = l.take_one_of({"sync", "arrive", "red"});
  if (what < 0) l.fail("a barrier needs .sync, .arrive or .red");
  const bool is_aligned = l.take("aligned") || l.syntax().opcode == "bar";
  auto mode = what == 1 ? BarMode::kArrive : BarMode::kSync;
  Row result = kNoRow;
  int next = 0;
  if (what == 2) {
    const int op = l.take_one_of({"popc", "and", "or"});
    if (op < 0) l.fail("barrier.red needs .popc, .and or .or");
    l.type();
    mode = static_cast<BarMode>(static_cast<int>(BarMode::kPopc) + op);
    result = l.destination(next++, op == 0 ? Type::kU32 : Type::kPred);
  }
  l.finish_modifiers();
  const Row id = l.source(next++, Type::kU32);
  Row count = kNoRow, predicate = kNoRow;
  bool is_negated = false;
  const int num_left = l.num_operands() - next;
  if (num_left == (what == 2 ? 2 : 1)) count = l.source(next++, Type::kU32);
  if (what == 1 && count == kNoRow) l.fail("barrier.arrive needs a thread count");
  if (what == 2) std::tie(predicate, is_negated) = l.source_predicate(next);
  Insn& insn = l.emit(bar, {result, id, count, predicate}, 1);
  insn.small = static_cast<std::uint8_t>(mode);
  insn.imm = is_negated ? 0xffffffff : 0;
  insn.flags |= kBarrier | (is_aligned ? kAligned : 0);
}

Step warp_sync(Warp& warp, const Insn& insn, std::uint32_t active) {
  const int lane = std::countr_zero(active);
  const std::uint32_t members = warp.row<std::uint32_t>(insn.op[0])[lane] & warp.live;
  const bool was_released = warp.is_resumed;
  if (!was_released && (members & ~(active | warp.group_lanes)) != 0) {
    warp.wait = {WaitKind::kWarpSync, members, 1};
    return Step::kRetry;
  }
  report(warp, insn, active, {BarrierKind::kWarpSync, members, 0, true, true, {}});
  return Step::kNext;
}

void lower_warp_sync(Lowering& l) {
  l.finish_modifiers();
  l.emit(warp_sync, {l.source(0, Type::kU32)}, 0).flags |= kBarrier;
}

Step cluster_arrive(Warp& warp, const Insn& insn, std::uint32_t active) {
  ClusterBarrier& barrier = *warp.cta->cluster->barrier;
  BarrierEvent event{BarrierKind::kCluster, 0, barrier.generation(), true, false, {}};
  event.order = {insn.small != 0 ? MemorySemantics::kRelaxed : MemorySemantics::kRelease,
                 MemoryScope::kCluster};
  report(warp, insn, active, event);
  const ClusterBarrier::Result result = barrier.arrive(warp.cta->rank, warp.index, active);
  if (result.error != ClusterBarrierError::kNone) {
    fault(FaultKind::kIllegalInstruction, active,
          fmt::format("barrier.cluster.arrive {}", to_string(result.error)));
  }
  return Step::kNext;
}

Step cluster_wait(Warp& warp, const Insn& insn, std::uint32_t active) {
  ClusterBarrier& barrier = *warp.cta->cluster->barrier;
  const ClusterBarrier::Result result = barrier.wait(warp.cta->rank, warp.index, active);
  if (result.error != ClusterBarrierError::kNone) {
    fault(FaultKind::kIllegalInstruction, active,
          fmt::format("barrier.cluster.wait {}", to_string(result.error)));
  }
  if (result.is_complete) {
    BarrierEvent event{BarrierKind::kCluster, 0, barrier.generation(), false, true, {}};
    event.order = {MemorySemantics::kAcquire, MemoryScope::kCluster};
    report(warp, insn, active, event);
    return Step::kNext;
  }
  warp.wait = {WaitKind::kClusterBarrier, 0, barrier.generation()};
  return Step::kRetry;
}

void lower_cluster_arrive(Lowering& l) {
  const int order = l.take_one_of({"release", "relaxed"});
  const bool is_aligned = l.take("aligned");
  l.finish_modifiers();
  Insn& insn = l.emit(cluster_arrive, {}, 0);
  insn.small = order == 1;
  insn.flags |= kBarrier | (is_aligned ? kAligned : 0);
}

void lower_cluster_wait(Lowering& l) {
  l.take("acquire");
  const bool is_aligned = l.take("aligned");
  l.finish_modifiers();
  l.emit(cluster_wait, {}, 0).flags |= kBarrier | (is_aligned ? kAligned : 0);
}

constexpr InsnRow kBarrierRows[] = {
    {"bar", "bar{.cta}.{sync,arrive,red.op.type} {d,} a{, b}{, p};", 20, InsnClass::kBarrier,
     lower_bar},
    {"barrier", "barrier{.cta}.{sync,arrive,red.op.type}{.aligned} {d,} a{, b}{, p};", 30,
     InsnClass::kBarrier, lower_bar},
    {"bar.warp.sync", "bar.warp.sync membermask;", 30, InsnClass::kBarrier, lower_warp_sync},
    {"barrier.cluster.arrive", "barrier.cluster.arrive{.release,.relaxed}{.aligned};", 90,
     InsnClass::kBarrier, lower_cluster_arrive},
    {"barrier.cluster.wait", "barrier.cluster.wait{.acquire}{.aligned};", 90, InsnClass::kBarrier,
     lower_cluster_wait},
};

}  // namespace

const InsnSection& barrier_section() {
  static const InsnSection section{"Barriers", kBarrierRows};
  return section;
}

}  // namespace tilewright::sim
