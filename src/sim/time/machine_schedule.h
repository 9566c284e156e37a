// Machine code in the place of PTX: which instructions of the machine a basic block of PTX becomes,
// in their order, and which of them carries what the trace says of an instruction of PTX.
#pragma once

#include "sim/state/code.h"
#include "sim/time/insn_cost.h"
#include "sim/time/machine_code.h"
#include "sim/time/time_parameters.h"

#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// An instruction of the machine as it is played.
struct MachineOp {
  InsnCost cost;
  std::uint32_t insn = 0;   ///< KernelCode::insns: what it is for
  std::uint32_t place = 0;  ///< in the machine code, by instructions
  bool is_wide_fence = false;
  std::uint8_t stall = 1;
  std::uint8_t write_counter = 7, read_counter = 7, wait_mask = 0;
};

inline constexpr std::uint32_t kNoMachineOp = ~std::uint32_t{0};

struct MachineSchedule {
  std::vector<MachineOp> ops;
  /// Basic blocks of PTX end at branches and labels, not at fences: of each instruction its block
  std::vector<std::uint32_t> block;
  /// Of each block: numbers in `ops`, which follow each other
  std::vector<std::vector<std::uint32_t>> blocks;
  /// Of each block: the first one of those between which the machine does not jump
  std::vector<std::uint32_t> group;
  /// Of each instruction of PTX: the number in `ops` of the instruction that does the same
  std::vector<std::uint32_t> pair;

  bool is_empty() const noexcept { return ops.empty(); }
};

/// Empty if too little of the machine code could be found in the PTX again: then it is of another
/// text.
///
/// Loads, barriers, copies, products and their like are one instruction in both. They are paired by
/// line and kind, in the order of both. What is left belongs to the block of its line. Where ptxas
/// has several copies of a block (unrolled loops, first polls of barriers), one of them is played.
///
/// A branch around few instructions becomes their predicate. The blocks before, within and behind
/// it are one for ptxas, which mixes them: they are a group, and played in the machine's order.
MachineSchedule machine_schedule(const KernelCode& code, const std::vector<MachineInsn>& machine,
                                 const std::vector<InsnCost>& costs,
                                 const TimeParameters& parameters);

}  // namespace tilewright::sim
