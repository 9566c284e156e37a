// Graphs: nodes of work and what has to come before them.
#pragma once

#include "sim/driver/objects/work.h"

namespace tilewright::sim {

struct GraphNode {
  Work work;
  Graph* graph = nullptr;
  std::vector<GraphNode*> after;  ///< in this graph; no duplicates
  bool is_enabled = true;
  std::uint64_t origin_id = 0;  ///< equal in clones and instances
};

struct Graph {
  ~Graph();
  std::vector<std::shared_ptr<GraphNode>> nodes;  ///< in the order of creation
  std::vector<std::shared_ptr<UserObject>> user_objects;

  /// Errors   Failure unless all of `after` are nodes of this graph
  GraphNode& add(Work work, std::vector<GraphNode*> after);
  void remove(GraphNode& node);
  /// Errors   Failure: CUDA_ERROR_INVALID_VALUE if there is a cycle
  std::vector<GraphNode*> in_order() const;
  std::shared_ptr<Graph> clone() const;
};

/// A graph that is ready to be launched.
struct GraphExec {
  Context* context = nullptr;
  std::shared_ptr<Graph> graph;  ///< a clone
  std::uint64_t flags = 0;

  /// The clone of the node. Errors   Failure: CUDA_ERROR_INVALID_VALUE
  GraphNode& find(const GraphNode& original) const;
};

/// Calls a function when its last reference goes.
struct UserObject {
  abi::CUhostFn destroy = nullptr;
  void* data = nullptr;
  std::atomic<long> num_references = 0;
};

void release_references(UserObject& object, long count);

abi::CUgraphNodeType type_of(const Work& work) noexcept;

/// Runs all nodes of a graph.
void run_graph(Context& context, const Graph& graph);

/// The work of a kernel launch with everything checked that the driver checks.
Work make_kernel_work(const abi::CUlaunchConfig& config, abi::CUfunction function, void** arguments,
                      void** extra);
Work make_kernel_work(const abi::CUDA_KERNEL_NODE_PARAMS& params);
Work make_copy_work(const abi::CUDA_MEMCPY3D& copy);
Work make_memset_work(const abi::CUDA_MEMSET_NODE_PARAMS& params);
Work make_host_work(const abi::CUDA_HOST_NODE_PARAMS& params);

}  // namespace tilewright::sim
