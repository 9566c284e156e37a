// Building and reading graphs.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/stream/graph_handles.h"

#include <algorithm>
#include <cstdio>

namespace tilewright::sim::abi {

namespace {

void add(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, Work work) {
  expect(out != nullptr);
  *out = handle_of(find_graph(graph)->add(std::move(work), find_nodes(after, count)));
}

/// Gives a list as the driver does: the number alone if there is no array; else as many as fit, the
/// rest of the array null.
void give_nodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  expect(count != nullptr);
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? handle_of(*nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
    return;
  }
  *count = nodes.size();
}

std::vector<GraphNode*> dependents_of(const GraphNode& node) {
  std::vector<GraphNode*> found;
  for (const auto& other : node.graph->nodes) {
    const auto& after = other->after;
    if (std::find(after.begin(), after.end(), &node) != after.end()) found.push_back(other.get());
  }
  return found;
}

void give_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                size_t* count) {
  expect(count != nullptr && (from == nullptr) == (to == nullptr));
  const std::shared_ptr<Graph> graph = find_graph(handle);
  size_t num_edges = 0;
  for (const auto& node : graph->nodes) {
    for (const GraphNode* other : node->after) {
      if (from != nullptr && num_edges < *count) {
        from[num_edges] = handle_of(*other);
        to[num_edges] = handle_of(*node);
        if (data != nullptr) data[num_edges] = {};
      }
      ++num_edges;
    }
  }
  *count = from != nullptr ? std::min(*count, num_edges) : num_edges;
}

void add_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  const std::shared_ptr<Graph> graph = find_graph(handle);
  const std::vector<GraphNode*> firsts = find_nodes(from, count);
  const std::vector<GraphNode*> seconds = find_nodes(to, count);
  for (size_t i = 0; i < count; ++i) {
    expect(firsts[i]->graph == graph.get() && seconds[i]->graph == graph.get());
    auto& after = seconds[i]->after;
    expect(firsts[i] != seconds[i] &&
           std::find(after.begin(), after.end(), firsts[i]) == after.end());
    after.push_back(firsts[i]);
  }
}

void remove_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  find_graph(handle);
  const std::vector<GraphNode*> firsts = find_nodes(from, count);
  const std::vector<GraphNode*> seconds = find_nodes(to, count);
  for (size_t i = 0; i < count; ++i) expect(std::erase(seconds[i]->after, firsts[i]) == 1);
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
  return call([&] {
    expect(out != nullptr && flags == 0);
    *out = Driver::get().graphs.add(std::make_shared<Graph>());
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return call([&] { Driver::get().graphs.take(graph, CUresult::kInvalidValue); });
}

CUresult cuGraphClone(CUgraph* out, CUgraph graph) {
  return call([&] {
    expect(out != nullptr);
    *out = Driver::get().graphs.add(find_graph(graph)->clone());
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  return call([&] {
    expect(out != nullptr);
    const GraphNode& node = *find_node(original);
    for (const auto& other : find_graph(clone)->nodes) {
      if (other->origin_id != node.origin_id) continue;
      *out = handle_of(*other);
      return;
    }
    refuse(CUresult::kInvalidValue);
  });
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  return call([&] {
    const std::shared_ptr<GraphNode> node = find_node(handle);
    node->graph->remove(*node);
    Driver::get().graph_nodes.take(handle);
  });
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return call([&] {
    expect(params != nullptr);
    add(out, graph, after, count, make_kernel_work(*params));
  });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  return call([&] {
    expect(params != nullptr);
    Work work = make_copy_work(*params);
    validate(std::get<CopyWork>(work));
    add(out, graph, after, count, std::move(work));
  });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return call([&] {
    expect(params != nullptr);
    Work work = make_memset_work(*params);
    validate(std::get<MemsetWork>(work));
    add(out, graph, after, count, std::move(work));
  });
}

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return call([&] {
    expect(params != nullptr);
    add(out, graph, after, count, make_host_work(*params));
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                             size_t count) {
  return call([&] { add(out, graph, after, count, EmptyWork{}); });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                   size_t count, CUevent event) {
  return call(
      [&] { add(out, graph, after, count, EventRecordWork{Driver::get().events.find(event)}); });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                 size_t count, CUevent event) {
  return call(
      [&] { add(out, graph, after, count, EventWaitWork{Driver::get().events.find(event)}); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  size_t count, CUgraph child) {
  return call([&] { add(out, graph, after, count, GraphWork{find_graph(child)->clone()}); });
}

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return call([&] {
    expect(params != nullptr);
    add(out, graph, after, count, make_work(*params));
  });
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                        CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(out, graph, after, nullptr, count, params);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  return call([&] { add_edges(graph, from, to, count); });
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return call([&] { add_edges(graph, from, to, count); });
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return call([&] { remove_edges(graph, from, to, count); });
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
  return call([&] { remove_edges(graph, from, to, count); });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
  return call([&] {
    std::vector<GraphNode*> nodes;
    for (const auto& node : find_graph(graph)->nodes) nodes.push_back(node.get());
    give_nodes(nodes, out, count);
  });
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
  return call([&] {
    std::vector<GraphNode*> nodes;
    for (const auto& node : find_graph(graph)->nodes) {
      if (node->after.empty()) nodes.push_back(node.get());
    }
    give_nodes(nodes, out, count);
  });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return call([&] { give_edges(graph, from, to, nullptr, count); });
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  return call([&] { give_edges(graph, from, to, data, count); });
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data,
                                       size_t* count) {
  return call([&] {
    give_nodes(find_node(node)->after, out, count);
    if (out != nullptr && data != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  });
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, out, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data,
                                         size_t* count) {
  return call([&] {
    give_nodes(dependents_of(*find_node(node)), out, count);
    if (out != nullptr && data != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  });
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, out, nullptr, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* out) {
  return call([&] {
    expect(out != nullptr);
    *out = type_of(find_node(node)->work);
  });
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned) {
  return call([&] {
    expect(path != nullptr);
    const std::shared_ptr<Graph> found = find_graph(graph);
    std::FILE* const file = std::fopen(path, "w");
    expect(file != nullptr, CUresult::kOperatingSystem);
    std::fprintf(file, "digraph graph_ {\n");
    for (const auto& node : found->nodes) {
      const auto id = static_cast<unsigned long long>(node->origin_id);
      const auto* const kernel = std::get_if<KernelWork>(&node->work);
      std::fprintf(
          file, "  n%llu [label=\"%s\"];\n", id,
          kernel != nullptr ? kernel->launch.kernel.c_str() : name_of(type_of(node->work)));
      for (const GraphNode* other : node->after) {
        std::fprintf(file, "  n%llu -> n%llu;\n", static_cast<unsigned long long>(other->origin_id),
                     id);
      }
    }
    std::fprintf(file, "}\n");
    expect(std::fclose(file) == 0, CUresult::kOperatingSystem);
  });
}

// User objects: memory that lives as long as the graphs that hold on to it.

CUresult cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned count,
                            unsigned flags) {
  return call([&] {
    expect(out != nullptr && destroy != nullptr && count > 0 &&
           flags == static_cast<unsigned>(CUuserObject_flags::kNoDestructorSync));
    const auto object = std::make_shared<UserObject>();
    object->destroy = destroy;
    object->data = data;
    object->num_references = static_cast<long>(count);
    *out = Driver::get().user_objects.add(object);
  });
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned count) {
  return call([&] {
    expect(count > 0);
    Driver::get().user_objects.find(handle, CUresult::kInvalidValue)->num_references +=
        static_cast<long>(count);
  });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned count) {
  return call([&] {
    const auto object = Driver::get().user_objects.find(handle, CUresult::kInvalidValue);
    expect(count > 0 && object->num_references >= static_cast<long>(count));
    release_references(*object, static_cast<long>(count));
    if (object->num_references == 0) Driver::get().user_objects.take(handle);
  });
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count,
                                 unsigned flags) {
  return call([&] {
    const auto object = Driver::get().user_objects.find(handle, CUresult::kInvalidValue);
    const std::shared_ptr<Graph> owner = find_graph(graph);
    constexpr auto kMove = static_cast<unsigned>(CUuserObjectRetain_flags::kMove);
    expect(count > 0 && (flags & ~kMove) == 0);
    if (flags != kMove) object->num_references += static_cast<long>(count);
    for (unsigned i = 0; i < count; ++i) owner->user_objects.push_back(object);
  });
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count) {
  return call([&] {
    const auto object = Driver::get().user_objects.find(handle, CUresult::kInvalidValue);
    auto& held = find_graph(graph)->user_objects;
    expect(count > 0 && std::count(held.begin(), held.end(), object) >= static_cast<long>(count));
    for (unsigned i = 0; i < count; ++i) held.erase(std::find(held.begin(), held.end(), object));
    release_references(*object, static_cast<long>(count));
  });
}

}  // namespace tilewright::sim::abi
