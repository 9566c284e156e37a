// What instructions of machine code are: the units that they go to, and what they do that PTX
// names as well.
#pragma once

#include "sim/parse/ast.h"
#include "sim/state/insn.h"
#include "sim/time/insn_cost.h"
#include "sim/time/machine_code.h"
#include "sim/time/time_parameters.h"

namespace tilewright::sim {

/// What is one instruction in PTX and in machine code, and so pairs the two.
enum class MachineKind : std::uint8_t {
  kOther,
  kShared,  ///< loads, stores and atomics of shared memory, of matrices too
  kGlobal,  ///< of global memory and of other CTAs
  kShuffle,
  kMma,           ///< mma.sync
  kProduct,       ///< wgmma, tcgen05.mma
  kProductSync,   ///< its fences and waits
  kCommit,        ///< tcgen05.commit
  kTensorCopy,    ///< tcgen05.cp
  kTensorMemory,  ///< tcgen05.ld and st
  kMbarrier,
  kBulkCopy,    ///< TMA
  kThreadCopy,  ///< cp.async
  kGroup,       ///< ends of groups of copies, and waits for them
  kBarrier,
  kClusterBarrier,
  kFence,
  kRegisters,  ///< setmaxnreg
  kSpecial,    ///< exponentials and their like
};

/// BRA, EXIT and their like.
bool is_branch(const MachineInsn& insn) noexcept;
/// Of these, whether the warp may go on elsewhere: not BSSY and WARPSYNC.
bool is_jump(const MachineInsn& insn) noexcept;

MachineKind machine_kind(const MachineInsn& insn) noexcept;
MachineKind machine_kind(const Instruction& insn, InsnClass insn_class);

/// Issue, interval and latency of the unit; the stall of the instruction itself is its own.
InsnCost machine_cost(const MachineInsn& insn, const TimeParameters& parameters);

}  // namespace tilewright::sim
