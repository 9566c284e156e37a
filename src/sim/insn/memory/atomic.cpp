// atom, red.
#include "sim/exec/turn_order.h"
#include "sim/insn/memory/atomic_ops.h"
#include "sim/insn/memory/plain_store.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <array>
#include <mutex>
#include <string>

namespace tilewright::sim {
namespace {

constexpr int kMaxElements = 8;

struct AtomicForm {
  AddressForm address;
  Access access;
  AtomicOp op = AtomicOp::kAdd;
  Type type = Type::kNone;  ///< of an element
  int count = 1;
  std::array<Row, kMaxElements> old{};  ///< kNoRow: red
  std::array<Row, kMaxElements> value{};
  Row swap = kNoRow;
};

/// Replaces the value at `place` and returns the old one. CTAs may run on several host threads.
template <class T>
T exchange(const AtomicForm& form, std::byte* place, T value, T swap, bool is_global) {
  auto* memory = reinterpret_cast<T*>(place);
  T old = __atomic_load_n(memory, __ATOMIC_RELAXED);
  while (true) {
    const T fresh = atomic_ops::apply(form.op, form.type, old, value, swap, is_global);
    if (!is_global) {  // only this host thread sees shared memory
      *memory = fresh;
      return old;
    }
    if (__atomic_compare_exchange_n(memory, &old, fresh, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED)) {
      return old;
    }
  }
}

template <>
Bytes16 exchange(const AtomicForm& form, std::byte* place, Bytes16 value, Bytes16 swap,
                 bool /*is_global*/) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Bytes16 old;
  std::memcpy(&old, place, sizeof old);
  const bool is_written = form.op == AtomicOp::kExchange || old == value;
  const Bytes16& fresh = form.op == AtomicOp::kExchange ? value : swap;
  if (is_written) std::memcpy(place, &fresh, sizeof fresh);
  return old;
}

/// A lock that was not taken, a flag that is not set: others should run.
template <class T>
bool is_failed_poll(AtomicOp op, T old, T value) {
  if (op == AtomicOp::kCompareExchange) return !(old == value);
  return op == AtomicOp::kExchange && old == value;
}

/// Counters that only some CTAs of a launch count: what each adds it adds for those that it stands
/// for (Grid::stands_for), and is the last of them.
template <class T>
bool add_for_others(const Warp& warp, const AtomicForm& form, std::byte* place, T value, T& old) {
  const std::uint64_t count = warp.grid->stands_for;
  if (count == 1 || form.op != AtomicOp::kAdd || is_float(form.type) || form.count != 1) {
    return false;
  }
  if constexpr (std::is_same_v<T, Bytes16> || sizeof(T) < 4) {
    return false;
  } else {
    old = exchange<T>(form, place, static_cast<T>(value * count), T{}, true);
    old = static_cast<T>(old + value * (count - 1));
    return true;
  }
}

template <class T>
Step atomic(Warp& warp, const Insn& insn, std::uint32_t active) {
  const AtomicForm& form = *static_cast<const AtomicForm*>(insn.extra);
  await_turn(warp, form.address, active);
  LanePointers pointers;
  resolve(warp, insn, active, form.address, form.access, pointers);
  bool is_poll = false;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool is_global = (pointers.shared_lanes >> lane & 1) == 0;
    for (int j = 0; j < form.count; ++j) {
      const T value = warp.row<T>(form.value[j])[lane];
      const T swap = form.swap == kNoRow ? T{} : warp.row<T>(form.swap)[lane];
      std::byte* const place = pointers.at[lane] + sizeof(T) * j;
      T old{};
      if (!is_global || !add_for_others(warp, form, place, value, old)) {
        old = exchange<T>(form, place, value, swap, is_global);
      }
      is_poll |= is_failed_poll(form.op, old, value);
      if (form.old[j] != kNoRow) warp.row<T>(form.old[j])[lane] = old;
    }
  }
  return is_poll ? Step::kYield : Step::kNext;
}

AtomicOp take_op(Lowering& l) {
  const int op =
      l.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
  if (op < 0) l.fail("expected an operation: .add .min .max .inc .dec .and .or .xor .exch .cas");
  return static_cast<AtomicOp>(op);
}

bool is_legal(AtomicOp op, Type type, int count) {
  const bool is_half =
      type == Type::kF16 || type == Type::kBf16 || type == Type::kF16x2 || type == Type::kBf16x2;
  const bool is_add = op == AtomicOp::kAdd;
  const bool is_extreme = op == AtomicOp::kMin || op == AtomicOp::kMax;
  if (count > 1) return (type == Type::kF32 && is_add) || (is_half && (is_add || is_extreme));
  switch (op) {
    case AtomicOp::kAdd:
      return is_half || type == Type::kU32 || type == Type::kS32 || type == Type::kU64 ||
             type == Type::kS64 || type == Type::kF32 || type == Type::kF64;
    case AtomicOp::kMin:
    case AtomicOp::kMax:
      return type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || type == Type::kS64;
    case AtomicOp::kInc:
    case AtomicOp::kDec:
      return type == Type::kU32;
    case AtomicOp::kAnd:
    case AtomicOp::kOr:
    case AtomicOp::kXor:
      return bytes_of(type) >= 4 && bytes_of(type) <= 8 && !is_float(type);
    case AtomicOp::kExchange:
      return bytes_of(type) >= 4 && !is_half;
    case AtomicOp::kCompareExchange:
      return bytes_of(type) >= 2 && !is_half;
  }
  return false;
}

void check_form(Lowering& l, const AtomicForm& form) {
  const std::uint32_t bytes = form.access.bytes;
  if (!is_legal(form.op, form.type, form.count) || bytes > 16) {
    l.fail("this operation does not exist for ." + std::string(name_of(form.type)) +
           (form.count > 1 ? " vectors of " + std::to_string(form.count) : ""));
  }
  if (form.count > 1 && form.address.space != AddressSpace::kGlobal &&
      form.address.space != AddressSpace::kGeneric) {
    l.fail("vector atomics work on global memory only");
  }
}

template <class Bind>
void bind_vector(Lowering& l, int operand_idx, int count, Bind bind) {
  const auto elements = l.elements(operand_idx);
  if (static_cast<int>(elements.size()) != count) {
    l.fail_at(l.operand(operand_idx), "expected " + std::to_string(count) + " elements");
  }
  for (int j = 0; j < count; ++j) bind(j, elements[static_cast<std::size_t>(j)]);
}

ExecFn pick_atomic(Type type) {
  switch (bytes_of(type)) {
    case 2:
      return atomic<std::uint16_t>;
    case 4:
      return atomic<std::uint32_t>;
    case 8:
      return atomic<std::uint64_t>;
    default:
      return atomic<Bytes16>;
  }
}

/// Whether the memory does not show in which order these ran; the old values are not read.
bool commutes(const AtomicForm& form, bool has_result) {
  const bool is_extreme = form.op == AtomicOp::kMin || form.op == AtomicOp::kMax;
  const bool is_bitwise =
      form.op == AtomicOp::kAnd || form.op == AtomicOp::kOr || form.op == AtomicOp::kXor;
  const bool is_sum = form.op == AtomicOp::kAdd && !is_float(form.type);
  return !has_result && form.count == 1 && (is_sum || is_extreme || is_bitwise);
}

/// A number for each operation and type.
std::uint8_t kind_of(const AtomicForm& form) {
  return static_cast<std::uint8_t>(static_cast<int>(form.op) * 16 + (is_signed(form.type) ? 8 : 0) +
                                   bytes_of(form.type) / 4);
}

/// atom has the old value in operand 0, red has no result.
void lower(Lowering& l, bool has_result) {
  AtomicForm form;
  form.access.order = take_order(l);
  if (form.access.order.semantics == MemorySemantics::kWeak) {
    form.access.order.semantics = MemorySemantics::kRelaxed;
  }
  if (form.access.order.scope == MemoryScope::kNone) form.access.order.scope = MemoryScope::kGpu;
  const AddressSpace space = take_space(l);
  take_cache_hints(l);
  form.op = take_op(l);
  l.take("noftz");
  form.count = take_vector(l);
  form.type = l.type();
  l.finish_modifiers();
  form.access.kind = AccessKind::kAtomic;
  form.access.bytes = form.access.align_bytes =
      bytes_of(form.type) * static_cast<std::uint32_t>(form.count);
  const int first = has_result ? 1 : 0;
  form.address = address_form(l, first, space);
  check_form(l, form);
  form.old.fill(kNoRow);
  if (has_result) {
    bind_vector(l, 0, form.count, [&](int j, const Operand& operand) {
      form.old[j] = operand.kind == OperandKind::kSink ? kNoRow : l.destination(operand, form.type);
    });
  }
  bind_vector(l, first + 1, form.count,
              [&](int j, const Operand& operand) { form.value[j] = l.source(operand, form.type); });
  if (form.op == AtomicOp::kCompareExchange) form.swap = l.source(first + 2, form.type);
  const AtomicForm* kept = l.keep(form);
  Insn& insn = l.emit(pick_atomic(form.type), {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kMemoryRead | kMemoryWrite | kAtomic | kUsesUndefined;
  insn.small = kind_of(*kept);
  if (space == AddressSpace::kGlobal || space == AddressSpace::kGeneric) insn.flags |= kCrossCta;
  if (commutes(*kept, has_result)) insn.flags |= kCommutes;
  for (int j = 0; j < kept->count; ++j) {
    if (kept->old[j] != kNoRow) l.also_writes(kept->old[j]);
    l.also_reads(kept->value[j]);
  }
  if (kept->swap != kNoRow) l.also_reads(kept->swap);
}

}  // namespace

void lower_reduction(Lowering& l) {
  lower(l, false);
}

namespace {

const InsnRow kAtomicRows[] = {
    {"atom", "atom{.sem}{.scope}{.space}.op{.noftz}{.vec}.type d, [a], b{, c}{, cache-policy};", 20,
     InsnClass::kAtomic, [](Lowering& l) { lower(l, true); }},
    {"red", "red{.sem}{.scope}{.space}.op{.noftz}{.vec}.type [a], b{, cache-policy};", 20,
     InsnClass::kAtomic, lower_reduction},
};

}  // namespace

const InsnSection& atomic_section() {
  static const InsnSection section{"Atomics and reductions", kAtomicRows};
  return section;
}

}  // namespace tilewright::sim
