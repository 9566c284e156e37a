// What stands between the large operators of a model, for predictions: hyper-connections,
// compressors, and what writes caches.
#pragma once

#include "tilewright/device.h"
#include "tilewright/stream.h"

#include "bench/timing/timing.h"

#include <functional>

namespace tilewright::cli {

/// Enqueues the call of a point of kCompressor, kCacheWrite or kHyperConnection again and again.
/// Keeps what it needs: to be called as long as the device is there. Operands are drawn; sequences
/// begin at position 4095, whose token completes an entry of a compressor.
/// Errors   Unsupported if there is no such kernel
std::function<void()> model_part_call(const Device& device, const Stream& stream,
                                      const TimingPoint& point);

}  // namespace tilewright::cli
