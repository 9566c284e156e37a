#include "device/graph.h"

#include "base/error.h"

namespace tilewright::device {

using abi::CUresult;

/// Ends the capture, whether `record` succeeded or not; null if the capture broke.
Graph::Recorded Graph::end_capture(const Stream& stream, CUresult& result) {
  abi::CUgraph graph = nullptr;
  result = stream.device().cu().stream_end_capture(stream.handle(), &graph);
  return {stream.device(), graph};
}

Graph::Recorded Graph::record_graph(const Stream& stream, const std::function<void()>& record) {
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
  Recorded graph = end_capture(stream, result);
  device.check(result, "cuStreamEndCapture");
  return graph;
}

Graph Graph::capture(const Stream& stream, const std::function<void()>& record) {
  const Device& device = stream.device();
  const auto current = device.make_current();
  Recorded graph = record_graph(stream, record);
  abi::CUgraphExec executable = nullptr;
  device.check(device.cu().graph_instantiate(&executable, graph.get(), 0),
               "cuGraphInstantiateWithFlags");
  return {std::move(graph), Executable(device, executable)};
}

void Graph::launch(const Stream& stream) const {
  const auto current = stream.device().make_current();
  stream.device().check(stream.device().cu().graph_launch(executable_.get(), stream.handle()),
                        "cuGraphLaunch");
}

namespace {

std::string kernel_name(const Device& device, abi::CUgraphNode node) {
  const abi::DriverFunctions& cu = device.cu();
  abi::CUDA_KERNEL_NODE_PARAMS params = {};
  device.check(cu.graph_kernel_node_get_params(node, &params), "cuGraphKernelNodeGetParams");
  const char* name = nullptr;
  if (params.func != nullptr)
    device.check(cu.func_get_name(&name, params.func), "cuFuncGetName");
  else
    device.check(cu.kernel_get_name(&name, params.kern), "cuKernelGetName");
  return name;
}

std::string node_name(const Device& device, abi::CUgraphNode node) {
  abi::CUgraphNodeType type = {};
  device.check(device.cu().graph_node_get_type(node, &type), "cuGraphNodeGetType");
  switch (type) {
    case abi::CUgraphNodeType::kKernel:
      return kernel_name(device, node);
    case abi::CUgraphNodeType::kMemcpy:
      return "memcpy";
    case abi::CUgraphNodeType::kMemset:
      return "memset";
    case abi::CUgraphNodeType::kHost:
      return "host";
  }
  return "other";
}

}  // namespace

std::vector<std::string> Graph::nodes() const {
  const Device& device = recorded_.device();
  const abi::DriverFunctions& cu = device.cu();
  require(cu.graph_get_nodes != nullptr && cu.graph_node_get_type != nullptr &&
              cu.graph_kernel_node_get_params != nullptr && cu.func_get_name != nullptr &&
              cu.kernel_get_name != nullptr,
          ErrorKind::kUnsupported,
          "graph: the driver does not tell what was recorded; that takes CUDA 12.3");
  const auto current = device.make_current();
  std::size_t count = 0;
  device.check(cu.graph_get_nodes(recorded_.get(), nullptr, &count), "cuGraphGetNodes");
  std::vector<abi::CUgraphNode> nodes(count);
  if (count > 0)
    device.check(cu.graph_get_nodes(recorded_.get(), nodes.data(), &count), "cuGraphGetNodes");
  std::vector<std::string> names;
  for (const abi::CUgraphNode node : nodes) names.push_back(node_name(device, node));
  return names;
}

}  // namespace tilewright::device
