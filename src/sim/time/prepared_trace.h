// A trace of a CTA in the form that it is played in: instructions in the order in which ptxas
// issues them. It is made once, however often the CTA is played.
#pragma once

#include "sim/time/issue_order.h"
#include "sim/time/machine_schedule.h"
#include "sim/time/trace.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// Of a line of 128 bytes.
inline constexpr std::uint32_t kCodeLineInstructions = 8;

/// An instruction of a trace at its place in the order of issue.
struct PreparedOp {
  std::uint32_t insn = 0, first_event = 0, num_events = 0;
  /// MachineSchedule::ops, if machine code is played; kNoMachineOp there: what has no instruction
  /// of its own
  std::uint32_t machine = kNoMachineOp;
};

struct PreparedWarp {
  std::vector<PreparedOp> ops;
  const std::vector<TraceEvent>* events = nullptr;
};

struct PreparedCta {
  std::vector<PreparedWarp> warps;
  /// Warps that come to each generation of each named barrier, by barrier_key
  std::unordered_map<std::uint64_t, std::uint32_t> barrier_arrivals;
  std::vector<bool> code_lines;  ///< of machine code: those it runs, of kCodeLineInstructions
};

/// Of kBarrierArrive and kBarrierWait. A CTA has 16 named barriers.
inline std::uint64_t barrier_key(const TraceEvent& event) {
  return event.b << 8 | event.a;
}

/// The result refers to `trace`. `machine` is played in the place of PTX unless it is empty.
PreparedCta prepare(const CtaTrace& trace, const IssueOrder& order, const MachineSchedule& machine,
                    const std::vector<InsnCost>& costs);

}  // namespace tilewright::sim
