// membar, fence and their proxy forms. The machine runs lanes one after the other and global memory
// is the host's, so only the observer and other host threads have to know.
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <atomic>

namespace tilewright::sim {
namespace {

struct FenceForm {
  FenceEvent event;
  AddressForm address;
  bool has_address = false;
};

Step fence(Warp& warp, const Insn& insn, std::uint32_t active) {
  const FenceForm& form = *static_cast<const FenceForm*>(insn.extra);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (warp.observer == nullptr) return Step::kNext;
  FenceEvent event = form.event;
  if (!form.has_address) {
    warp.observer->fence(warp, insn, active, event);
    return Step::kNext;
  }
  LaneAddresses addresses;
  compute_addresses(warp, form.address, active, addresses);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    event.address = addresses[lane];
    warp.observer->fence(warp, insn, 1u << lane, event);
  }
  return Step::kNext;
}

void emit(Lowering& l, const FenceForm& form) {
  l.finish_modifiers();
  const FenceForm* kept = l.keep(form);
  Insn& insn = l.emit(fence, {kept->has_address ? kept->address.base : kNoRow}, 0);
  insn.extra = kept;
  insn.flags |= kBarrier;
}

void lower_membar(Lowering& l) {
  FenceForm form;
  const int level = l.take_one_of({"cta", "gl", "sys"});
  if (level < 0) l.fail("expected .cta, .gl or .sys");
  constexpr MemoryScope kScopes[] = {MemoryScope::kCta, MemoryScope::kGpu, MemoryScope::kSystem};
  form.event.order = {MemorySemantics::kSequential, kScopes[level]};
  emit(l, form);
}

void lower_fence(Lowering& l) {
  FenceForm form;
  form.event.order = take_order(l);
  if (form.event.order.semantics == MemorySemantics::kWeak) {
    form.event.order.semantics = MemorySemantics::kAcquireRelease;
  }
  if (form.event.order.scope == MemoryScope::kNone)
    l.fail("a scope is missing: .cta .cluster .gpu .sys");
  l.take_prefix("sync_restrict::");
  emit(l, form);
}

void lower_mbarrier_init(Lowering& l) {
  FenceForm form;
  form.event.kind = FenceKind::kMbarrierInit;
  form.event.order = take_order(l);
  emit(l, form);
}

void take_async_spaces(Lowering& l, FenceEvent& event) {
  const bool is_global = l.take("global");
  const bool is_shared = l.take("shared::cta") || l.take("shared::cluster") || l.take("shared");
  if (is_global || is_shared) event.is_global = is_global, event.is_shared = is_shared;
}

void lower_proxy(Lowering& l) {
  FenceForm form;
  if (l.take("alias")) {
    form.event.kind = FenceKind::kProxyAlias;
    return emit(l, form);
  }
  if (l.take("async") || l.take("async::generic")) {
    form.event.kind = FenceKind::kProxyAsync;
    form.event.order = take_order(l);
    const std::string_view restriction = l.take_prefix("sync_restrict::");
    if (!restriction.empty()) form.event.is_global = false;
    take_async_spaces(l, form.event);
    return emit(l, form);
  }
  if (!l.take("tensormap::generic")) l.fail("expected .alias, .async or .tensormap::generic");
  form.event.order = take_order(l);
  const bool is_acquire = form.event.order.semantics == MemorySemantics::kAcquire;
  form.event.kind =
      is_acquire ? FenceKind::kProxyTensorMapAcquire : FenceKind::kProxyTensorMapRelease;
  if (is_acquire) {
    form.has_address = true;
    form.address = address_form(l, 0, AddressSpace::kGeneric);
    form.event.bytes = static_cast<std::uint64_t>(l.immediate(1));
    if (form.event.bytes != 128) l.fail_at(l.operand(1), "the size must be 128");
  }
  emit(l, form);
}

const InsnRow kFenceRows[] = {
    {"membar", "membar.{cta,gl,sys};", 20, InsnClass::kBarrier, lower_membar},
    {"fence", "fence{.sem}.scope;", 70, InsnClass::kBarrier, lower_fence},
    {"fence.mbarrier_init", "fence.mbarrier_init.release.cluster;", 90, InsnClass::kBarrier,
     lower_mbarrier_init},
    {"fence.proxy",
     "fence.proxy.{alias,async{.space}}; fence.proxy.tensormap::generic.release.scope; "
     "fence.proxy.tensormap::generic.acquire.scope [addr], 128;",
     70, InsnClass::kBarrier, lower_proxy},
    {"membar.proxy", "membar.proxy.{alias,async,...};", 70, InsnClass::kBarrier, lower_proxy},
};

}  // namespace

const InsnSection& fence_section() {
  static const InsnSection section{"Fences", kFenceRows};
  return section;
}

}  // namespace tilewright::sim
