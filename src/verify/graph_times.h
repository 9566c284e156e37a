// How long a call takes, by a CUDA graph of several calls: what the host needs for launches is left
// out.
#pragma once

#include "verify/clock/clocked_timer.h"

#include <functional>

namespace tilewright::cli {

struct GraphTiming {
  int calls = 1, samples = 1;
  double warm_us = 0;  ///< of work before the first sample; 0: two launches
  /// The graph is launched twice for a sample, and the second one's time counts: its first kernel
  /// then does not wait for the host.
  bool is_queued_behind_another = false;
};

/// Times of a call, a sample each; `enqueue` puts call number i on the stream.
ClockedTimes graph_times(const Device& device, const Stream& stream, const GraphTiming& timing,
                         const std::function<void(int)>& enqueue);

}  // namespace tilewright::cli
