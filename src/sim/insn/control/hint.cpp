// Hints and waits that change no value here: caches, launch order, events, sleeping.
#include "sim/event/observer.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

constexpr InsnClass kHintClass = InsnClass::kOther;

Step run_nothing(Warp&, const Insn&, std::uint32_t) {
  return Step::kNext;
}
Step run_yield(Warp&, const Insn&, std::uint32_t) {
  return Step::kYield;
}

void emit_nothing(Lowering& l) {
  l.finish_modifiers();
  l.emit(run_nothing, {}, 0);
}

void lower_nanosleep(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kU32) refuse_type(l, type);
  l.finish_modifiers();
  l.emit(run_yield, {l.source(0, type)}, 0);
}

/// Kernels run one after another: the one before has ended. small: 1 for .wait
Step run_grid_dependency(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.observer != nullptr) {
    FenceEvent event;
    event.kind = insn.small != 0 ? FenceKind::kGridWait : FenceKind::kGridTrigger;
    warp.observer->fence(warp, insn, active, event);
  }
  return Step::kNext;
}

void lower_griddepcontrol(Lowering& l) {
  const int which = l.take_one_of({"launch_dependents", "wait"});
  if (which < 0) l.fail("griddepcontrol needs .launch_dependents or .wait");
  l.finish_modifiers();
  l.emit(run_grid_dependency, {}, 0).small = static_cast<std::uint8_t>(which);
}

void lower_pmevent(Lowering& l) {
  l.take("mask");
  l.immediate(0);
  emit_nothing(l);
}

/// The address is translated, so that a wrong one is reported as such, and not used.
void lower_address_hint(Lowering& l) {
  l.take_one_of({"global", "local", "const", "param", "shared"});
  l.address(0);
  if (l.has_operand(1)) l.immediate(1);
  emit_nothing(l);
}

void lower_discard(Lowering& l) {
  if (!l.take("L2")) l.fail("discard needs .L2");
  lower_address_hint(l);
}
void lower_applypriority(Lowering& l) {
  if (!l.take("L2::evict_normal")) l.fail("applypriority needs .L2::evict_normal");
  lower_address_hint(l);
}
void lower_prefetch(Lowering& l) {
  if (l.take_one_of({"L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"}) < 0) {
    l.fail("prefetch needs .L1, .L2 or .tensormap");
  }
  lower_address_hint(l);
}
void lower_prefetchu(Lowering& l) {
  if (!l.take("L1")) l.fail("prefetchu needs .L1");
  lower_address_hint(l);
}

template <class T>
T same(T a) {
  return a;
}

/// A policy is a number that only cache hints read; every policy is the same one.
void lower_createpolicy(Lowering& l) {
  if (l.take_one_of({"fractional", "range", "cvt"}) < 0) {
    l.fail("createpolicy needs .fractional, .range or .cvt");
  }
  while (!l.take_prefix("L2").empty()) {
  }
  l.take("global");
  const Type type = l.type();
  if (type != Type::kB64) refuse_type(l, type);
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  constexpr std::uint64_t kPolicy = 0x1000000000000000;
  l.emit(lanes<same<std::uint64_t>>, {d, l.constant(type, kPolicy)});
}

const InsnRow kHintRows[] = {
    {"nanosleep", "nanosleep.u32 t;", 70, InsnClass::kControl, lower_nanosleep},
    {"griddepcontrol", "griddepcontrol.{launch_dependents,wait};", 90, InsnClass::kControl,
     lower_griddepcontrol},
    {"pmevent", "pmevent{.mask} a;", 20, kHintClass, lower_pmevent},
    {"discard", "discard{.global}.L2 [a], 128;", 80, kHintClass, lower_discard},
    {"applypriority", "applypriority{.global}.L2::evict_normal [a], 128;", 80, kHintClass,
     lower_applypriority},
    {"prefetch",
     "prefetch{.global,.local,.const,.param}.{L1,L2{::evict_last,::evict_normal},tensormap} [a];",
     20, kHintClass, lower_prefetch},
    {"prefetchu", "prefetchu.L1 [a];", 20, kHintClass, lower_prefetchu},
    {"createpolicy",
     "createpolicy.fractional.L2::primary{.L2::secondary}.b64 d{, fraction}; "
     "createpolicy.range{.global}.L2::primary{.L2::secondary}.b64 d, [a], primary, total; "
     "createpolicy.cvt.L2.b64 d, access-property;",
     80, kHintClass, lower_createpolicy},
};

}  // namespace

const InsnSection& hint_section() {
  static const InsnSection section{"Hints", kHintRows};
  return section;
}

}  // namespace tilewright::sim
