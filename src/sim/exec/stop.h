// What stops a kernel, as a finding: faults of instructions, and deadlocks.
#pragma once

#include "sim/event/finding.h"
#include "sim/state/warp.h"

namespace tilewright::sim {

/// The check is empty for what no check looks for: trap, assert.
Finding finding_of(const Warp& warp, const FaultError& error);

/// Every group of lanes that waits, with its barrier and the warps missing there.
Finding deadlock_of(const std::vector<std::unique_ptr<Cluster>>& clusters);

}  // namespace tilewright::sim
