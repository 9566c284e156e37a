// What nodes do: read and changed, in graphs and in those that are ready to be launched.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/module.h"
#include "sim/driver/stream/graph_handles.h"

namespace tilewright::sim {

std::vector<GraphNode*> find_nodes(const abi::CUgraphNode* handles, std::size_t count) {
  expect(count == 0 || handles != nullptr);
  std::vector<GraphNode*> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(find_node(handles[i]).get());
  return nodes;
}

Work make_work(const abi::CUgraphNodeParams& params) {
  using NodeType = abi::CUgraphNodeType;
  switch (params.type) {
    case NodeType::kKernel:
      return make_kernel_work(params.kernel);
    case NodeType::kMemcpy:
      return make_copy_work(params.memcpy.copy_params);
    case NodeType::kMemset:
      return make_memset_work(params.memset);
    case NodeType::kHost:
      return make_host_work(params.host);
    case NodeType::kGraph:
      return GraphWork{find_graph(params.graph)->clone()};
    case NodeType::kEmpty:
      return EmptyWork{};
    case NodeType::kWaitEvent:
      return EventWaitWork{Driver::get().events.find(params.event_wait)};
    case NodeType::kEventRecord:
      return EventRecordWork{Driver::get().events.find(params.event_record)};
    default:
      refuse(CUresult::kNotSupported);
  }
}

const char* name_of(abi::CUgraphNodeType type) noexcept {
  constexpr const char* kNames[] = {"kernel", "memcpy", "memset",     "host",
                                    "graph",  "empty",  "wait event", "event record"};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "node";
}

void replace_work(GraphNode& node, Work work) {
  expect(node.work.index() == work.index());
  if (auto* const kernel = std::get_if<KernelWork>(&work)) {
    kernel->attributes = std::get<KernelWork>(node.work).attributes;
  }
  node.work = std::move(work);
}

namespace abi {

namespace {

template <class Kind>
Kind& work_of(GraphNode& node) {
  auto* const work = std::get_if<Kind>(&node.work);
  expect(work != nullptr);
  return *work;
}

template <class Kind>
Kind& work_of(CUgraphNode handle) {
  return work_of<Kind>(*find_node(handle));
}

/// The node of an instance that was made from a node of a graph.
GraphNode& instance_of(CUgraphExec exec, CUgraphNode node) {
  return find_exec(exec)->find(*find_node(node));
}

template <class Params>
const Params& required(const Params* params) {
  expect(params != nullptr);
  return *params;
}

}  // namespace

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* out) {
  return call([&] {
    expect(out != nullptr);
    KernelWork& work = work_of<KernelWork>(handle);
    const Launch& launch = work.launch;
    work.param_pointers.clear();
    for (const ParamInfo& param : work.function->info.params) {
      work.param_pointers.push_back(work.launch.params.data() + param.offset_bytes);
    }
    *out = {};
    out->func = Registry<CUfunction, FunctionObject>::handle_of(work.function.get());
    out->grid_dim_x = launch.grid.x;
    out->grid_dim_y = launch.grid.y;
    out->grid_dim_z = launch.grid.z;
    out->block_dim_x = launch.block.x;
    out->block_dim_y = launch.block.y;
    out->block_dim_z = launch.block.z;
    out->shared_mem_bytes = launch.dynamic_shared_bytes;
    out->kernel_params = work.param_pointers.data();
    out->ctx = Registry<CUcontext, Context>::handle_of(work.context);
  });
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* params) {
  return call([&] { replace_work(*find_node(handle), make_kernel_work(required(params))); });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return call([&] { replace_work(instance_of(exec, node), make_kernel_work(required(params))); });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* out) {
  return call([&] {
    expect(out != nullptr);
    const KernelWork& work = work_of<KernelWork>(handle);
    const auto found = work.attributes.find(id);
    *out = found == work.attributes.end() ? CUkernelNodeAttrValue{} : found->second;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  return call([&] {
    KernelWork& work = work_of<KernelWork>(handle);
    const CUkernelNodeAttrValue& given = required(value);
    work.attributes[id] = given;
    if (id == CUkernelNodeAttrID::kCooperative) work.launch.is_cooperative = given.cooperative != 0;
    if (id != CUkernelNodeAttrID::kClusterDimension) return;
    const CUlaunchDim& dim = given.cluster_dim;
    expect(dim.x > 0 && dim.y > 0 && dim.z > 0);
    work.launch.cluster = {dim.x, dim.y, dim.z};
  });
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  return call([&] {
    const KernelWork& source = work_of<KernelWork>(from);
    KernelWork& work = work_of<KernelWork>(to);
    work.attributes = source.attributes;
    work.launch.cluster = source.launch.cluster;
    work.launch.is_cooperative = source.launch.is_cooperative;
  });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* out) {
  return call([&] {
    expect(out != nullptr);
    *out = work_of<CopyWork>(handle).asked;
  });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* params) {
  return call([&] { replace_work(*find_node(handle), make_copy_work(required(params))); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
  return call([&] { replace_work(instance_of(exec, node), make_copy_work(required(params))); });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* out) {
  return call([&] {
    expect(out != nullptr);
    *out = work_of<MemsetWork>(handle).params;
  });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* params) {
  return call([&] { replace_work(*find_node(handle), make_memset_work(required(params))); });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return call([&] { replace_work(instance_of(exec, node), make_memset_work(required(params))); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* out) {
  return call([&] {
    expect(out != nullptr);
    const HostWork& work = work_of<HostWork>(handle);
    *out = {.fn = work.function, .user_data = work.data};
  });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* params) {
  return call([&] { replace_work(*find_node(handle), make_host_work(required(params))); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  return call([&] { replace_work(instance_of(exec, node), make_host_work(required(params))); });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* out) {
  return call([&] {
    expect(out != nullptr);
    *out = Registry<CUevent, Event>::handle_of(work_of<EventRecordWork>(handle).event.get());
  });
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode handle, CUevent event) {
  return call(
      [&] { replace_work(*find_node(handle), EventRecordWork{Driver::get().events.find(event)}); });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return call([&] {
    replace_work(instance_of(exec, node), EventRecordWork{Driver::get().events.find(event)});
  });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* out) {
  return call([&] {
    expect(out != nullptr);
    *out = Registry<CUevent, Event>::handle_of(work_of<EventWaitWork>(handle).event.get());
  });
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode handle, CUevent event) {
  return call(
      [&] { replace_work(*find_node(handle), EventWaitWork{Driver::get().events.find(event)}); });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return call([&] {
    replace_work(instance_of(exec, node), EventWaitWork{Driver::get().events.find(event)});
  });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* out) {
  return call([&] {
    expect(out != nullptr);
    *out = Driver::get().graphs.add(work_of<GraphWork>(handle).graph);
  });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return call(
      [&] { replace_work(instance_of(exec, node), GraphWork{find_graph(child)->clone()}); });
}

CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* params) {
  return call([&] { replace_work(*find_node(handle), make_work(required(params))); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return call([&] { replace_work(instance_of(exec, node), make_work(required(params))); });
}

}  // namespace abi
}  // namespace tilewright::sim
