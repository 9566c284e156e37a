// Which accesses are ordered, and what else orders them on hardware.
#include "sim/check/order/order_checker.h"
#include "sim/event/move_form.h"
#include "sim/state/code.h"
#include "sim/state/definedness.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

std::uint64_t rank_of(std::uint64_t shared_address) {
  return (shared_address & 0xffffffff) >> kSharedRankShift;
}

}  // namespace

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

/// An access of the warp itself, not of asynchronous work.
bool OrderChecker::is_plain(const AccessRecord& record) const {
  return record.agent == record.issuer && agents_[record.agent].kind == AgentKind::kWarp;
}

/// CUTLASS's pipelines arrive at the mbarriers of other CTAs, and wait, at the default scope of
/// .cta, and are right on hardware: a thread that arrives is done with its loads, and what the
/// async proxy did is done. Writes are another matter, but for those to a CTA's own shared memory
/// that a proxy fence has made visible to the tensor core of that CTA.
bool OrderChecker::is_handed_over_narrowly(const Access& now, const AccessRecord& old,
                                           std::uint64_t cell_address) const {
  if (old.time > now.knows->narrow.of(old.agent)) return false;
  if (old.kind == AccessKind::kRead || old.proxy != Proxy::kGeneric) return true;
  const std::uint64_t rank = rank_of(cell_address);
  return now.is_shared && now.record.proxy == Proxy::kAsync && rank == agents_[old.issuer].rank &&
         old.time <= now.knows->narrow_fenced.of(old.agent);
}

/// A strong write whose value an ordered strong read has seen comes before what follows that read:
/// a flag is reset by a plain store, a counter by the last thread that counts.
bool OrderChecker::is_observed(const Access& now, const AccessRecord& old,
                               const LaterAccesses& later) const {
  if (old.scope == MemoryScope::kNone || old.kind == AccessKind::kRead || !is_plain(old)) {
    return false;
  }
  const KernelCode& code = *now.warp->grid->code;
  auto bytes = static_cast<std::uint16_t>(old.bytes & now.record.bytes);
  later.for_each([&](const AccessRecord& read) {
    const bool is_known =
        read.agent == now.record.agent || read.time <= now.knows->seen.of(read.agent);
    if ((read.bytes & bytes) == 0 || !is_known || !are_both_strong(old, read)) return;
    const Instruction* syntax = code.place(code.insns[read.insn]).syntax;
    const bool has_value =
        read.kind == AccessKind::kRead ||
        (read.kind == AccessKind::kAtomic && syntax != nullptr && syntax->opcode == "atom");
    if (has_value) bytes &= static_cast<std::uint16_t>(~read.bytes);
  });
  return bytes == 0;
}

/// Plain stores go to memory at once: if the bytes are there, both stored the same.
bool OrderChecker::stores_what_is_there(const Access& now, const AccessRecord& old,
                                        std::uint64_t cell_address) const {
  if (now.store == nullptr || old.kind != AccessKind::kWrite || !is_plain(old)) return false;
  const KernelCode& code = *now.warp->grid->code;
  if (static_cast<SpreadRule>(code.spread[now.record.insn]) != SpreadRule::kStore) return false;
  const MoveForm& form = *static_cast<const MoveForm*>(code.insns[now.record.insn].extra);
  const std::uint64_t rank = rank_of(cell_address);
  const std::byte* const cell = now.is_shared ? now.warp->cta->cluster->ctas[rank]->shared +
                                                    (cell_address & kSharedOffsetMask)
                                              : reinterpret_cast<const std::byte*>(cell_address);
  const auto common = static_cast<std::uint32_t>(old.bytes & now.record.bytes);
  const WarpAccess& store = *now.store;
  const std::uint32_t lanes = store.is_run ? kAllLanes : store.lanes;
  const std::size_t num_elements = static_cast<std::size_t>(
      std::ranges::find(form.row_bytes, std::uint8_t{0}) - form.row_bytes.begin());
  const std::size_t size = store.bytes / std::max<std::size_t>(1, num_elements);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint64_t to =
        store.is_run ? store.addresses[0] + lane * store.bytes : store.addresses[lane];
    for (std::size_t i = 0; i < store.bytes; ++i) {
      const std::uint64_t at = to + i - cell_address;
      if (at >= AccessCell::kBytes || (common >> at & 1) == 0) continue;
      const std::size_t element = i / size;
      const std::byte* const row = now.warp->row<std::byte>(form.rows[element]);
      if (row[lane * form.row_bytes[element] + i % size] != cell[at]) return false;
    }
  }
  return true;
}

void OrderChecker::report_unordered(const Access& now, const AccessRecord& old,
                                    std::uint64_t cell_address) {
  const AgentKind kind = agents_[old.agent].kind;
  const bool is_mma = kind == AgentKind::kWgmma && checks_.mma;
  const bool is_tensor = kind == AgentKind::kTensor && checks_.tmem;
  if (!is_mma && !is_tensor && !checks_.race) return;
  std::string missing = missing_acquire(now, old);
  if (missing.empty()) missing = missing_order(now, old);
  report(now, old, is_mma ? "mma" : is_tensor ? "tmem" : "race", cell_address, std::move(missing));
}

bool OrderChecker::is_ordered(const Access& now, const AccessRecord& old,
                              std::uint64_t cell_address, const LaterAccesses& later) {
  const AccessRecord& record = now.record;
  const bool both_read = old.kind == AccessKind::kRead && record.kind == AccessKind::kRead;
  const bool both_atomic = old.kind == AccessKind::kAtomic && record.kind == AccessKind::kAtomic;
  const bool is_known = old.time <= now.knows->seen.of(old.agent) || has_met_in_own_cta(now, old);
  const bool is_before = is_known || is_handed_over_narrowly(now, old, cell_address);
  if (both_read) return is_before;
  if (!is_before && now.met != nullptr && old.time <= now.met->seen.of(old.agent)) {
    report(now, old, "strict", cell_address,
           "only wgmma makes the warps wait for each other: the manual wants a barrier of the "
           "warpgroup between the two");
    return true;
  }
  if (!is_before) {
    if (both_atomic || are_both_strong(old, record) || is_guess_for_swap(now, old)) return false;
    if (is_observed(now, old, later)) return true;
    if (stores_what_is_there(now, old, cell_address)) {
      if (checks_.strict) {
        report(now, old, "strict", cell_address, missing_order(now, old),
               "race of two stores of the same value");
      }
      return false;
    }
    report_unordered(now, old, cell_address);
    return true;  // said; not again for every access that follows
  }
  if (checks_.strict) check_strictly(now, old, cell_address);
  const bool crosses = record.proxy == Proxy::kAsync && old.proxy == Proxy::kGeneric &&
                       old.kind != AccessKind::kRead;
  if (crosses && is_known) check_proxy(now, old, cell_address);
  return true;
}

/// What orders the two on hardware, and is not enough for the manual.
void OrderChecker::check_strictly(const Access& now, const AccessRecord& old,
                                  std::uint64_t cell_address) {
  if (old.time > now.knows->seen.of(old.agent)) {
    if (old.kind == AccessKind::kRead || old.proxy != Proxy::kGeneric) return;
    return report(now, old, "strict", cell_address, missing_acquire(now, old), "race");
  }
  // A lane waits for its own copies.
  const bool is_copy = agents_[old.agent].kind == AgentKind::kCpAsync &&
                       old.kind != AccessKind::kRead && old.issuer != now.record.issuer;
  const bool is_of_lanes = (is_plain(old) || is_copy) && (old.lanes & (old.lanes - 1)) != 0;
  if (!is_of_lanes || old.time <= now.knows->converged.of(old.agent)) return;
  const KernelCode& code = *now.warp->grid->code;
  const Instruction* syntax = code.place(code.insns[old.insn]).syntax;
  if (syntax == nullptr || syntax->opcode == "ldmatrix" || syntax->opcode == "stmatrix") return;
  report(now, old, "strict", cell_address,
         fmt::format("one lane went on for its warp, by an arrival or a copy, and the others had "
                     "not met it: bar.warp.sync (__syncwarp) after {} and before that",
                     is_copy ? "every lane has waited for its copies" : "the access"),
         "race");
}

}  // namespace tilewright::sim
