#include "device/graph.h"

namespace tilewright::device {

using abi::CUresult;

namespace {

using RecordedGraph = Owned<abi::CUgraph, &abi::DriverFunctions::graph_destroy>;

/// Ends the capture, whether `record` succeeded or not; null if the capture broke.
RecordedGraph end_capture(const Stream& stream, CUresult& result) {
  abi::CUgraph graph = nullptr;
  result = stream.device().cu().stream_end_capture(stream.handle(), &graph);
  return {stream.device(), graph};
}

RecordedGraph record_graph(const Stream& stream, const std::function<void()>& record) {
  const Device& device = stream.device();
  // Thread-local: another thread that allocates meanwhile must not break this capture.
  device.check(
      device.cu().stream_begin_capture(stream.handle(), abi::CUstreamCaptureMode::kThreadLocal),
      "cuStreamBeginCapture");
  CUresult result = CUresult::kSuccess;
  try {
    record();
  } catch (...) {
    end_capture(stream, result);  // the exception says more than this result
    throw;
  }
  RecordedGraph graph = end_capture(stream, result);
  device.check(result, "cuStreamEndCapture");
  return graph;
}

}  // namespace

Graph Graph::capture(const Stream& stream, const std::function<void()>& record) {
  const Device& device = stream.device();
  const auto current = device.make_current();
  const RecordedGraph graph = record_graph(stream, record);
  abi::CUgraphExec executable = nullptr;
  device.check(device.cu().graph_instantiate(&executable, graph.get(), 0),
               "cuGraphInstantiateWithFlags");
  return Graph(Executable(device, executable));
}

void Graph::launch(const Stream& stream) const {
  const auto current = stream.device().make_current();
  stream.device().check(stream.device().cu().graph_launch(executable_.get(), stream.handle()),
                        "cuGraphLaunch");
}

}  // namespace tilewright::device
