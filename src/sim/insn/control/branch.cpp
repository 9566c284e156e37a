// Control flow: PTX ISA, "Control flow instructions", and setmaxnreg.
#include "sim/event/observer.h"
#include "sim/exec/control.h"
#include "sim/insn/sections.h"
#include "sim/state/waits.h"
#include "sim/state/warp.h"

#include <bit>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

void lower_bra(Lowering& l) {
  l.take("uni");
  l.finish_modifiers();
  l.emit_jump(jump, {}, l.operand(0)).flags |= kUsesUndefined;
}

// One jump for each target: lanes whose index differs from the target's go on to the next.
Step jump_if_index(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* index = warp.row<std::uint32_t>(insn.op[0]);
  std::uint32_t lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (index[lane] == insn.small) lanes |= 1U << lane;
  }
  warp.jump_pc = static_cast<std::uint32_t>(insn.imm);
  warp.jump_lanes = lanes & active;
  return warp.jump_lanes == 0 ? Step::kNext : Step::kJump;
}

Step bad_index(Warp& warp, const Insn& insn, std::uint32_t active) {
  const int lane = std::countr_zero(active);
  fault(FaultKind::kInvalidPc, active,
        fmt::format("brx.idx: index {} in a table of {} targets",
                    warp.row<std::uint32_t>(insn.op[0])[lane], insn.imm));
}

void lower_brx(Lowering& l) {
  l.take("uni");
  l.finish_modifiers();
  const Row index = l.source(0, Type::kU32);
  const Operand& table = l.operand(1);
  if (table.kind != OperandKind::kTable) l.fail_at(table, "a .branchtargets list is expected here");
  const std::vector<std::uint32_t>& targets = l.function().tables[table.index].targets;
  if (targets.size() > 255) l.fail_at(table, "more than 255 targets");
  for (std::size_t i = 0; i < targets.size(); ++i) {
    Operand label;
    label.kind = OperandKind::kLabel;
    label.index = targets[i];
    label.pos = table.pos;
    Insn& insn = l.emit_jump(jump_if_index, {index}, label);
    insn.flags |= kUsesUndefined;
    insn.small = static_cast<std::uint8_t>(i);
  }
  l.emit(bad_index, {index}, 0).imm = static_cast<std::int64_t>(targets.size());
}

void lower_exit(Lowering& l) {
  l.take("uni");
  l.finish_modifiers();
  l.emit(end_lanes, {}, 0).flags |= kControl;
}

Step trap(Warp&, const Insn&, std::uint32_t active) {
  fault(FaultKind::kTrap, active, "trap");
}

void lower_trap(Lowering& l) {
  l.finish_modifiers();
  l.emit(trap, {}, 0).flags |= kControl;
}

Step go_on(Warp&, const Insn&, std::uint32_t) {
  return Step::kNext;
}

void lower_brkpt(Lowering& l) {
  l.finish_modifiers();
  l.emit(go_on, {}, 0);
}

/// Between the warp and the pool of its CTA. What is undefined changes nothing: fewer registers by
/// .inc, more by .dec (the sync check names it).
Step set_max_registers(Warp& warp, const Insn& insn, std::uint32_t active) {
  const bool is_inc = insn.small != 0;
  const RegisterEvent event{is_inc, active, static_cast<std::uint32_t>(insn.imm),
                            warp.num_registers};
  std::uint32_t& pool = warp.cta->free_registers;
  if (event.before != 0 && is_inc && event.count > event.before) {
    const std::uint64_t missing = registers_missing(warp, event.count);
    if (pool < missing) {
      warp.wait = {WaitKind::kRegisters, event.count, 0};
      return Step::kRetry;
    }
    pool -= static_cast<std::uint32_t>(missing);
    warp.num_registers = event.count;
  } else if (event.before != 0 && !is_inc && event.count < event.before) {
    pool += (event.before - event.count) * kLanes;
    warp.num_registers = event.count;
  }
  if (warp.observer != nullptr) warp.observer->registers_set(warp, insn, event);
  return Step::kNext;
}

void lower_setmaxnreg(Lowering& l) {
  const int action = l.take_one_of({"inc", "dec"});
  if (action < 0) l.fail("setmaxnreg needs .inc or .dec");
  l.take("sync");
  l.take("aligned");
  l.type();
  l.finish_modifiers();
  const std::int64_t count = l.immediate(0);
  if (count < 24 || count > 256 || count % 8 != 0) {
    l.fail(fmt::format("{} registers; a multiple of 8 from 24 to 256 is expected", count));
  }
  Insn& insn = l.emit(set_max_registers, {}, 0);
  insn.imm = count;
  insn.small = action == 0;  // .inc
  insn.flags |= kAligned;
}

constexpr InsnRow kBranchRows[] = {
    {"bra", "bra{.uni} label;", 10, InsnClass::kControl, lower_bra},
    {"brx.idx", "brx.idx{.uni} index, targets;", 30, InsnClass::kControl, lower_brx},
    {"ret", "ret{.uni};", 10, InsnClass::kControl, lower_exit},
    {"exit", "exit;", 10, InsnClass::kControl, lower_exit},
    {"trap", "trap;", 10, InsnClass::kControl, lower_trap},
    {"brkpt", "brkpt;", 11, InsnClass::kControl, lower_brkpt},
    {"setmaxnreg", "setmaxnreg.{inc,dec}.sync.aligned.u32 count;", 90, InsnClass::kControl,
     lower_setmaxnreg, true},
};

}  // namespace

const InsnSection& control_section() {
  static const InsnSection section{"Control flow", kBranchRows};
  return section;
}

}  // namespace tilewright::sim
