// From the handles of graphs and nodes to the objects, and back.
#pragma once

#include "sim/driver/objects/graph.h"

namespace tilewright::sim {

inline std::shared_ptr<Graph> find_graph(abi::CUgraph handle) {
  return Driver::get().graphs.find(handle, CUresult::kInvalidValue);
}

inline std::shared_ptr<GraphNode> find_node(abi::CUgraphNode handle) {
  return Driver::get().graph_nodes.find(handle, CUresult::kInvalidValue);
}

inline std::shared_ptr<GraphExec> find_exec(abi::CUgraphExec handle) {
  return Driver::get().graph_execs.find(handle, CUresult::kInvalidValue);
}

inline abi::CUgraphNode handle_of(const GraphNode& node) {
  return Registry<abi::CUgraphNode, GraphNode>::handle_of(&node);
}

std::vector<GraphNode*> find_nodes(const abi::CUgraphNode* handles, std::size_t count);

/// Of cuGraphAddNode and cuGraphNodeSetParams. Errors   Failure: CUDA_ERROR_NOT_SUPPORTED
Work make_work(const abi::CUgraphNodeParams& params);

const char* name_of(abi::CUgraphNodeType type) noexcept;

/// The other work in place of a node's. Errors   Failure: CUDA_ERROR_INVALID_VALUE if it is of
/// another kind
void replace_work(GraphNode& node, Work work);

}  // namespace tilewright::sim
