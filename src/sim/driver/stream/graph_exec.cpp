// Graphs that are ready to be launched.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/stream.h"
#include "sim/driver/stream/graph_handles.h"

#include <algorithm>

namespace tilewright::sim::abi {

namespace {

constexpr std::uint64_t kLaunchFlags = 0xf;

CUgraphExec instantiate(CUgraph handle, std::uint64_t flags) {
  Context& context = usable_context();
  expect((flags & ~kLaunchFlags) == 0);
  constexpr auto kDeviceLaunch =
      static_cast<std::uint64_t>(CUgraphInstantiate_flags::kDeviceLaunch);
  expect((flags & kDeviceLaunch) == 0, CUresult::kNotSupported);
  const auto exec = std::make_shared<GraphExec>();
  exec->context = &context;
  exec->graph = find_graph(handle)->clone();
  exec->flags = flags;
  return Driver::get().graph_execs.add(exec);
}

/// Whether both have the same nodes in the same order with the same edges.
bool has_same_shape(const Graph& a, const Graph& b) {
  const auto index_of = [](const Graph& graph, const GraphNode* node) {
    const auto is_it = [node](const auto& other) { return other.get() == node; };
    return std::find_if(graph.nodes.begin(), graph.nodes.end(), is_it) - graph.nodes.begin();
  };
  if (a.nodes.size() != b.nodes.size()) return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const auto& first = a.nodes[i]->after;
    const auto& second = b.nodes[i]->after;
    if (first.size() != second.size()) return false;
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (index_of(a, first[k]) != index_of(b, second[k])) return false;
    }
  }
  return true;
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return call([&] {
    expect(out != nullptr);
    *out = instantiate(graph, flags);
  });
}

CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t log_bytes) {
  return call([&] {
    expect(out != nullptr);
    if (error_node != nullptr) *error_node = nullptr;
    if (log != nullptr && log_bytes > 0) log[0] = '\0';
    *out = instantiate(graph, 0);
  });
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return call([&] {
    expect(out != nullptr && params != nullptr);
    params->err_node_out = nullptr;
    params->result_out = CUgraphInstantiateResult::kError;
    *out = instantiate(graph, params->flags);
    params->result_out = CUgraphInstantiateResult::kSuccess;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return call([&] { Driver::get().graph_execs.take(handle, CUresult::kInvalidValue); });
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, std::uint64_t* out) {
  return call([&] {
    expect(out != nullptr);
    *out = find_exec(handle)->flags;
  });
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
  return call([&] {
    find_exec(handle);
    find_stream(stream);
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return call([&] {
    const std::shared_ptr<GraphExec> exec = find_exec(handle);
    const std::shared_ptr<Stream> stream = find_stream(stream_handle);
    stream->context.is_silently_broken();  // refuses if the fault was reported
    submit(*stream, GraphWork{exec->graph});
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* out) {
  return call([&] {
    expect(out != nullptr);
    const std::shared_ptr<GraphExec> exec = find_exec(handle);
    const std::shared_ptr<Graph> graph = find_graph(graph_handle);
    *out = {};
    const auto give_up = [&](CUgraphExecUpdateResult reason) {
      out->result = reason;
      refuse(CUresult::kGraphExecUpdateFailure);
    };
    if (!has_same_shape(*exec->graph, *graph)) {
      give_up(CUgraphExecUpdateResult::kErrorTopologyChanged);
    }
    const std::shared_ptr<Graph> fresh = graph->clone();
    for (std::size_t i = 0; i < fresh->nodes.size(); ++i) {
      if (fresh->nodes[i]->work.index() == exec->graph->nodes[i]->work.index()) continue;
      out->error_node = handle_of(*graph->nodes[i]);
      give_up(CUgraphExecUpdateResult::kErrorNodeTypeChanged);
    }
    for (std::size_t i = 0; i < fresh->nodes.size(); ++i) {
      exec->graph->nodes[i]->work = std::move(fresh->nodes[i]->work);
    }
  });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned is_enabled) {
  return call([&] {
    GraphNode& instance = find_exec(exec)->find(*find_node(node));
    const CUgraphNodeType type = type_of(instance.work);
    expect(type == CUgraphNodeType::kKernel || type == CUgraphNodeType::kMemcpy ||
           type == CUgraphNodeType::kMemset);
    instance.is_enabled = is_enabled != 0;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* out) {
  return call([&] {
    expect(out != nullptr);
    *out = find_exec(exec)->find(*find_node(node)).is_enabled ? 1 : 0;
  });
}

}  // namespace tilewright::sim::abi
