// cp.async: every thread copies 4, 8 or 16 bytes from global to shared memory, with groups of its
// own and mbarriers to arrive on.
#include "sim/insn/async/async_work.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <array>
#include <vector>

namespace tilewright::sim {
namespace {

struct CpAsyncForm {
  AddressForm destination, source;
  Row source_size = kNoRow;
  Row ignore = kNoRow;  ///< a predicate
  std::uint32_t ignore_flip = 0;
  std::uint32_t size = 16;
};

struct LaneCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint32_t bytes = 0;  ///< read; the rest is zero
};

using WarpCopies = std::array<LaneCopy, kLanes>;

void move_bytes(const CpAsyncForm& form, const WarpCopies& copies, std::uint32_t active) {
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const LaneCopy& copy = copies[std::countr_zero(rest)];
    std::byte value[16] = {};
    if (copy.bytes != 0) std::memcpy(value, copy.from, copy.bytes);
    std::memcpy(copy.to, value, form.size);
  }
}

std::uint32_t source_bytes(Warp& warp, const CpAsyncForm& form, int lane) {
  if (form.ignore != kNoRow) {
    return ((warp.predicate(form.ignore) ^ form.ignore_flip) >> lane & 1) != 0 ? 0 : form.size;
  }
  if (form.source_size == kNoRow) return form.size;
  const std::uint32_t bytes = warp.row<std::uint32_t>(form.source_size)[lane];
  if (bytes > form.size) {
    fault(FaultKind::kIllegalInstruction, 1u << lane,
          "cp.async: src-size of " + std::to_string(bytes) + " is larger than cp-size of " +
              std::to_string(form.size));
  }
  return bytes;
}

std::uint64_t notify(Warp& warp, const Insn& insn, const CpAsyncForm& form, std::uint32_t active,
                     const WarpCopies& copies, const LaneAddresses& to) {
  if (warp.observer == nullptr) return 0;
  std::vector<AsyncRange> ranges;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto from = reinterpret_cast<std::uint64_t>(copies[lane].from);
    if (copies[lane].bytes != 0) {
      ranges.push_back({AccessKind::kRead, Proxy::kGeneric, false, from, copies[lane].bytes});
    }
    ranges.push_back(
        {AccessKind::kWrite, Proxy::kGeneric, true, to[lane] & ~kWindowMask, form.size});
  }
  AsyncOperation operation;
  operation.kind = AsyncKind::kCpAsync;
  operation.completion = AsyncCompletion::kCpAsyncGroup;
  operation.lanes = active;
  operation.ranges = ranges;
  return issue_async(warp, insn, operation);
}

void resolve_sources(Warp& warp, const Insn& insn, const CpAsyncForm& form, std::uint32_t active,
                     WarpCopies& copies) {
  LaneAddresses from;
  compute_addresses(warp, form.source, active, from);
  std::uint32_t whole = 0;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    copies[lane].bytes = source_bytes(warp, form, lane);
    if (copies[lane].bytes == form.size) whole |= 1u << lane;
    // A copy that reads nothing may have any address.
    if (copies[lane].bytes == 0 || copies[lane].bytes == form.size) continue;
    copies[lane].from = resolve_range(warp, static_cast<std::uint32_t>(lane), form.source.space,
                                      from[lane], copies[lane].bytes, form.size, AccessKind::kRead)
                            .data;
  }
  if (whole == 0) return;
  Access access;
  access.bytes = access.align_bytes = form.size;
  access.is_silent = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((whole >> lane & 1) == 0) from[lane] = from[std::countr_zero(whole)];
  }
  LanePointers pointers;
  resolve_addresses(warp, insn, whole, form.source.space, access, from, pointers);
  for (std::uint32_t rest = whole; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    copies[lane].from = pointers.at[lane];
  }
}

/// Arrivals that were waiting for copies which are done now.
void arrive(Warp& warp, const Insn& insn, int lane, CopyGroups& groups) {
  for (const std::uint64_t address : groups.take_arrivals()) {
    const MbarrierPlace place = find_mbarrier(warp, lane, AddressSpace::kSharedCluster, address);
    Mbarrier before;
    mbarrier_read(place.object, before);
    const MbarrierResult result = mbarrier_arrive(place.object);
    check_mbarrier(result.error, "cp.async.mbarrier.arrive", place, 1u << lane);
    if (warp.observer == nullptr) continue;
    MbarrierEvent event;
    event.action = MbarrierAction::kArrive;
    event.order = {MemorySemantics::kRelease, MemoryScope::kCta};
    event.lane = static_cast<std::uint32_t>(lane);
    event.address = place.address;
    event.count = 1;
    event.phase = before.parity ? 1 : 0;
    event.is_async = true;
    warp.observer->mbarrier(warp, insn, event);
  }
}

Step cp_async(Warp& warp, const Insn& insn, std::uint32_t active) {
  const CpAsyncForm& form = *static_cast<const CpAsyncForm*>(insn.extra);
  WarpCopies copies;
  LaneAddresses to;
  LanePointers targets;
  Access access;
  access.kind = AccessKind::kWrite;
  access.bytes = access.align_bytes = form.size;
  access.is_silent = true;
  compute_addresses(warp, form.destination, active, to);
  resolve_addresses(warp, insn, active, form.destination.space, access, to, targets);
  for (int lane = 0; lane < kLanes; ++lane) copies[lane].to = targets.at[lane];
  resolve_sources(warp, insn, form, active, copies);
  const std::uint64_t token = notify(warp, insn, form, active, copies, to);
  if (is_eager(warp)) {
    move_bytes(form, copies, active);
    finish_async(warp, insn, token);
    return Step::kNext;
  }
  std::array<CopyGroups::CopyId, kLanes> ids{};
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    ids[lane] = cp_async_groups(warp, lane).issue();
  }
  start_async(warp, [&warp, &insn, &form, copies, ids, active, token] {
    move_bytes(form, copies, active);
    finish_async(warp, insn, token);
    for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      CopyGroups& groups = cp_async_groups(warp, lane);
      groups.advance(ids[lane], CopyGroups::Stage::kDone);
      arrive(warp, insn, lane, groups);
    }
  });
  return Step::kNext;
}

bool is_predicate(Lowering& l, const Operand& operand) {
  return operand.kind == OperandKind::kRegister &&
         l.function().registers[operand.index].type == Type::kPred;
}

void lower_cp_async(Lowering& l) {
  CpAsyncForm form;
  const bool is_cg = l.take("cg");
  if (!is_cg && !l.take("ca")) l.fail("expected .ca or .cg");
  l.take("shared::cta") || l.take("shared");
  l.take("global");
  const bool has_policy = take_cache_hints(l);
  l.finish_modifiers();
  form.destination = address_form(l, 0, AddressSpace::kSharedCta);
  form.source = address_form(l, 1, AddressSpace::kGlobal);
  form.size = static_cast<std::uint32_t>(l.immediate(2));
  const bool is_legal = form.size == 16 || (!is_cg && (form.size == 4 || form.size == 8));
  if (!is_legal)
    l.fail_at(l.operand(2), is_cg ? "cp-size must be 16" : "cp-size must be 4, 8 or 16");
  if (l.num_operands() > (has_policy ? 4 : 3)) {
    if (is_predicate(l, l.operand(3))) {
      bool is_negated = false;
      std::tie(form.ignore, is_negated) = l.source_predicate(3);
      form.ignore_flip = is_negated ? kAllLanes : 0;
    } else {
      form.source_size = l.source(3, Type::kU32);
    }
  }
  const CpAsyncForm* kept = l.keep(form);
  Insn& insn = l.emit(
      cp_async, {kept->destination.base, kept->source.base, kept->source_size, kept->ignore}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined;
}

Step commit_cp_async(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.observer != nullptr) {
    warp.observer->group_committed(warp, insn, GroupKind::kCpAsync, active);
  }
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    if (CopyGroups* groups = find_cp_async_groups(warp, std::countr_zero(rest))) groups->commit();
  }
  return Step::kNext;
}

constexpr std::int64_t kWaitAll = -1;

// imm: groups that may stay open, kWaitAll: also those not committed
Step wait_cp_async(Warp& warp, const Insn& insn, std::uint32_t active) {
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const CopyGroups* groups = find_cp_async_groups(warp, std::countr_zero(rest));
    if (groups == nullptr) continue;
    const bool is_over = insn.imm == kWaitAll
                             ? groups->is_all_done()
                             : groups->has_at_most(static_cast<std::uint32_t>(insn.imm));
    if (is_over) continue;
    warp.wait = wait_for_async(warp, AsyncGroups::kCpAsync);
    return Step::kRetry;
  }
  if (warp.observer != nullptr) {
    const std::uint32_t open = insn.imm == kWaitAll ? 0 : static_cast<std::uint32_t>(insn.imm);
    if (insn.imm == kWaitAll) {
      warp.observer->group_committed(warp, insn, GroupKind::kCpAsync, active);
    }
    warp.observer->group_waited(warp, insn, GroupKind::kCpAsync, active, open);
  }
  return Step::kNext;
}

// small: 1 for .noinc
Step arrive_on_completion(Warp& warp, const Insn& insn, std::uint32_t active) {
  const AddressForm& form = *static_cast<const AddressForm*>(insn.extra);
  LaneAddresses addresses;
  compute_addresses(warp, form, active, addresses);
  CopyGroups none;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MbarrierPlace place = find_mbarrier(warp, lane, form.space, addresses[lane]);
    if (insn.small == 0) {
      const MbarrierResult result = mbarrier_add_pending(place.object);
      check_mbarrier(result.error, "cp.async.mbarrier.arrive", place, 1u << lane);
    }
    CopyGroups* found = find_cp_async_groups(warp, lane);
    CopyGroups& groups = found != nullptr ? *found : none;
    groups.arrive_when_done(place.address);
    arrive(warp, insn, lane, groups);
  }
  return Step::kNext;
}

void lower_cp_async_commit(Lowering& l) {
  l.finish_modifiers();
  l.emit(commit_cp_async, {}, 0).flags |= kAsync;
}

void lower_cp_async_wait(Lowering& l, bool is_all) {
  l.finish_modifiers();
  const std::int64_t open = is_all ? kWaitAll : l.immediate(0);
  if (!is_all && open < 0) l.fail_at(l.operand(0), "expected a count of groups");
  Insn& insn = l.emit(wait_cp_async, {}, 0);
  insn.imm = open;
  insn.flags |= kAsync;
}

void lower_cp_async_arrive(Lowering& l) {
  const bool is_noinc = l.take("noinc");
  const AddressSpace space = take_space(l);
  if (l.type() != Type::kB64) l.fail("expected .b64");
  l.finish_modifiers();
  const AddressForm* kept = l.keep(address_form(l, 0, space));
  Insn& insn = l.emit(arrive_on_completion, {kept->base}, 0);
  insn.extra = kept;
  insn.small = is_noinc ? 1 : 0;
  insn.flags |= kAsync | kBarrier | kUsesUndefined;
}

const InsnRow kCpAsyncRows[] = {
    {"cp.async",
     "cp.async.{ca,cg}.shared{::cta}.global{.L2::cache_hint}{.L2::size} [dst], [src], cp-size{, "
     "src-size | ignore-src}{, cache-policy};",
     80, InsnClass::kAsync, lower_cp_async},
    {"cp.async.commit_group", "cp.async.commit_group;", 80, InsnClass::kAsync,
     lower_cp_async_commit},
    {"cp.async.wait_group", "cp.async.wait_group N;", 80, InsnClass::kAsync,
     [](Lowering& l) { lower_cp_async_wait(l, false); }},
    {"cp.async.wait_all", "cp.async.wait_all;", 80, InsnClass::kAsync,
     [](Lowering& l) { lower_cp_async_wait(l, true); }},
    {"cp.async.mbarrier.arrive", "cp.async.mbarrier.arrive{.noinc}{.shared{::cta}}.b64 [addr];", 80,
     InsnClass::kAsync, lower_cp_async_arrive},
};

}  // namespace

const InsnSection& cp_async_section() {
  static const InsnSection section{"Asynchronous copies of threads", kCpAsyncRows};
  return section;
}

}  // namespace tilewright::sim
