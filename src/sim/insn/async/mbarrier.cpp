// mbarrier.*: arrivals, byte counts and waits. The object itself is async/mbarrier.h.
#include "sim/async/mbarrier.h"

#include "sim/insn/async/async_work.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <string>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

enum class Operation : std::uint8_t {
  kInit,
  kInvalidate,
  kExpect,
  kComplete,
  kArrive,
  kArriveExpect,
  kArriveNoComplete,
  kDrop,
  kDropExpect,
  kDropNoComplete,
};

struct MbarrierForm {
  AddressForm address;
  MemoryOrder order;
  Operation operation = Operation::kInit;
  bool has_count = false;
};

constexpr const char* kNames[] = {
    "mbarrier.init",
    "mbarrier.inval",
    "mbarrier.expect_tx",
    "mbarrier.complete_tx",
    "mbarrier.arrive",
    "mbarrier.arrive.expect_tx",
    "mbarrier.arrive.noComplete",
    "mbarrier.arrive_drop",
    "mbarrier.arrive_drop.expect_tx",
    "mbarrier.arrive_drop.noComplete",
};

MbarrierResult perform(Operation operation, std::byte* object, std::uint32_t value) {
  switch (operation) {
    case Operation::kInit:
      return mbarrier_init(object, value);
    case Operation::kInvalidate:
      return mbarrier_inval(object);
    case Operation::kExpect:
      return mbarrier_expect_tx(object, value);
    case Operation::kComplete:
      return mbarrier_complete_tx(object, value);
    case Operation::kArrive:
      return mbarrier_arrive(object, value);
    case Operation::kArriveExpect:
      return mbarrier_arrive_expect_tx(object, value);
    case Operation::kArriveNoComplete:
      return mbarrier_arrive_no_complete(object, value);
    case Operation::kDrop:
      return mbarrier_arrive_drop(object, value);
    case Operation::kDropExpect:
      return mbarrier_arrive_drop(object, 1, value);
    case Operation::kDropNoComplete:
      return mbarrier_arrive_drop_no_complete(object, value);
  }
  return {};
}

bool is_arrival(Operation operation) {
  return operation >= Operation::kArrive;
}
bool is_with_bytes(Operation operation) {
  return operation == Operation::kExpect || operation == Operation::kComplete ||
         operation == Operation::kArriveExpect || operation == Operation::kDropExpect;
}

MbarrierAction action_of(Operation operation) {
  switch (operation) {
    case Operation::kInit:
      return MbarrierAction::kInit;
    case Operation::kInvalidate:
      return MbarrierAction::kInvalidate;
    case Operation::kExpect:
      return MbarrierAction::kExpect;
    case Operation::kComplete:
      return MbarrierAction::kComplete;
    default:
      return MbarrierAction::kArrive;
  }
}

void notify(Warp& warp, const Insn& insn, const MbarrierForm& form, int lane, std::uint32_t lanes,
            const MbarrierPlace& place, std::uint32_t value, const Mbarrier& before) {
  MbarrierEvent event;
  event.action = action_of(form.operation);
  event.order = form.order;
  event.lane = static_cast<std::uint32_t>(lane);
  event.lanes = lanes;
  event.address = place.address;
  event.count = is_with_bytes(form.operation) ? (is_arrival(form.operation) ? 1 : 0) : value;
  event.bytes = is_with_bytes(form.operation) ? value : 0;
  event.phase = before.parity ? 1 : 0;
  event.is_drop = form.operation >= Operation::kDrop;
  warp.observer->mbarrier(warp, insn, event);
}

// op: state, base, value
Step change(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MbarrierForm& form = *static_cast<const MbarrierForm*>(insn.extra);
  LaneAddresses addresses;
  compute_addresses(warp, form.address, active, addresses);
  const auto* values = form.has_count ? warp.row<std::uint32_t>(insn.op[2]) : nullptr;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MbarrierPlace place = find_mbarrier(warp, lane, form.address.space, addresses[lane]);
    const std::uint32_t value = values != nullptr ? values[lane] : 1;
    Mbarrier before;
    mbarrier_read(place.object, before);
    const MbarrierResult result = perform(form.operation, place.object, value);
    check_mbarrier(result.error, kNames[static_cast<int>(form.operation)], place, 1u << lane);
    if (insn.op[0] != kNoRow) warp.row<std::uint64_t>(insn.op[0])[lane] = result.token;
    if (warp.observer != nullptr) notify(warp, insn, form, lane, active, place, value, before);
  }
  return Step::kNext;
}

AddressSpace take_shared_space(Lowering& l) {
  const AddressSpace space = take_space(l);
  if (space == AddressSpace::kGlobal || space == AddressSpace::kLocal ||
      space == AddressSpace::kParam) {
    l.fail("an mbarrier lies in shared memory");
  }
  return space;
}

void take_b64(Lowering& l) {
  if (l.type() != Type::kB64) l.fail("expected .b64");
}

void emit_change(Lowering& l, MbarrierForm form, int address_idx, bool is_value_needed) {
  const AddressSpace space = take_shared_space(l);
  take_b64(l);
  l.finish_modifiers();
  form.address = address_form(l, address_idx, space);
  form.has_count = l.has_operand(address_idx + 1);
  if (is_value_needed && !form.has_count) l.fail("a count is missing");
  const bool has_state = address_idx == 1 && l.operand(0).kind != OperandKind::kSink;
  if (has_state && space == AddressSpace::kSharedCluster) {
    l.fail_at(l.operand(0), "arrivals at shared::cluster have no result: write _");
  }
  const Row state = has_state ? l.destination(0, Type::kB64) : kNoRow;
  const Row value = form.has_count ? l.source(address_idx + 1, Type::kU32) : kNoRow;
  const MbarrierForm* kept = l.keep(form);
  Insn& insn = l.emit(change, {state, kept->address.base, value}, 1);
  insn.extra = kept;
  insn.flags |= kBarrier | kUsesUndefined;
}

template <Operation operation>
void lower_plain(Lowering& l) {
  MbarrierForm form;
  form.operation = operation;
  form.order = take_order(l);
  emit_change(l, form, 0, operation != Operation::kInvalidate);
}

void lower_arrival(Lowering& l, Operation plain, Operation expect, Operation no_complete) {
  MbarrierForm form;
  form.operation = plain;
  if (l.take("expect_tx")) form.operation = expect;
  if (l.take("noComplete")) form.operation = no_complete;
  form.order = take_order(l);
  if (form.order.semantics == MemorySemantics::kWeak) {
    form.order.semantics = MemorySemantics::kRelease;
  }
  if (form.order.scope == MemoryScope::kNone) form.order.scope = MemoryScope::kCta;
  const int address_idx = l.operand(0).kind == OperandKind::kMemory ? 0 : 1;
  emit_change(l, form, address_idx, form.operation != plain);
}

void lower_mbarrier_arrive(Lowering& l) {
  lower_arrival(l, Operation::kArrive, Operation::kArriveExpect, Operation::kArriveNoComplete);
}
void lower_arrive_drop(Lowering& l) {
  lower_arrival(l, Operation::kDrop, Operation::kDropExpect, Operation::kDropNoComplete);
}

struct WaitForm {
  AddressForm address;
  MemoryOrder order;
  bool is_parity = false;
  bool is_try = false;
};

void tell_wait(Warp& warp, const Insn& insn, const WaitForm& form, int lane,
               const MbarrierPlace& place, std::uint64_t parity, bool is_complete) {
  MbarrierEvent event;
  event.action = is_complete ? MbarrierAction::kWaitSuccess : MbarrierAction::kWaitFailure;
  event.order = form.order;
  event.lane = static_cast<std::uint32_t>(lane);
  event.address = place.address;
  event.phase = parity;
  warp.observer->mbarrier(warp, insn, event);
}

std::uint64_t parity_of_token(std::uint64_t token) {
  return token >> 61 & 1;
}

/// Whether 32 values are the same.
template <class T>
bool is_uniform(const T* values) {
  T difference = 0;
  for (int lane = 0; lane < kLanes; ++lane) difference |= values[lane] ^ values[0];
  return difference == 0;
}

/// The lanes whose answers differ, as far as can be seen cheaply: one for all if all ask the same
/// and no observer is notified.
std::uint32_t lanes_that_ask(Warp& warp, const Insn& insn, const WaitForm& form,
                             std::uint32_t active, const LaneAddresses& addresses) {
  if (warp.observer != nullptr || active != kAllLanes || !is_uniform(addresses.data())) {
    return active;
  }
  const bool is_same = form.is_parity ? is_uniform(warp.row<std::uint32_t>(insn.op[2]))
                                      : is_uniform(warp.row<std::uint64_t>(insn.op[2]));
  return is_same ? 1 : active;
}

// op: p, base, state or parity
Step wait_mbarrier(Warp& warp, const Insn& insn, std::uint32_t active) {
  const WaitForm& form = *static_cast<const WaitForm*>(insn.extra);
  LaneAddresses addresses;
  compute_addresses(warp, form.address, active, addresses);
  std::uint32_t complete = 0;
  MbarrierPlace place, first;
  std::uint64_t last_address = ~std::uint64_t{0}, first_parity = 0;
  const std::uint32_t asking = lanes_that_ask(warp, insn, form, active, addresses);
  for (std::uint32_t rest = asking; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (addresses[lane] != last_address) {
      place = find_mbarrier(warp, lane, form.address.space, addresses[lane]);
      if (place.address >> kSharedRankShift != warp.cta->rank) {
        fault(
            FaultKind::kInvalidAddressSpace, 1U << lane,
            fmt::format("a wait for an mbarrier of the CTA of rank {}: a thread can only wait for "
                        "those of its own CTA",
                        place.address >> kSharedRankShift));
      }
      last_address = addresses[lane];
    }
    const std::uint64_t state = form.is_parity ? warp.row<std::uint32_t>(insn.op[2])[lane]
                                               : warp.row<std::uint64_t>(insn.op[2])[lane];
    const MbarrierWait result =
        form.is_parity
            ? mbarrier_test_wait_parity(place.object, static_cast<std::uint32_t>(state & 1))
            : mbarrier_test_wait(place.object, state);
    check_mbarrier(result.error, form.is_try ? "mbarrier.try_wait" : "mbarrier.test_wait", place,
                   1u << lane);
    complete |= static_cast<std::uint32_t>(result.is_complete) << lane;
    const std::uint64_t parity = form.is_parity ? state & 1 : parity_of_token(state);
    if (first.object == nullptr) first = place, first_parity = parity;
    if (warp.observer != nullptr) {
      tell_wait(warp, insn, form, lane, place, parity, result.is_complete);
    }
  }
  if (asking != active && complete != 0) complete = active;
  // Lanes that succeed need not wait for the others: a try_wait may fail at any time.
  if (form.is_try && complete == 0 && !warp.is_timed_out) {
    warp.wait = {WaitKind::kMbarrier, first.address, first_parity};
    return Step::kRetry;
  }
  warp.set_predicate(insn.op[0], active, complete);
  return complete == active || warp.is_timed_out ? Step::kNext : Step::kYield;
}

void lower_mbarrier_wait(Lowering& l, bool is_try) {
  WaitForm form;
  form.is_try = is_try;
  form.is_parity = l.take("parity");
  form.order = take_order(l);
  if (form.order.semantics == MemorySemantics::kWeak) {
    form.order.semantics = MemorySemantics::kAcquire;
  }
  if (form.order.scope == MemoryScope::kNone) form.order.scope = MemoryScope::kCta;
  const AddressSpace space = take_shared_space(l);
  if (space == AddressSpace::kSharedCluster) l.fail("waits are for the own CTA's mbarriers");
  take_b64(l);
  l.finish_modifiers();
  form.address = address_form(l, 1, space);
  const Row p = l.destination(0, Type::kPred);
  const Row state = l.source(2, form.is_parity ? Type::kU32 : Type::kB64);
  const WaitForm* kept = l.keep(form);
  Insn& insn = l.emit(wait_mbarrier, {p, kept->address.base, state});
  insn.extra = kept;
  insn.flags |= kBarrier | kUsesUndefined;
}

Step pending_count(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* tokens = warp.row<std::uint64_t>(insn.op[1]);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    warp.row<std::uint32_t>(insn.op[0])[lane] = mbarrier_pending_count(tokens[lane]);
  }
  return Step::kNext;
}

void lower_pending_count(Lowering& l) {
  take_b64(l);
  l.finish_modifiers();
  l.emit(pending_count, {l.destination(0, Type::kU32), l.source(1, Type::kB64)});
}

const InsnRow kMbarrierRows[] = {
    {"mbarrier.init", "mbarrier.init{.shared{::cta}}.b64 [addr], count;", 80, InsnClass::kBarrier,
     lower_plain<Operation::kInit>},
    {"mbarrier.inval", "mbarrier.inval{.shared{::cta}}.b64 [addr];", 80, InsnClass::kBarrier,
     lower_plain<Operation::kInvalidate>},
    {"mbarrier.expect_tx", "mbarrier.expect_tx{.relaxed.scope}{.space}.b64 [addr], txCount;", 90,
     InsnClass::kBarrier, lower_plain<Operation::kExpect>},
    {"mbarrier.complete_tx", "mbarrier.complete_tx{.relaxed.scope}{.space}.b64 [addr], txCount;",
     90, InsnClass::kBarrier, lower_plain<Operation::kComplete>},
    {"mbarrier.arrive",
     "mbarrier.arrive{.expect_tx,.noComplete}{.sem.scope}{.space}.b64 state|_, [addr]{, count};",
     80, InsnClass::kBarrier, lower_mbarrier_arrive},
    {"mbarrier.arrive_drop",
     "mbarrier.arrive_drop{.expect_tx,.noComplete}{.sem.scope}{.space}.b64 state|_, [addr]{, "
     "count};",
     80, InsnClass::kBarrier, lower_arrive_drop},
    {"mbarrier.test_wait",
     "mbarrier.test_wait{.parity}{.sem.scope}{.shared{::cta}}.b64 p, [addr], state;", 80,
     InsnClass::kBarrier, [](Lowering& l) { lower_mbarrier_wait(l, false); }},
    {"mbarrier.try_wait",
     "mbarrier.try_wait{.parity}{.sem.scope}{.shared{::cta}}.b64 p, [addr], state{, hint};", 90,
     InsnClass::kBarrier, [](Lowering& l) { lower_mbarrier_wait(l, true); }},
    {"mbarrier.pending_count", "mbarrier.pending_count.b64 count, state;", 80, InsnClass::kBarrier,
     lower_pending_count},
};

}  // namespace

const InsnSection& mbarrier_section() {
  static const InsnSection section{"mbarrier", kMbarrierRows};
  return section;
}

}  // namespace tilewright::sim
