#include "verify/graph_times.h"

#include "tilewright/graph.h"

namespace tilewright::cli {

ClockedTimes graph_times(const Device& device, const Stream& stream, const GraphTiming& timing,
                         const std::function<void(int)>& enqueue) {
  const Graph graph = Graph::capture(stream, [&] {
    for (int i = 0; i < timing.calls; ++i) enqueue(i);
  });
  const ClockedTimer timer(device);
  const auto sample = [&] {
    if (timing.is_queued_behind_another) graph.launch(stream);
    return timer.time(stream, [&] { graph.launch(stream); });
  };
  double warm_us = 0;
  for (int i = 0; i < 2 || warm_us < timing.warm_us; ++i) warm_us += sample().us;
  ClockedTimes times;
  for (int i = 0; i < timing.samples; ++i) times.add(sample(), timing.calls);
  return times;
}

}  // namespace tilewright::cli
