// Nodes of graphs whose parameters differ from the driver's: kernels and copies.
#include "sim/runtime/answer.h"
#include "sim/runtime/copy.h"
#include "sim/runtime/registry.h"

#include <cstring>

namespace tilewright::sim::runtime {

namespace {

using Kind = cudaMemcpyKind;
constexpr Kind kDefault = Kind::kDefault;

CUcontext context() {
  CUcontext current = nullptr;
  check(cuCtxGetCurrent(&current));
  return current;
}

CUDA_KERNEL_NODE_PARAMS driver_kernel(const cudaKernelNodeParams& p) {
  return {.func = find_kernel(p.func),
          .grid_dim_x = p.grid_dim.x,
          .grid_dim_y = p.grid_dim.y,
          .grid_dim_z = p.grid_dim.z,
          .block_dim_x = p.block_dim.x,
          .block_dim_y = p.block_dim.y,
          .block_dim_z = p.block_dim.z,
          .shared_mem_bytes = p.shared_mem_bytes,
          .kernel_params = p.kernel_params,
          .extra = p.extra,
          .kern = nullptr,
          .ctx = nullptr};
}

/// The function is the driver's handle, which every call here takes.
cudaKernelNodeParams runtime_kernel(const CUDA_KERNEL_NODE_PARAMS& p) {
  return {.func = p.func,
          .grid_dim = {p.grid_dim_x, p.grid_dim_y, p.grid_dim_z},
          .block_dim = {p.block_dim_x, p.block_dim_y, p.block_dim_z},
          .shared_mem_bytes = p.shared_mem_bytes,
          .kernel_params = p.kernel_params,
          .extra = p.extra};
}

bool is_host(CUmemorytype type) {
  return type == CUmemorytype::kHost;
}

Kind kind_of(const CUDA_MEMCPY3D& c) {
  if (c.src_memory_type == CUmemorytype::kUnified || c.dst_memory_type == CUmemorytype::kUnified) {
    return kDefault;
  }
  if (is_host(c.src_memory_type)) {
    return is_host(c.dst_memory_type) ? Kind::kHostToHost : Kind::kHostToDevice;
  }
  return is_host(c.dst_memory_type) ? Kind::kDeviceToHost : Kind::kDeviceToDevice;
}

cudaMemcpy3DParms runtime_copy(const CUDA_MEMCPY3D& c) {
  cudaMemcpy3DParms p{};
  void* const from = is_host(c.src_memory_type) ? const_cast<void*>(c.src_host)
                                                : reinterpret_cast<void*>(c.src_device);
  void* const to = is_host(c.dst_memory_type) ? c.dst_host : reinterpret_cast<void*>(c.dst_device);
  p.src_pos = {c.src_x_in_bytes, c.src_y, c.src_z};
  p.src_ptr = {from, c.src_pitch, c.width_in_bytes, c.src_height};
  p.dst_pos = {c.dst_x_in_bytes, c.dst_y, c.dst_z};
  p.dst_ptr = {to, c.dst_pitch, c.width_in_bytes, c.dst_height};
  p.extent = {c.width_in_bytes, c.height, c.depth};
  p.kind = kind_of(c);
  return p;
}

void add_copy(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
              const CUDA_MEMCPY3D& copy) {
  check(cuGraphAddMemcpyNode(out, graph, dependencies, count, &copy, context()));
}

/// Any node's parameters; only those that differ are converted.
CUgraphNodeParams driver_node(const cudaGraphNodeParams& p) {
  CUgraphNodeParams node{};
  static_assert(sizeof node == sizeof p);
  std::memcpy(static_cast<void*>(&node), &p, sizeof node);
  if (p.type == CUgraphNodeType::kKernel) {
    node.kernel = driver_kernel(p.kernel);
  } else if (p.type == CUgraphNodeType::kMemcpy) {
    node.memcpy = {p.memcpy.flags, 0, context(), driver_copy(p.memcpy.copy_params)};
  }
  return node;
}

}  // namespace

extern "C" {

cudaError cudaGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, const cudaKernelNodeParams* params) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_KERNEL_NODE_PARAMS converted = driver_kernel(*params);
    check(cuGraphAddKernelNode_v2(out, graph, dependencies, count, &converted));
  });
}

cudaError cudaGraphKernelNodeGetParams(CUgraphNode node, cudaKernelNodeParams* out) {
  return in_context([&] {
    expect(out != nullptr);
    CUDA_KERNEL_NODE_PARAMS params{};
    check(cuGraphKernelNodeGetParams_v2(node, &params));
    *out = runtime_kernel(params);
  });
}

cudaError cudaGraphKernelNodeSetParams(CUgraphNode node, const cudaKernelNodeParams* params) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_KERNEL_NODE_PARAMS converted = driver_kernel(*params);
    check(cuGraphKernelNodeSetParams_v2(node, &converted));
  });
}

cudaError cudaGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const cudaKernelNodeParams* params) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_KERNEL_NODE_PARAMS converted = driver_kernel(*params);
    check(cuGraphExecKernelNodeSetParams_v2(exec, node, &converted));
  });
}

cudaError cudaGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, const cudaMemcpy3DParms* params) {
  return in_context([&] {
    expect(params != nullptr);
    add_copy(out, graph, dependencies, count, driver_copy(*params));
  });
}

cudaError cudaGraphAddMemcpyNode1D(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                   std::size_t count, void* to, const void* from, std::size_t bytes,
                                   Kind kind) {
  return in_context(
      [&] { add_copy(out, graph, dependencies, count, driver_copy(to, from, bytes, kind)); });
}

cudaError cudaGraphAddMemcpyNodeToSymbol(CUgraphNode* out, CUgraph graph,
                                         const CUgraphNode* dependencies, std::size_t count,
                                         const void* symbol, const void* from, std::size_t bytes,
                                         std::size_t offset, Kind kind) {
  return in_context([&] {
    add_copy(out, graph, dependencies, count,
             driver_copy(part_of(symbol, bytes, offset), from, bytes, kind));
  });
}

cudaError cudaGraphAddMemcpyNodeFromSymbol(CUgraphNode* out, CUgraph graph,
                                           const CUgraphNode* dependencies, std::size_t count,
                                           void* to, const void* symbol, std::size_t bytes,
                                           std::size_t offset, Kind kind) {
  return in_context([&] {
    add_copy(out, graph, dependencies, count,
             driver_copy(to, part_of(symbol, bytes, offset), bytes, kind));
  });
}

cudaError cudaGraphMemcpyNodeGetParams(CUgraphNode node, cudaMemcpy3DParms* out) {
  return in_context([&] {
    expect(out != nullptr);
    CUDA_MEMCPY3D copy{};
    check(cuGraphMemcpyNodeGetParams(node, &copy));
    *out = runtime_copy(copy);
  });
}

cudaError cudaGraphMemcpyNodeSetParams(CUgraphNode node, const cudaMemcpy3DParms* params) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_MEMCPY3D copy = driver_copy(*params);
    check(cuGraphMemcpyNodeSetParams(node, &copy));
  });
}

cudaError cudaGraphMemcpyNodeSetParams1D(CUgraphNode node, void* to, const void* from,
                                         std::size_t bytes, Kind kind) {
  return in_context([&] {
    const CUDA_MEMCPY3D copy = driver_copy(to, from, bytes, kind);
    check(cuGraphMemcpyNodeSetParams(node, &copy));
  });
}

cudaError cudaGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const cudaMemcpy3DParms* params) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_MEMCPY3D copy = driver_copy(*params);
    check(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context()));
  });
}

cudaError cudaGraphExecMemcpyNodeSetParams1D(CUgraphExec exec, CUgraphNode node, void* to,
                                             const void* from, std::size_t bytes, Kind kind) {
  return in_context([&] {
    const CUDA_MEMCPY3D copy = driver_copy(to, from, bytes, kind);
    check(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context()));
  });
}

cudaError cudaGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, const CUDA_MEMSET_NODE_PARAMS* params) {
  return in_context(
      [&] { check(cuGraphAddMemsetNode(out, graph, dependencies, count, params, context())); });
}

cudaError cudaGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_MEMSET_NODE_PARAMS* params) {
  return in_context([&] { check(cuGraphExecMemsetNodeSetParams(exec, node, params, context())); });
}

cudaError cudaGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, std::size_t count,
                           cudaGraphNodeParams* params) {
  return in_context([&] {
    expect(params != nullptr);
    CUgraphNodeParams converted = driver_node(*params);
    check(cuGraphAddNode_v2(out, graph, dependencies, edges, count, &converted));
  });
}

cudaError cudaGraphNodeSetParams(CUgraphNode node, cudaGraphNodeParams* params) {
  return in_context([&] {
    expect(params != nullptr);
    CUgraphNodeParams converted = driver_node(*params);
    check(cuGraphNodeSetParams(node, &converted));
  });
}

cudaError cudaGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                     cudaGraphNodeParams* params) {
  return in_context([&] {
    expect(params != nullptr);
    CUgraphNodeParams converted = driver_node(*params);
    check(cuGraphExecNodeSetParams(exec, node, &converted));
  });
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
