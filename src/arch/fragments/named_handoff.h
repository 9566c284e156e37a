// One MMA's accumulator as the next one's operand, both given by name.
#pragma once

#include "arch/fragments/atoms.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::arch {

/// {"from", "to", "verdict", "explanation", ...}: through registers with what moves
/// (layout/register_handoff.h), through Tensor Memory with what is misplaced
/// (layout/tmem_handoff.h).
/// Errors   InvalidArgument unless both are fragments, or both layouts of Tensor Memory
nlohmann::json describe_handoff(const NamedAtom& from, const NamedAtom& to);

/// Tensor Memory: both maps side by side, the same cells as written and as read, as SVG.
std::string draw_tmem_handoff(const NamedAtom& from, const NamedAtom& to);

}  // namespace tilewright::arch
