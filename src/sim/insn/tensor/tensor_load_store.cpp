// tcgen05.ld, st and their waits: a warp moves its lanes of Tensor Memory to registers and back.
// They take effect when they are issued, which is one of the moments that the device may choose.
#include "sim/event/definedness_observer.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/insn/tensor/tensor_address.h"
#include "sim/tensor/tensor_move.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

enum class Reduction : std::uint8_t { kNone, kMin, kMax };

struct MoveForm {
  TensorAddressForm address;
  TensorMoveShape shape = TensorMoveShape::k32x32b;
  std::uint32_t num_cells = 0;  ///< of a thread: registers, or twice as many if packed
  std::uint32_t end_column = 0;
  bool is_packed = false;
  std::vector<Row> rows;
  std::vector<TensorAddress> cells;  ///< relative, of thread 0, then of thread 1, ...
  Reduction reduction = Reduction::kNone;
  Type type = Type::kB32;
  bool is_absolute = false, keeps_nan = false;
  Row reduced = kNoRow;
};

/// The cells of an instruction of a warp.
struct Move {
  TensorMemory* memory = nullptr;
  std::vector<TensorAddress> cells;
  const TensorAddress& at(const MoveForm& form, std::size_t lane, std::size_t cell) const {
    return cells[lane * form.num_cells + cell];
  }
};

// A warp reaches the 32 lanes of its number modulo 4; of the address the lane counts modulo 32.
Move start(Warp& warp, const MoveForm& form, std::uint32_t active) {
  const std::uint32_t bits = tensor_address_bits(warp, form.address, std::countr_zero(active));
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((active >> lane & 1) != 0 && tensor_address_bits(warp, form.address, lane) != bits) {
      fault(
          FaultKind::kIllegalInstruction, active,
          fmt::format("the lanes of a warp must give one address; lane {} has {:#x}, lane {} {:#x}",
                      std::countr_zero(active), bits, lane,
                      tensor_address_bits(warp, form.address, lane)));
    }
  }
  const TensorAddress base = decode_tensor_address(bits);
  const std::uint32_t step = form.shape == TensorMoveShape::k32x32b ? 32 : 16;
  if (base.lane % step != 0) {
    fault(FaultKind::kMisalignedAddress, active,
          fmt::format("lane {} of the address {:#x} is no multiple of {}", base.lane, bits, step));
  }
  check_tensor_columns(base.column, form.end_column, active);
  Move move;
  move.memory = &tensor_memory_of(*warp.cta);
  move.cells = form.cells;
  for (TensorAddress& cell : move.cells) {
    cell.lane = warp.index % 4 * 32 + (base.lane + cell.lane) % 32;
    cell.column += base.column;
  }
  return move;
}

void notify(Warp& warp, const Insn& insn, const MoveForm& form, const Move& move, AccessKind kind) {
  if (warp.observer == nullptr) return;
  TensorAccess access;
  access.kind = kind;
  access.num_cells = form.num_cells;
  access.cells = move.cells.data();
  access.rows = form.rows;
  access.is_packed = form.is_packed;
  warp.observer->tensor_access(warp, insn, access);
}

/// Which lanes of each register were loaded from cells that are defined.
void mark_loaded(Warp& warp, const Insn& insn, const MoveForm& form, Move& move) {
  if (warp.grid->definedness == nullptr || !move.memory->keeps_defined()) return;
  const std::size_t per_register = form.is_packed ? 2 : 1;
  const std::uint8_t needed = form.is_packed ? 0x3 : kTensorDefined;
  std::uint32_t all = kAllLanes;
  for (std::size_t r = 0; r < form.rows.size(); ++r) {
    std::uint32_t defined = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint8_t bytes = needed;
      for (std::size_t i = 0; i < per_register; ++i) {
        const TensorAddress& cell = move.at(form, lane, r * per_register + i);
        bytes &= move.memory->defined_row(cell.lane)[cell.column];
      }
      defined |= static_cast<std::uint32_t>(bytes == needed) << lane;
    }
    if (defined != kAllLanes) warp.grid->definedness->loaded(warp, insn, form.rows[r], defined);
    all &= defined;
  }
  if (form.reduced != kNoRow && all != kAllLanes) {
    warp.grid->definedness->loaded(warp, insn, form.reduced, all);
  }
}

template <class T>
T reduce_two(const MoveForm& form, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::isnan(a) || std::isnan(b)) {
      if (form.keeps_nan || (std::isnan(a) && std::isnan(b))) {
        return std::bit_cast<float>(0x7fffffffu);
      }
      return std::isnan(a) ? b : a;
    }
    if (a == b) {  // of two zeros the sign decides
      return std::signbit(a) == (form.reduction == Reduction::kMin) ? a : b;
    }
  }
  return (a < b) == (form.reduction == Reduction::kMin) ? a : b;
}

template <class T>
void reduce(Warp& warp, const MoveForm& form) {
  auto* const out = warp.row<T>(form.reduced);
  const auto value = [&](std::size_t r, int lane) {
    T loaded = warp.row<T>(form.rows[r])[lane];
    if constexpr (std::is_same_v<T, float>) {
      if (form.is_absolute) loaded = std::fabs(loaded);
    }
    return loaded;
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    T result = value(0, lane);
    for (std::size_t r = 1; r < form.rows.size(); ++r) {
      result = reduce_two(form, result, value(r, lane));
    }
    out[lane] = result;
  }
}

Step load(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MoveForm& form = *static_cast<const MoveForm*>(insn.extra);
  Move move = start(warp, form, active);
  notify(warp, insn, form, move, AccessKind::kRead);
  const std::size_t per_register = form.is_packed ? 2 : 1;
  for (std::size_t r = 0; r < form.rows.size(); ++r) {
    auto* const row = warp.row<std::uint32_t>(form.rows[r]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const TensorAddress& low = move.at(form, lane, r * per_register);
      std::uint32_t value = move.memory->cell(low.lane, low.column);
      if (form.is_packed) {
        const TensorAddress& high = move.at(form, lane, 2 * r + 1);
        value = (value & 0xffff) | move.memory->cell(high.lane, high.column) << 16;
      }
      row[lane] = value;
    }
  }
  if (form.reduction != Reduction::kNone) {
    form.type == Type::kF32   ? reduce<float>(warp, form)
    : form.type == Type::kS32 ? reduce<std::int32_t>(warp, form)
                              : reduce<std::uint32_t>(warp, form);
  }
  mark_loaded(warp, insn, form, move);
  return Step::kNext;
}

// What .unpack::16b does to the upper halves of the cells is not documented; they become 0.
Step store(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MoveForm& form = *static_cast<const MoveForm*>(insn.extra);
  Move move = start(warp, form, active);
  notify(warp, insn, form, move, AccessKind::kWrite);
  const std::size_t per_register = form.is_packed ? 2 : 1;
  DefinednessObserver* const definedness = warp.grid->definedness;
  for (std::size_t r = 0; r < form.rows.size(); ++r) {
    const auto* const row = warp.row<std::uint32_t>(form.rows[r]);
    const std::uint32_t defined =
        definedness != nullptr ? definedness->defined_lanes(warp, form.rows[r]) : kAllLanes;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < per_register; ++i) {
        const TensorAddress& cell = move.at(form, lane, r * per_register + i);
        std::uint32_t value = row[lane];
        if (form.is_packed) value = value >> (16 * i) & 0xffff;
        move.memory->cell(cell.lane, cell.column) = value;
        if (std::uint8_t* const bytes = move.memory->defined_row(cell.lane)) {
          bytes[cell.column] = (defined >> lane & 1) != 0 ? kTensorDefined : std::uint8_t{0};
        }
      }
    }
  }
  return Step::kNext;
}

template <AccessKind kKind>
Step wait(Warp& warp, const Insn& insn, std::uint32_t) {
  if (warp.observer != nullptr) warp.observer->tensor_waited(warp, insn, kKind);
  return Step::kNext;
}

void take_shape(Lowering& l, MoveForm& form, std::uint32_t& count) {
  const int shape = l.take_one_of({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  if (shape < 0) l.fail("expected a shape: .32x32b, .16x64b, .16x128b, .16x256b or .16x32bx2");
  form.shape = static_cast<TensorMoveShape>(shape);
  const int power = l.take_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (power < 0) l.fail("expected a count from .x1 to .x128");
  count = (1u << power) * registers_of(form.shape);
  if (count > 128) {
    l.fail(fmt::format("{} registers; a thread moves at most 128", count));
  }
}

void bind(Lowering& l, MoveForm& form, int registers_idx, std::uint32_t count, bool is_load) {
  const Operand& operand = l.operand(registers_idx);
  if (operand.kind != OperandKind::kVector) l.fail_at(operand, "expected registers in braces");
  const auto elements = l.elements(registers_idx);
  if (elements.size() != count) {
    l.fail_at(operand, fmt::format("expected {} registers, found {}", count, elements.size()));
  }
  for (const Operand& element : elements) {
    form.rows.push_back(is_load ? l.destination(element, Type::kB32)
                                : l.source(element, Type::kB32));
  }
}

void place(MoveForm& form, std::uint32_t half_split) {
  const auto num_registers = static_cast<std::uint32_t>(form.rows.size());
  form.num_cells = num_registers * (form.is_packed ? 2 : 1);
  for (std::uint32_t t = 0; t < kLanes; ++t) {
    for (std::uint32_t r = 0; r < num_registers; ++r) {
      TensorAddress cell = tensor_move_cell(form.shape, t, r, half_split);
      // Packed: the columns of the formula stand for two each.
      if (form.is_packed) {
        const std::uint32_t split =
            form.shape == TensorMoveShape::k16x32bx2 && t >= 16 ? half_split : 0;
        cell.column = 2 * (cell.column - split) + split;
        form.cells.push_back(cell);
        ++cell.column;
      }
      form.cells.push_back(cell);
      form.end_column = std::max(form.end_column, cell.column + 1);
    }
  }
}

void take_reduction(Lowering& l, MoveForm& form) {
  if (l.module().target == 100) l.fail("tcgen05.ld.red needs .target sm_103a or sm_103f");
  form.reduction = l.take("min")   ? Reduction::kMin
                   : l.take("max") ? Reduction::kMax
                                   : Reduction::kNone;
  if (form.reduction == Reduction::kNone) l.fail("expected .min or .max");
  form.is_absolute = l.take("abs");
  form.keeps_nan = l.take("NaN");
  form.type = l.type();
  const bool is_float = form.type == Type::kF32;
  if (!is_float && form.type != Type::kU32 && form.type != Type::kS32) {
    l.fail("expected .f32, .u32 or .s32");
  }
  if (!is_float && (form.is_absolute || form.keeps_nan)) l.fail(".abs and .NaN are of .f32");
}

void lower_move(Lowering& l, bool is_load) {
  MoveForm form;
  const bool is_reduction = is_load && l.take("red");
  take_sync_aligned(l);
  std::uint32_t count = 0;
  take_shape(l, form, count);
  form.is_packed = !is_reduction && l.take(is_load ? "pack::16b" : "unpack::16b");
  if (is_reduction) {
    take_reduction(l, form);
    const bool has_shape =
        form.shape == TensorMoveShape::k32x32b || form.shape == TensorMoveShape::k16x32bx2;
    if (!has_shape || count < 2) l.fail(".red is of .32x32b and .16x32bx2, from .x2 on");
  } else if (l.type() != Type::kB32) {
    l.fail("expected .b32");
  }
  l.finish_modifiers();
  const bool is_split = form.shape == TensorMoveShape::k16x32bx2;
  const int address_idx = is_reduction ? 2 : is_load ? 1 : 0;
  const int split_idx = address_idx + 1;
  const std::int64_t half_split = is_split ? l.immediate(split_idx) : 0;
  if (half_split < 0 || half_split >= kTensorColumns) {
    l.fail_at(l.operand(split_idx), "expected a number of columns");
  }
  form.address = tensor_address_form(l, address_idx);
  bind(l, form, is_load ? 0 : is_split ? 2 : 1, count, is_load);
  if (is_reduction) form.reduced = l.destination(1, Type::kB32);
  place(form, static_cast<std::uint32_t>(half_split));
  const MoveForm* kept = l.keep(std::move(form));
  Insn& insn = l.emit(is_load ? load : store, {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kAsync;
  for (const Row row : kept->rows) is_load ? l.also_writes(row) : l.also_reads(row);
  if (kept->reduced != kNoRow) l.also_writes(kept->reduced);
}

void lower_wait(Lowering& l, ExecFn exec) {
  take_sync_aligned(l);
  l.finish_modifiers();
  l.emit(exec, {}, 0).flags |= kAligned | kAsync;
}

const InsnRow kTensorLoadStoreRows[] = {
    {"tcgen05.ld",
     "tcgen05.ld{.red}.sync.aligned.shape.num{.pack::16b}{.min|.max{.abs}{.NaN}}.type r, "
     "{redval, }[taddr]{, half-split};",
     100, InsnClass::kLoad, [](Lowering& l) { lower_move(l, true); }, true},
    {"tcgen05.st", "tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [taddr], {half-split, }r;",
     100, InsnClass::kStore, [](Lowering& l) { lower_move(l, false); }, true},
    {"tcgen05.wait::ld", "tcgen05.wait::ld.sync.aligned;", 100, InsnClass::kAsync,
     [](Lowering& l) { lower_wait(l, wait<AccessKind::kRead>); }, true},
    {"tcgen05.wait::st", "tcgen05.wait::st.sync.aligned;", 100, InsnClass::kAsync,
     [](Lowering& l) { lower_wait(l, wait<AccessKind::kWrite>); }, true},
};

}  // namespace

const InsnSection& tensor_load_store_section() {
  static const InsnSection section{"Tensor Memory: loads and stores", kTensorLoadStoreRows};
  return section;
}

}  // namespace tilewright::sim
