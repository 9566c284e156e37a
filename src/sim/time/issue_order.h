// In which order ptxas puts the instructions of a basic block.
//
// PTX is no schedule: its instructions stand in the order of the expressions that they came from,
// each right before the next that waits for it. ptxas moves them so that a warp alone waits little.
// Here each block is scheduled as a list scheduler does it: of the instructions whose operands are
// there, the one with the longest way to the end of the block first.
#pragma once

#include "sim/state/code.h"
#include "sim/time/insn_cost.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// The values that instructions write and read, by number. Registers that are never alive at the
/// same time share a row in the simulator; here each value that lives within a basic block has a
/// number of its own, so that it orders nothing but its readers.
struct ValueNumbers {
  std::vector<std::uint32_t> first;        ///< of an instruction, in `numbers`; one more at the end
  std::vector<std::uint16_t> num_written;  ///< they come first
  std::vector<std::uint32_t> numbers;
  std::uint32_t count = 0;
};

struct IssueOrder {
  std::vector<std::uint32_t> block;  ///< of each instruction: the number of its basic block
  std::vector<std::uint32_t> rank;   ///< likewise: its place in the block
  ValueNumbers values;
};

/// Where blocks begin that are entered and left at their ends only, in order, and the end of the
/// code.
std::vector<std::size_t> control_block_starts(const KernelCode& code,
                                              const std::vector<InsnCost>& costs);

/// Data flow is kept, and the order of what is InsnCost::is_ordered; nothing crosses a fence.
IssueOrder issue_order(const KernelCode& code, const std::vector<InsnCost>& costs);

}  // namespace tilewright::sim
