#include "verify/graph_times.h"

#include "tilewright/graph.h"

namespace tilewright::cli {

std::vector<double> graph_times_us(const Device& device, const Stream& stream,
                                   const GraphTiming& timing,
                                   const std::function<void(int)>& enqueue) {
  const Graph graph = Graph::capture(stream, [&] {
    for (int i = 0; i < timing.calls; ++i) enqueue(i);
  });
  const StreamTimer timer(device);
  const auto sample_us = [&] {
    if (timing.is_queued_behind_another) graph.launch(stream);
    return timer.time_us(stream, [&] { graph.launch(stream); });
  };
  double warm_us = 0;
  for (int i = 0; i < 2 || warm_us < timing.warm_us; ++i) warm_us += sample_us();
  std::vector<double> us;
  for (int i = 0; i < timing.samples; ++i) us.push_back(sample_us() / timing.calls);
  return us;
}

}  // namespace tilewright::cli
