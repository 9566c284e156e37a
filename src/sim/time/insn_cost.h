// What an instruction of PTX costs to issue: to which unit it goes, how long that is busy with it,
// and after how long its result is there.
#pragma once

#include "sim/state/code.h"
#include "sim/time/time_parameters.h"

#include <cstdint>
#include <vector>

namespace tilewright::sim {

enum class Pipe : std::uint8_t {
  kNone,  ///< an issue slot and nothing else
  kFma,
  kAlu,
  kSpecial,
  kDouble,
  kShared,  ///< loads, stores and shuffles through shared memory
  kGlobal,  ///< through L1
  kMmaSync,
  kAsync,  ///< what events of the trace describe: barriers, copies, wgmma
};
inline constexpr std::size_t kNumPipes = static_cast<std::size_t>(Pipe::kAsync) + 1;

struct InsnCost {
  Pipe pipe = Pipe::kNone;
  /// The compiler leaves nothing of it: its results are there when its operands are
  bool is_free = false;
  bool ends_block = false;  ///< instructions are not moved across the end of a basic block
  bool is_fence = false;    ///< ... nor across this one
  bool is_ordered = false;  ///< ... and these keep their order among each other
  float slots = 1;          ///< of issue: instructions of the machine
  float stall = 0;          ///< of the warp alone, at its issue
  float interval = 0;       ///< for which the pipe of the scheduler is busy
  float latency = 0;
};

/// One for each of KernelCode::insns. Costs are of PTX: what ptxas makes of an instruction follows
/// from a few rules (insn_cost.cpp), since the machine code is not looked at.
std::vector<InsnCost> insn_costs(const KernelCode& code, const TimeParameters& parameters);

}  // namespace tilewright::sim
