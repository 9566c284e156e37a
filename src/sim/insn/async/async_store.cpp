// st.async, red.async, st.bulk: stores that report their bytes to an mbarrier, and zeroing.
#include "sim/insn/async/async_work.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory/atomic_ops.h"
#include "sim/insn/memory/plain_store.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <algorithm>
#include <array>

namespace tilewright::sim {
namespace {

struct AsyncStoreForm {
  AddressForm address, mbarrier;
  Type type = Type::kB32;
  int count = 1;
  std::array<Row, 4> values{};
  bool is_reduction = false;
  AtomicOp op = AtomicOp::kAdd;
};

struct StoredBytes {
  std::byte data[32];
};

template <class T>
void reduce_value(const AsyncStoreForm& form, std::byte* to, const std::byte* from) {
  T old, value;
  std::memcpy(&old, to, sizeof old);
  std::memcpy(&value, from, sizeof value);
  const T fresh = atomic_ops::apply(form.op, form.type, old, value, T{}, false);
  std::memcpy(to, &fresh, sizeof fresh);
}

void put(const AsyncStoreForm& form, std::byte* to, const StoredBytes& bytes, std::size_t size) {
  if (!form.is_reduction) {
    std::memcpy(to, bytes.data, size);
  } else if (size == 4) {
    reduce_value<std::uint32_t>(form, to, bytes.data);
  } else {
    reduce_value<std::uint64_t>(form, to, bytes.data);
  }
}

Step store_async(Warp& warp, const Insn& insn, std::uint32_t active) {
  const AsyncStoreForm& form = *static_cast<const AsyncStoreForm*>(insn.extra);
  // Seen on an H200, in no document: without clusters it is illegal even for the own CTA.
  if (warp.cta->cluster->ctas.size() == 1) {
    fault(FaultKind::kIllegalInstruction, active,
          "st.async and red.async are illegal in a launch without clusters; launch clusters of two "
          "CTAs or more, or use st and mbarrier.arrive");
  }
  LaneAddresses to, barrier;
  compute_addresses(warp, form.address, active, to);
  compute_addresses(warp, form.mbarrier, active, barrier);
  const std::uint32_t element = bytes_of(form.type);
  const std::uint32_t size = element * static_cast<std::uint32_t>(form.count);
  const AccessKind kind = form.is_reduction ? AccessKind::kAtomic : AccessKind::kWrite;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Range range = resolve_range(warp, static_cast<std::uint32_t>(lane), form.address.space,
                                      to[lane], size, size, kind);
    const MbarrierPlace place = find_mbarrier(warp, lane, form.mbarrier.space, barrier[lane]);
    StoredBytes bytes;
    for (int j = 0; j < form.count; ++j) {
      std::memcpy(bytes.data + std::size_t(j) * element,
                  warp.row<std::byte>(form.values[std::size_t(j)]) + std::size_t(lane) * element,
                  element);
    }
    check_same_cta("st.async and red.async", range.address, place, lane);
    const AsyncRange ranges[] = {{kind, Proxy::kGeneric, true, range.address, size}};
    AsyncOperation operation;
    operation.kind = AsyncKind::kStoreAsync;
    operation.completion = AsyncCompletion::kMbarrier;
    operation.mbarrier = place.address;
    operation.lanes = 1u << lane;
    operation.ranges = ranges;
    const std::uint64_t token = issue_async(warp, insn, operation);
    start_async(warp, [&warp, &insn, &form, range, place, bytes, size, token, lane] {
      put(form, range.data, bytes, size);
      finish_async(warp, insn, token);
      complete_bytes(warp, insn, lane, place, size);
    });
  }
  return Step::kNext;
}

/// To global memory there is no mbarrier: its end shows only by the usual order of
/// memory, as of a store.
void lower_global(Lowering& l, bool is_reduction) {
  need_target(l, 100, is_reduction ? "red.async to global memory" : "st.async to global memory");
  is_reduction ? lower_reduction(l) : lower_store(l);
}

void lower_async(Lowering& l, bool is_reduction) {
  if (std::ranges::count(l.syntax().modifiers, "global") > 0) return lower_global(l, is_reduction);
  AsyncStoreForm form;
  form.is_reduction = is_reduction;
  take_order(l);
  const AddressSpace space = take_space(l);
  if (space != AddressSpace::kSharedCluster && space != AddressSpace::kGeneric) {
    l.fail("expected .shared::cluster or .global");
  }
  if (!l.take("mbarrier::complete_tx::bytes")) l.fail("expected .mbarrier::complete_tx::bytes");
  if (is_reduction) {
    const int op = l.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
    if (op < 0) l.fail("expected an operation");
    form.op = static_cast<AtomicOp>(op);
  }
  form.count = take_vector(l);
  form.type = l.type();
  l.finish_modifiers();
  const std::uint32_t bytes = bytes_of(form.type);
  const std::uint32_t total = bytes * static_cast<std::uint32_t>(form.count);
  if ((bytes != 4 && bytes != 8) || form.count > 4 || total > 32 ||
      (is_reduction && (form.count > 1 || is_float(form.type)))) {
    l.fail("this type cannot be stored asynchronously");
  }
  form.address = address_form(l, 0, AddressSpace::kSharedCluster);
  form.mbarrier = address_form(l, 2, AddressSpace::kSharedCluster);
  const auto elements = l.elements(1);
  if (static_cast<int>(elements.size()) != form.count) l.fail_at(l.operand(1), "wrong vector size");
  for (std::size_t j = 0; j < elements.size(); ++j) {
    form.values[j] = l.source(elements[j], form.type);
  }
  const AsyncStoreForm* kept = l.keep(form);
  Insn& insn = l.emit(store_async, {kept->address.base, kept->mbarrier.base}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined;
  for (int j = 0; j < kept->count; ++j) l.also_reads(kept->values[std::size_t(j)]);
}

// op: base, size
Step store_bulk(Warp& warp, const Insn& insn, std::uint32_t active) {
  const AddressForm& form = *static_cast<const AddressForm*>(insn.extra);
  LaneAddresses to;
  compute_addresses(warp, form, active, to);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t size = warp.row<std::uint64_t>(insn.op[1])[lane];
    if (size % 8 != 0)
      fault(FaultKind::kMisalignedAddress, 1u << lane, "st.bulk: the size must be a multiple of 8");
    const Range range = resolve_range(warp, static_cast<std::uint32_t>(lane), form.space, to[lane],
                                      size, 8, AccessKind::kWrite);
    const AsyncRange ranges[] = {
        {AccessKind::kWrite, Proxy::kGeneric, range.is_shared, range.address, size}};
    AsyncOperation operation;
    operation.lanes = 1u << lane;
    operation.ranges = ranges;
    const std::uint64_t token = issue_async(warp, insn, operation);
    std::memset(range.data, 0, size);
    finish_async(warp, insn, token);
  }
  return Step::kNext;
}

void lower_store_bulk(Lowering& l) {
  l.take("weak");
  AddressSpace space = take_space(l);
  l.finish_modifiers();
  const AddressForm* kept = l.keep(address_form(l, 0, space));
  if (l.immediate(2) != 0) l.fail_at(l.operand(2), "st.bulk stores zeros only");
  Insn& insn = l.emit(store_bulk, {kept->base, l.source(1, Type::kU64)}, 0);
  insn.extra = kept;
  insn.flags |= kMemoryWrite | kUsesUndefined;
}

const InsnRow kAsyncStoreRows[] = {
    {"st.async",
     "st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]; "
     "st.async{.weak,.release}{.scope}{.mmio}.global.type [a], b;",
     90, InsnClass::kAsync, [](Lowering& l) { lower_async(l, false); }},
    {"red.async",
     "red.async{.relaxed}{.scope}{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [a], b, "
     "[mbar]; red.async{.mmio}.release.scope.global.op.type [a], b;",
     90, InsnClass::kAsync, [](Lowering& l) { lower_async(l, true); }},
    {"st.bulk", "st.bulk{.weak}{.shared::cta} [a], size, 0;", 100, InsnClass::kStore,
     lower_store_bulk},
};

}  // namespace

const InsnSection& async_store_section() {
  static const InsnSection section{"Asynchronous stores", kAsyncStoreRows};
  return section;
}

}  // namespace tilewright::sim
