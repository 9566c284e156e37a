// Experts of a log, run again on a simulated device that predicts their time.
#pragma once

#include "tilewright/device.h"
#include "tilewright/stream.h"

#include "bench/timing/timing.h"

#include <functional>

namespace tilewright::cli {

/// Enqueues the call of a row of `tilewright bench moe` again and again, as it was timed. Keeps
/// what it needs: to be called as long as the device is there.
/// Errors   Unsupported if there is no such kernel
std::function<void()> experts_call(const Device& device, const Stream& stream,
                                   const TimingPoint& point);

}  // namespace tilewright::cli
