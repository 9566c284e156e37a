// Finding an instruction's row in the table.
#pragma once

#include "sim/compile/lowering.h"

#include <string>

namespace tilewright::sim {

/// The row whose name is the longest beginning of opcode.modifier.modifier..., nullptr if there is
/// none. `num_leading`: modifiers that belong to the name.
const InsnRow* find_row(const Instruction& syntax, std::size_t& num_leading);

/// "unknown instruction wgmma.mma_asinc; did you mean wgmma.mma_async?", or why it is not there.
std::string unknown_instruction(const Instruction& syntax, const Module& module);

}  // namespace tilewright::sim
