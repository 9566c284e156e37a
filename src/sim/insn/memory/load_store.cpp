// ld, ldu, st.
#include "sim/event/move_form.h"
#include "sim/exec/turn_order.h"
#include "sim/insn/memory/plain_store.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/memory/access_fault.h"
#include "sim/memory/lane_transpose.h"

#include <array>

namespace tilewright::sim {
namespace {

const MoveForm& form_of(const Insn& insn) {
  return *static_cast<const MoveForm*>(insn.extra);
}

/// rows[j][lane] = element j of the lane's bytes.
template <class T, int N>
void gather(const LanePointers& pointers, const std::array<T*, N>& rows) {
  if (is_consecutive(pointers, sizeof(T) * N)) {
    rows_from_lanes<T, N>(pointers.at[0], rows);
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    T values[N];
    std::memcpy(values, pointers.at[lane], sizeof values);
    for (int j = 0; j < N; ++j) rows[j][lane] = values[j];
  }
}

template <class T, int N>
void write_elements(Warp& warp, const MoveForm& form, const LanePointers& pointers,
                    std::uint32_t active) {
  std::array<T*, N> rows;
  bool is_direct = active == kAllLanes;
  for (int j = 0; j < N; ++j) {
    rows[j] = warp.row<T>(form.rows[j]);
    is_direct &= form.row_bytes[j] == sizeof(T);
  }
  if (is_direct) [[likely]]
    return gather<T, N>(pointers, rows);
  alignas(64) T values[N][kLanes];
  for (int j = 0; j < N; ++j) rows[j] = values[j];
  gather<T, N>(pointers, rows);
  for (int j = 0; j < N; ++j) {
    if (form.row_bytes[j] == sizeof(T)) {
      write_row(warp.row<T>(form.rows[j]), values[j], active);
    } else {
      extend_row(warp.row<std::byte>(form.rows[j]), form.row_bytes[j],
                 reinterpret_cast<const std::byte*>(values[j]), sizeof(T), form.is_signed, active);
    }
  }
}

template <class T, int N>
Step load(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MoveForm& form = form_of(insn);
  if (form.is_cross_cta) [[unlikely]]
    await_turn(warp, form.address, active);
  if (active == kAllLanes && form.is_direct) [[likely]] {
    const std::byte* const from = resolve_run(warp, insn, form.address, form.access);
    if (from != nullptr) [[likely]] {
      std::array<T*, N> rows;
      for (int j = 0; j < N; ++j) rows[j] = warp.row<T>(form.rows[j]);
      rows_from_lanes<T, N>(from, rows);
      return form.step;
    }
  }
  LanePointers pointers;
  resolve(warp, insn, active, form.address, form.access, pointers);
  write_elements<T, N>(warp, form, pointers, active);
  return form.step;
}

/// A parameter of the kernel at a fixed place: the same for all lanes.
template <class T, int N>
Step load_param(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MoveForm& form = form_of(insn);
  const auto offset = static_cast<std::uint64_t>(form.address.offset);
  const auto& params = warp.grid->params;
  if (offset >= params.size() || form.access.bytes > params.size() - offset) {
    fault_param(warp, AccessKind::kRead, offset, form.access.bytes, active);
  }
  for (int j = 0; j < N; ++j) {
    T value;
    std::memcpy(&value, params.data() + offset + sizeof(T) * j, sizeof value);
    T values[kLanes];
    for (T& lane_value : values) lane_value = value;
    if (form.row_bytes[j] == sizeof(T)) {
      write_row(warp.row<T>(form.rows[j]), values, active);
    } else {
      extend_row(warp.row<std::byte>(form.rows[j]), form.row_bytes[j],
                 reinterpret_cast<const std::byte*>(values), sizeof(T), form.is_signed, active);
    }
  }
  return Step::kNext;
}

template <class T, int N>
void scatter(const LanePointers& pointers, const std::array<const T*, N>& rows,
             std::uint32_t active) {
  if (active == kAllLanes && is_consecutive(pointers, sizeof(T) * N)) {
    lanes_from_rows<T, N>(pointers.at[0], rows);
    return;
  }
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    T values[N];
    for (int j = 0; j < N; ++j) values[j] = rows[j][lane];
    std::memcpy(pointers.at[lane], values, sizeof values);
  }
}

template <class T, int N>
Step store(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MoveForm& form = form_of(insn);
  if (form.is_cross_cta) [[unlikely]]
    await_turn(warp, form.address, active);
  if (active == kAllLanes && form.is_direct) [[likely]] {
    std::byte* const to = resolve_run(warp, insn, form.address, form.access);
    if (to != nullptr) [[likely]] {
      std::array<const T*, N> rows;
      for (int j = 0; j < N; ++j) rows[j] = warp.row<T>(form.rows[j]);
      lanes_from_rows<T, N>(to, rows);
      return form.step;
    }
  }
  LanePointers pointers;
  resolve(warp, insn, active, form.address, form.access, pointers);
  std::array<const T*, N> rows;
  alignas(64) T narrow[N][kLanes];
  for (int j = 0; j < N; ++j) {
    rows[j] = warp.row<T>(form.rows[j]);
    if (form.row_bytes[j] == sizeof(T)) [[likely]]
      continue;
    truncate_row(reinterpret_cast<std::byte*>(narrow[j]), sizeof(T),
                 warp.row<std::byte>(form.rows[j]), form.row_bytes[j]);
    rows[j] = narrow[j];
  }
  scatter<T, N>(pointers, rows, active);
  return form.step;
}

/// The exec function of a template over element and count.
struct Load {
  template <class T, int N>
  static constexpr ExecFn kExec = load<T, N>;
};
struct LoadParam {
  template <class T, int N>
  static constexpr ExecFn kExec = load_param<T, N>;
};
struct Store {
  template <class T, int N>
  static constexpr ExecFn kExec = store<T, N>;
};

template <class What, class T>
ExecFn pick_count(int count) {
  switch (count) {
    case 1:
      return What::template kExec<T, 1>;
    case 2:
      return What::template kExec<T, 2>;
    case 4:
      return What::template kExec<T, 4>;
    default:
      return What::template kExec<T, 8>;
  }
}

template <class What>
ExecFn pick(Type type, int count) {
  switch (bytes_of(type)) {
    case 1:
      return pick_count<What, std::uint8_t>(count);
    case 2:
      return pick_count<What, std::uint16_t>(count);
    case 4:
      return pick_count<What, std::uint32_t>(count);
    case 8:
      return pick_count<What, std::uint64_t>(count);
    default:
      return What::template kExec<Bytes16, 1>;
  }
}

struct Modifiers {
  AddressSpace space;
  int count;
  Type type;
  bool has_policy;
};

Modifiers take_modifiers(Lowering& l, MoveForm& form, AccessKind kind) {
  Modifiers m{};
  form.access.order = take_order(l);
  m.space = take_space(l);
  m.has_policy = take_cache_hints(l);
  m.count = take_vector(l);
  m.type = l.type();
  l.take("unified");
  l.finish_modifiers();
  const std::uint32_t bytes = bytes_of(m.type) * static_cast<std::uint32_t>(m.count);
  if (m.type == Type::kPred || bytes_of(m.type) == 0 || bytes_of(m.type) > 16) {
    l.fail("this type cannot be moved to or from memory");
  }
  if (bytes > 32 || (m.type == Type::kB128 && m.count > 1)) {
    l.fail("a vector of more than 256 bits");
  }
  if (bytes == 32 && l.module().target < 100)
    l.fail("256-bit accesses need .target sm_100 or newer");
  if (bytes == 32 && m.space != AddressSpace::kGlobal && m.space != AddressSpace::kGeneric) {
    l.fail("256-bit accesses are for global memory");
  }
  if (m.count == 8 && bytes != 32) l.fail(".v8 needs elements of 32 bits");
  form.access.kind = kind;
  form.access.bytes = form.access.align_bytes = bytes;
  return m;
}

/// The rows of the vector operand, as destinations or sources.
void bind_elements(Lowering& l, MoveForm& form, const Modifiers& m, int operand_idx) {
  const auto elements = l.elements(operand_idx);
  if (static_cast<int>(elements.size()) != m.count) {
    l.fail_at(l.operand(operand_idx), "expected " + std::to_string(m.count) + " elements, found " +
                                          std::to_string(elements.size()));
  }
  for (std::size_t j = 0; j < elements.size(); ++j) {
    const TypedRow row = form.access.kind == AccessKind::kRead
                             ? l.destination_any(elements[j], m.type)
                             : l.source_any(elements[j], m.type);
    const std::uint32_t bytes = bytes_of(row.type);
    if (bytes < bytes_of(m.type)) {
      l.fail_at(elements[j], "a register of type " + std::string(name_of(row.type)) +
                                 " is too narrow for " + std::string(name_of(m.type)));
    }
    form.rows[j] = row.row;
    form.row_bytes[j] = static_cast<std::uint8_t>(bytes);
    form.is_direct &= bytes == bytes_of(m.type);
  }
}

bool is_strong(const MoveForm& form) {
  return form.access.order.semantics != MemorySemantics::kWeak;
}

std::uint16_t cross_cta_flag(const MoveForm& form) {
  const AddressSpace space = form.address.space;
  const bool may_be_global = space == AddressSpace::kGlobal || space == AddressSpace::kGeneric;
  return is_strong(form) && may_be_global ? kCrossCta : 0;
}

void lower_ld(Lowering& l) {
  MoveForm form;
  const Modifiers m = take_modifiers(l, form, AccessKind::kRead);
  form.is_signed = is_signed(m.type);
  form.address = address_form(l, 1, m.space);
  bind_elements(l, form, m, 0);
  if (l.num_operands() > (m.has_policy ? 3 : 2))
    l.fail_at(l.operand(l.num_operands() - 1), "one operand too many");
  // A poll: what it waits for is written by others.
  if (is_strong(form)) form.step = Step::kYield;
  const bool is_param = form.address.space == AddressSpace::kParam && form.address.base == kNoRow;
  const ExecFn exec = is_param ? pick<LoadParam>(m.type, m.count) : pick<Load>(m.type, m.count);
  const std::uint16_t flags = cross_cta_flag(form);
  form.is_cross_cta = flags != 0;
  const MoveForm* kept = l.keep(form);
  Insn& insn = l.emit(exec, {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kMemoryRead | kUsesUndefined | flags;
  for (int j = 0; j < m.count; ++j) l.also_writes(kept->rows[j]);
}

}  // namespace

void lower_store(Lowering& l) {
  MoveForm form;
  const Modifiers m = take_modifiers(l, form, AccessKind::kWrite);
  form.address = address_form(l, 0, m.space);
  bind_elements(l, form, m, 1);
  const std::uint16_t flags = cross_cta_flag(form);
  form.is_cross_cta = flags != 0;
  const MoveForm* kept = l.keep(form);
  Insn& insn = l.emit(pick<Store>(m.type, m.count), {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kMemoryWrite | kUsesUndefined | flags;
  for (int j = 0; j < m.count; ++j) l.also_reads(kept->rows[j]);
}

namespace {

const InsnRow kLoadStoreRows[] = {
    {"ld",
     "ld{.weak,.volatile,.relaxed.scope,.acquire.scope}{.space}{.cop}{.nc}{.vec}.type d, [a]{, "
     "cache-policy};",
     20, InsnClass::kLoad, lower_ld},
    {"ldu", "ldu{.global}{.vec}.type d, [a];", 20, InsnClass::kLoad, lower_ld},
    {"st",
     "st{.weak,.volatile,.relaxed.scope,.release.scope}{.space}{.cop}{.vec}.type [a], b{, "
     "cache-policy};",
     20, InsnClass::kStore, lower_store},
};

}  // namespace

const InsnSection& load_store_section() {
  static const InsnSection section{"Loads and stores", kLoadStoreRows};
  return section;
}

}  // namespace tilewright::sim
