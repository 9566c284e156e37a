// An instruction as it stands in its module's text, for reports and traces.
#pragma once

#include "sim/parse/ast.h"

#include <string>

namespace tilewright::sim {

/// From the opcode on, without the semicolon, blanks shortened. An fma that was made of a mul and an
/// add is shown as the add.
std::string instruction_text(const Module& module, const Instruction& instruction);

}  // namespace tilewright::sim
