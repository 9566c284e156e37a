// cp.async.bulk, cp.reduce.async.bulk, their groups.
#include "sim/async/bulk_copy.h"

#include "sim/exec/turn_order.h"
#include "sim/insn/async/bulk_form.h"
#include "sim/insn/sections.h"
#include "sim/memory/access_fault.h"

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

struct BulkForm {
  AddressForm destination, source, mbarrier;
  BulkModifiers modifiers;
  Row size = kNoRow;
  Row cta_mask = kNoRow;   ///< multicast
  Row byte_mask = kNoRow;  ///< .cp_mask
  bool is_reduction = false;
  ReduceOp op = ReduceOp::kAdd;
  ReduceType type = ReduceType::kU32;
};

/// A copy of one thread with its operands read.
struct BulkCopy {
  Range source, destination;
  MbarrierPlace mbarrier;
  std::uint32_t size = 0;
  std::uint16_t byte_mask = 0xffff;
  bool is_repeat = false;  ///< for another receiver of a multicast than the first
};

void move_bytes(const BulkForm& form, const BulkCopy& copy) {
  if (form.is_reduction) {
    bulk_reduce(form.op, form.type, copy.destination.data, copy.source.data, copy.size);
  } else if (copy.byte_mask != 0xffff) {
    bulk_copy_masked(copy.destination.data, copy.source.data, copy.size, copy.byte_mask);
  } else if (copy.size != 0) {
    bulk_copy(copy.destination.data, copy.source.data, copy.size);
  }
}

std::uint64_t notify(Warp& warp, const Insn& insn, int lane, const BulkForm& form,
                     const BulkCopy& copy) {
  if (warp.observer == nullptr) return 0;
  const AsyncRange ranges[] = {
      {AccessKind::kRead, Proxy::kAsync, copy.source.is_shared, copy.source.address, copy.size},
      {form.is_reduction ? AccessKind::kAtomic : AccessKind::kWrite, Proxy::kAsync,
       copy.destination.is_shared, copy.destination.address, copy.size},
  };
  AsyncOperation operation;
  operation.kind = form.is_reduction ? AsyncKind::kBulkReduce : AsyncKind::kBulkCopy;
  const bool is_store = form.modifiers.direction == BulkDirection::kStore;
  operation.completion = is_store ? AsyncCompletion::kBulkGroup : AsyncCompletion::kMbarrier;
  operation.mbarrier = copy.mbarrier.address;
  operation.lanes = 1u << lane;
  operation.ranges = ranges;
  operation.is_repeat = copy.is_repeat;
  return issue_async(warp, insn, operation);
}

void start(Warp& warp, const Insn& insn, int lane, const BulkForm& form, const BulkCopy& copy) {
  const std::uint64_t token = notify(warp, insn, lane, form, copy);
  if (form.modifiers.direction == BulkDirection::kStore) {
    start_async(warp, [&warp, &insn, &form, copy, token, done = join_bulk_group(warp, lane)] {
      if (form.is_reduction) await_turn(*warp.cta->cluster);
      move_bytes(form, copy);
      finish_async(warp, insn, token);
      done();
    });
    return;
  }
  start_async(warp, [&warp, &insn, &form, copy, token, lane] {
    move_bytes(form, copy);
    finish_async(warp, insn, token);
    complete_bytes(warp, insn, lane, copy.mbarrier, copy.size);
  });
}

/// The destination of a copy in every CTA of the mask, with the mbarrier at the same place.
void start_multicast(Warp& warp, const Insn& insn, int lane, const BulkForm& form, BulkCopy copy,
                     std::uint32_t mask) {
  const std::uint32_t offset_mask = (1u << kSharedRankShift) - 1;
  const std::uint64_t offset = copy.destination.address & offset_mask;
  const MbarrierPlace barrier = copy.mbarrier;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint32_t>(std::countr_zero(rest));
    copy.destination = resolve_range(
        warp, static_cast<std::uint32_t>(lane), AddressSpace::kSharedCluster,
        std::uint64_t{rank} << kSharedRankShift | offset, copy.size, 16, AccessKind::kWrite);
    copy.mbarrier = mbarrier_in_rank(warp, lane, barrier, rank);
    start(warp, insn, lane, form, copy);
    copy.is_repeat = true;
  }
}

Step bulk(Warp& warp, const Insn& insn, std::uint32_t active) {
  const BulkForm& form = *static_cast<const BulkForm*>(insn.extra);
  const bool is_store = form.modifiers.direction == BulkDirection::kStore;
  LaneAddresses to, from, barrier;
  compute_addresses(warp, form.destination, active, to);
  compute_addresses(warp, form.source, active, from);
  if (!is_store) compute_addresses(warp, form.mbarrier, active, barrier);
  const AccessKind write = form.is_reduction ? AccessKind::kAtomic : AccessKind::kWrite;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto lane_idx = static_cast<std::uint32_t>(lane);
    BulkCopy copy;
    copy.size = warp.row<std::uint32_t>(form.size)[lane];
    const std::string problem = check_bulk(to[lane], from[lane], copy.size);
    if (!problem.empty()) {
      fault(FaultKind::kMisalignedAddress, 1u << lane,
            fmt::format("bulk copy by lane {}: {}", lane, problem));
    }
    copy.source = resolve_range(warp, lane_idx, form.source.space, from[lane], copy.size, 16,
                                AccessKind::kRead);
    copy.destination =
        resolve_range(warp, lane_idx, form.destination.space, to[lane], copy.size, 16, write);
    if (form.byte_mask != kNoRow) copy.byte_mask = warp.row<std::uint16_t>(form.byte_mask)[lane];
    if (!is_store) {
      copy.mbarrier = find_mbarrier(warp, lane, form.mbarrier.space, barrier[lane]);
      check_same_cta("bulk copy", copy.destination.address, copy.mbarrier, lane);
    }
    if (form.cta_mask != kNoRow) {
      start_multicast(warp, insn, lane, form, copy, warp.row<std::uint16_t>(form.cta_mask)[lane]);
    } else {
      start(warp, insn, lane, form, copy);
    }
  }
  return Step::kNext;
}

void bind_addresses(Lowering& l, BulkForm& form) {
  const bool is_store = form.modifiers.direction == BulkDirection::kStore;
  const bool is_load = form.modifiers.direction == BulkDirection::kLoad;
  form.destination =
      address_form(l, 0, is_store ? AddressSpace::kGlobal : form.modifiers.shared_space);
  form.source = address_form(l, 1, is_load ? AddressSpace::kGlobal : AddressSpace::kSharedCta);
  form.size = l.source(2, Type::kU32);
  int next = 3;
  if (!is_store) {
    // The barrier of a copy into another CTA lies there; the operand names its rank.
    form.mbarrier = address_form(l, next++, form.modifiers.shared_space);
  }
  if (form.modifiers.is_multicast) form.cta_mask = l.source(next++, Type::kB16);
  if (form.modifiers.has_policy) ++next;
  if (form.byte_mask == kTrueRow) form.byte_mask = l.source(next++, Type::kB16);
}

void emit_bulk(Lowering& l, BulkForm form) {
  bind_addresses(l, form);
  const BulkForm* kept = l.keep(form);
  Insn& insn = l.emit(bulk,
                      {kept->destination.base, kept->source.base, kept->mbarrier.base, kept->size,
                       kept->cta_mask, kept->byte_mask},
                      0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined;
  if (form.is_reduction && form.modifiers.direction == BulkDirection::kStore) {
    insn.flags |= kCrossCta;
  }
}

void lower_bulk(Lowering& l) {
  BulkForm form;
  form.modifiers = take_bulk_modifiers(l);
  if (l.take("cp_mask")) form.byte_mask = kTrueRow;  // bound once the operands are read
  l.finish_modifiers();
  emit_bulk(l, form);
}

ReduceType reduce_type(Lowering& l, Type type) {
  switch (type) {
    case Type::kU32:
    case Type::kB32:
      return ReduceType::kU32;
    case Type::kS32:
      return ReduceType::kS32;
    case Type::kU64:
    case Type::kB64:
      return ReduceType::kU64;
    case Type::kS64:
      return ReduceType::kS64;
    case Type::kF16:
      return ReduceType::kF16;
    case Type::kBf16:
      return ReduceType::kBf16;
    case Type::kF32:
      return ReduceType::kF32;
    case Type::kF64:
      return ReduceType::kF64;
    default:
      l.fail("no reduction of this type");
  }
}

void lower_bulk_reduce(Lowering& l) {
  BulkForm form;
  form.modifiers = take_bulk_modifiers(l);
  form.is_reduction = true;
  form.op = take_reduce_op(l);
  l.take("noftz");
  form.type = reduce_type(l, l.type());
  l.finish_modifiers();
  const bool is_to_global = form.modifiers.direction == BulkDirection::kStore;
  const std::string problem = check_bulk_reduction(form.op, form.type, is_to_global);
  if (!problem.empty()) l.fail(problem);
  emit_bulk(l, form);
}

Step commit_bulk(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.observer != nullptr)
    warp.observer->group_committed(warp, insn, GroupKind::kBulk, active);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    if (CopyGroups* groups = find_bulk_groups(warp, std::countr_zero(rest))) groups->commit();
  }
  return Step::kNext;
}

// imm: groups that may stay open; small: 1 for .read
Step wait_bulk(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto open = static_cast<std::uint32_t>(insn.imm);
  const auto stage = insn.small != 0 ? CopyGroups::Stage::kRead : CopyGroups::Stage::kDone;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    CopyGroups* groups = find_bulk_groups(warp, std::countr_zero(rest));
    if (groups != nullptr && !groups->has_at_most(open, stage)) {
      warp.wait = wait_for_async(warp, AsyncGroups::kBulk);
      return Step::kRetry;
    }
  }
  if (warp.observer != nullptr) {
    warp.observer->group_waited(
        warp, insn, insn.small != 0 ? GroupKind::kBulkRead : GroupKind::kBulk, active, open);
  }
  return Step::kNext;
}

void lower_bulk_commit(Lowering& l) {
  l.finish_modifiers();
  l.emit(commit_bulk, {}, 0).flags |= kAsync;
}

void lower_bulk_wait(Lowering& l) {
  const bool is_read = l.take("read");
  l.finish_modifiers();
  const std::int64_t open = l.immediate(0);
  if (open < 0) l.fail_at(l.operand(0), "expected a count of groups");
  Insn& insn = l.emit(wait_bulk, {}, 0);
  insn.imm = open;
  insn.small = is_read ? 1 : 0;
  insn.flags |= kAsync;
}

// op: base, size
Step prefetch(Warp& warp, const Insn& insn, std::uint32_t active) {
  const BulkForm& form = *static_cast<const BulkForm*>(insn.extra);
  LaneAddresses from;
  compute_addresses(warp, form.source, active, from);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t size = warp.row<std::uint32_t>(form.size)[lane];
    const std::string problem = check_bulk(0, from[lane], size);
    if (!problem.empty()) fault(FaultKind::kMisalignedAddress, 1u << lane, problem);
    check_global(warp, from[lane], size, AccessKind::kRead, 1u << lane);
  }
  return Step::kNext;
}

void lower_bulk_prefetch(Lowering& l) {
  BulkForm form;
  l.take("L2");
  take_cache_hints(l);
  l.take("global");
  l.finish_modifiers();
  form.source = address_form(l, 0, AddressSpace::kGlobal);
  form.size = l.source(1, Type::kU32);
  const BulkForm* kept = l.keep(form);
  Insn& insn = l.emit(prefetch, {kept->source.base, kept->size}, 0);
  insn.extra = kept;
  insn.flags |= kAsync;
}

const InsnRow kBulkCopyRows[] = {
    {"cp.async.bulk",
     "cp.async.bulk.dst.src.completion{.multicast::cluster}{.cp_mask}{.L2::cache_hint} [dst], "
     "[src], size{, [mbar]}{, ctaMask}{, cache-policy}{, byteMask};",
     90, InsnClass::kAsync, lower_bulk},
    {"cp.reduce.async.bulk",
     "cp.reduce.async.bulk.dst.src.completion{.L2::cache_hint}.op{.noftz}.type [dst], [src], "
     "size{, [mbar]}{, cache-policy};",
     90, InsnClass::kAsync, lower_bulk_reduce},
    {"cp.async.bulk.prefetch",
     "cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [src], size{, cache-policy};", 90,
     InsnClass::kAsync, lower_bulk_prefetch},
    {"cp.async.bulk.commit_group", "cp.async.bulk.commit_group;", 90, InsnClass::kAsync,
     lower_bulk_commit},
    {"cp.async.bulk.wait_group", "cp.async.bulk.wait_group{.read} N;", 90, InsnClass::kAsync,
     lower_bulk_wait},
};

}  // namespace

const InsnSection& bulk_copy_section() {
  static const InsnSection section{"Bulk copies", kBulkCopyRows};
  return section;
}

}  // namespace tilewright::sim
