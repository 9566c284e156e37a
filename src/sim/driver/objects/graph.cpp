#include "sim/driver/objects/graph.h"

#include "sim/driver/objects/module.h"
#include "sim/driver/objects/stream.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tilewright::sim {

Graph::~Graph() {
  for (const auto& node : nodes) {
    Driver::get().graph_nodes.take_if([&](const GraphNode& other) { return &other == node.get(); });
  }
  for (const auto& object : user_objects) release_references(*object, 1);
}

GraphNode& Graph::add(Work work, std::vector<GraphNode*> after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    expect(after[i] != nullptr && after[i]->graph == this);
    expect(std::find(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(i), after[i]) ==
           after.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const auto node = std::make_shared<GraphNode>();
  node->work = std::move(work);
  node->graph = this;
  node->after = std::move(after);
  node->origin_id = Driver::get().next_id();
  nodes.push_back(node);
  Driver::get().graph_nodes.add(node);
  return *node;
}

void Graph::remove(GraphNode& node) {
  for (const auto& other : nodes) std::erase(other->after, &node);
  std::erase_if(nodes, [&](const auto& other) { return other.get() == &node; });
}

std::vector<GraphNode*> Graph::in_order() const {
  std::vector<GraphNode*> order;
  std::unordered_map<const GraphNode*, bool> is_placed;
  while (order.size() < nodes.size()) {
    const std::size_t num_before = order.size();
    for (const auto& node : nodes) {  // in one pass if nodes were made after those they depend on
      if (is_placed[node.get()]) continue;
      const bool is_ready = std::all_of(node->after.begin(), node->after.end(),
                                        [&](const GraphNode* other) { return is_placed[other]; });
      if (!is_ready) continue;
      is_placed[node.get()] = true;
      order.push_back(node.get());
    }
    expect(order.size() > num_before);  // else there is a cycle
  }
  return order;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> clones;
  for (const GraphNode* node : in_order()) {
    std::vector<GraphNode*> after;
    for (const GraphNode* other : node->after) after.push_back(clones.at(other));
    Work work = node->work;
    if (auto* const child = std::get_if<GraphWork>(&work)) child->graph = child->graph->clone();
    GraphNode& made = copy->add(std::move(work), std::move(after));
    made.is_enabled = node->is_enabled;
    made.origin_id = node->origin_id;
    clones[node] = &made;
  }
  for (const auto& object : user_objects) {
    ++object->num_references;
    copy->user_objects.push_back(object);
  }
  return copy;
}

GraphNode& GraphExec::find(const GraphNode& original) const {
  for (const auto& node : graph->nodes) {
    if (node->origin_id == original.origin_id) return *node;
  }
  refuse(CUresult::kInvalidValue);
}

void release_references(UserObject& object, long count) {
  if (object.num_references.fetch_sub(count) != count) return;
  object.destroy(object.data);
}

abi::CUgraphNodeType type_of(const Work& work) noexcept {
  using NodeType = abi::CUgraphNodeType;
  constexpr NodeType kTypes[] = {NodeType::kKernel,    NodeType::kMemcpy, NodeType::kMemset,
                                 NodeType::kHost,      NodeType::kEmpty,  NodeType::kEventRecord,
                                 NodeType::kWaitEvent, NodeType::kGraph};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

void run_graph(Context& context, const Graph& graph) {
  for (const GraphNode* node : graph.in_order()) {
    if (!node->is_enabled) continue;
    if (const auto* const kernel = std::get_if<KernelWork>(&node->work)) {
      KernelWork launched = *kernel;
      launched.launch.is_in_graph = true;
      run(context, launched);
    } else {
      run(context, node->work);
    }
  }
}

Work make_copy_work(const abi::CUDA_MEMCPY3D& copy) {
  const auto side = [&](abi::CUmemorytype type, const void* host, abi::CUdeviceptr device,
                        std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
                        std::size_t height) -> CopyWork::Side {
    expect(type != abi::CUmemorytype::kArray, CUresult::kNotSupported);
    const bool is_host = type == abi::CUmemorytype::kHost;
    expect(is_host || type == abi::CUmemorytype::kDevice || type == abi::CUmemorytype::kUnified);
    const auto base = is_host ? reinterpret_cast<std::uint64_t>(host) : std::uint64_t{device};
    const std::size_t row = pitch != 0 ? pitch : copy.width_in_bytes;
    const std::size_t rows = height != 0 ? height : copy.height;
    expect(copy.height <= 1 || row >= copy.width_in_bytes);
    return {.address = base + x + y * row + z * row * rows,
            .pitch_bytes = row,
            .plane_bytes = row * rows};
  };
  CopyWork work;
  work.width_bytes = copy.width_in_bytes;
  work.height = copy.height;
  work.depth = copy.depth;
  work.asked = copy;
  work.from = side(copy.src_memory_type, copy.src_host, copy.src_device, copy.src_x_in_bytes,
                   copy.src_y, copy.src_z, copy.src_pitch, copy.src_height);
  work.to = side(copy.dst_memory_type, copy.dst_host, copy.dst_device, copy.dst_x_in_bytes,
                 copy.dst_y, copy.dst_z, copy.dst_pitch, copy.dst_height);
  return work;
}

Work make_memset_work(const abi::CUDA_MEMSET_NODE_PARAMS& params) {
  return MemsetWork{params};
}

Work make_host_work(const abi::CUDA_HOST_NODE_PARAMS& params) {
  expect(params.fn != nullptr);
  return HostWork{.function = params.fn, .data = params.user_data, .callback = {}};
}

}  // namespace tilewright::sim
