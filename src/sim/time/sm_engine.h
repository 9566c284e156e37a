// Plays traces of CTAs again on some SMs, with a clock.
//
// Events in the order of time: a warp that can issue, bytes that have come, an arrival at a
// barrier. Between them nothing happens, so that a warp that waits costs nothing. What the trace
// fixes is which instructions run and what they touch; when they do, and so who waits for whom, is
// decided here: barriers are evaluated anew.
#pragma once

#include "sim/report/prediction.h"
#include "sim/state/code.h"
#include "sim/time/insn_cost.h"
#include "sim/time/issue_order.h"
#include "sim/time/machine_schedule.h"
#include "sim/time/time_parameters.h"
#include "sim/time/trace.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::sim {

/// What is the same for all CTAs of a kernel: costs and order of its instructions, what
/// they wait for.
class KernelTiming {
 public:
  /// `machine`: empty if there is no machine code
  KernelTiming(const KernelCode& code, const DeviceModel& model, const TimeParameters& parameters,
               const std::vector<MachineInsn>& machine);

  const KernelCode& code;
  const DeviceModel& model;
  const TimeParameters& parameters;
  std::vector<InsnCost> costs;
  IssueOrder order;
  MachineSchedule machine;
  std::vector<double> tensor_rate;  ///< its FLOP per clock, 0: multiplies nothing
};

/// The share of a launch's memory traffic that one SM sees.
struct MemoryShare {
  double active_sms = 1;
  std::vector<double> miss;  ///< by area: the part of its bytes that comes from HBM or goes there
  /// By area, if several CTAs read it: the first request misses, the last one with the chance
  /// e^-fading (miss_fading()). And the bytes that those who are played ask for; 0: misses are even
  std::vector<double> fading, asked;
  std::vector<bool> is_written;  ///< by area: by the launch itself, a good part of it
  double l1_bytes = 0;           ///< of an SM
  /// Whether another kernel ran before, that wrote other memory: as benches time a launch between
  /// two events. In a graph it is a launch of the same kernel.
  bool is_cold = false;
};

struct EngineResult {
  double clocks = 0;
  std::uint64_t warp_instructions = 0;
  std::vector<double> busy;                ///< clocks by TimedUnit, of one SM
  std::vector<double> waits;               ///< clocks of warps by WaitCause
  double low_clocks = 0;                   ///< with the lower clock of products, of one SM
  double warp_clocks = 0;                  ///< that warps were there
  std::vector<std::vector<double>> lines;  ///< waits by instruction, then WaitCause; empty: none
  std::vector<TimelineSpan> timeline;      ///< of the first CTA
  double grid_trigger = -1;  ///< when the last CTA lets the next launch go; below 0: never
};

/// When others than those that are played have come to where these wait for them.
struct Around {
  double launch_before_ends = 0;  ///< what griddepcontrol.wait waits for
};

/// Clusters of one place of the device, in the order in which they start.
using PlaceQueue = std::vector<const std::vector<CtaTrace>*>;

/// `queues`: of each place that is played, none of them empty; together they stand for all SMs that
/// are active. `slots` clusters are resident at a place at a time.
/// Errors   Internal if the traces wait for each other without an end
EngineResult play(const KernelTiming& kernel, const MemoryShare& memory,
                  std::span<const PlaceQueue> queues, std::uint32_t slots,
                  const Around& around = {});

}  // namespace tilewright::sim
