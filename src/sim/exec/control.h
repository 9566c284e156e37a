// What the translator itself emits: jumps, calls of built-in functions, clocks.
#pragma once

#include "sim/state/insn.h"

#include <vector>

namespace tilewright::sim {

Step jump(Warp& warp, const Insn& insn, std::uint32_t active);  ///< to imm
/// Lanes whose op[0] does not hold
Step jump_unless(Warp& warp, const Insn& insn, std::uint32_t active);
/// Lanes whose 64-bit op[0] differs from op[1].
Step jump_if_different(Warp& warp, const Insn& insn, std::uint32_t active);
Step end_lanes(Warp& warp, const Insn& insn, std::uint32_t active);
Step bad_call(Warp& warp, const Insn& insn, std::uint32_t active);  ///< op[0]: the address

/// Reads a clock into op[0]; `small` is the SpecialRegister, imm 1 if the row is 64-bit.
Step read_clock(Warp& warp, const Insn& insn, std::uint32_t active);

/// The local memory of a built-in's arguments and of its result, for Insn::extra.
struct BuiltinCall {
  std::vector<std::uint64_t> arguments;  ///< offsets in local memory
  std::uint64_t result = 0;
};
Step call_vprintf(Warp& warp, const Insn& insn, std::uint32_t active);
Step call_assertfail(Warp& warp, const Insn& insn, std::uint32_t active);
Step call_malloc(Warp& warp, const Insn& insn, std::uint32_t active);
Step call_free(Warp& warp, const Insn& insn, std::uint32_t active);

}  // namespace tilewright::sim
