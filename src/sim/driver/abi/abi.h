// The CUDA driver's binary interface in our own declarations, so that the simulator is built
// without the toolkit. Type names are those of cuda.h, members are its members in snake_case;
// tests/sim/driver/abi/abi_witness_test.cpp compares every value, size, offset and signature with
// it.
#pragma once

#include "sim/driver/abi/abi_enums.h"
#include "sim/driver/abi/results.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::sim::abi {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUlinkState = struct CUlinkState_st*;
using CUuserObject = struct CUuserObject_st*;
using CUarray = struct CUarray_st*;

#define TILEWRIGHT_SIM_ENUMERATOR(ours, theirs, value, ...) ours = value,
#define TILEWRIGHT_SIM_ENUM(name, table) enum class name : int { table(TILEWRIGHT_SIM_ENUMERATOR) };
TILEWRIGHT_SIM_ENUMS(TILEWRIGHT_SIM_ENUM)
TILEWRIGHT_SIM_ENUM(CUresult, TILEWRIGHT_SIM_RESULTS)
#undef TILEWRIGHT_SIM_ENUM
#undef TILEWRIGHT_SIM_ENUMERATOR

using CUkernelNodeAttrID = CUlaunchAttributeID;
using CUstreamAttrID = CUlaunchAttributeID;

using CUhostFn = void (*)(void* data);
using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* data);
using CUoccupancyB2DSize = std::size_t (*)(int block_threads);

/// Streams that need no creation.
inline constexpr std::uintptr_t kLegacyStream = 1;
inline constexpr std::uintptr_t kPerThreadStream = 2;

/// Keys of the `extra` argument of launches.
inline constexpr std::uintptr_t kLaunchParamEnd = 0;
inline constexpr std::uintptr_t kLaunchParamBufferPointer = 1;
inline constexpr std::uintptr_t kLaunchParamBufferSize = 2;

inline constexpr unsigned kMemHostAllocPortable = 1;
inline constexpr unsigned kMemHostAllocDeviceMap = 2;
inline constexpr unsigned kMemHostAllocWriteCombined = 4;
inline constexpr unsigned kMemHostRegisterFlags = 0xf;
inline constexpr unsigned kEventRecordExternal = 1;
inline constexpr unsigned kPeerAccessFlags = 0;

struct CUuuid {
  char bytes[16];
};

struct CUdevprop {
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  int shared_mem_per_block;
  int total_constant_memory;
  int simd_width;
  int mem_pitch;
  int regs_per_block;
  int clock_rate;
  int texture_align;
};

struct CUctxCreateParams {
  void* exec_affinity_params;
  int num_exec_affinity_params;
  void* cig_params;
};

struct CUDA_MEMCPY2D {
  std::size_t src_x_in_bytes, src_y;
  CUmemorytype src_memory_type;
  const void* src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  std::size_t src_pitch;
  std::size_t dst_x_in_bytes, dst_y;
  CUmemorytype dst_memory_type;
  void* dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  std::size_t dst_pitch;
  std::size_t width_in_bytes, height;
};

struct CUDA_MEMCPY3D {
  std::size_t src_x_in_bytes, src_y, src_z, src_lod;
  CUmemorytype src_memory_type;
  const void* src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  void* reserved0;
  std::size_t src_pitch, src_height;
  std::size_t dst_x_in_bytes, dst_y, dst_z, dst_lod;
  CUmemorytype dst_memory_type;
  void* dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  void* reserved1;
  std::size_t dst_pitch, dst_height;
  std::size_t width_in_bytes, height, depth;
};

struct CUDA_MEMCPY3D_PEER {
  std::size_t src_x_in_bytes, src_y, src_z, src_lod;
  CUmemorytype src_memory_type;
  const void* src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  CUcontext src_context;
  std::size_t src_pitch, src_height;
  std::size_t dst_x_in_bytes, dst_y, dst_z, dst_lod;
  CUmemorytype dst_memory_type;
  void* dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  CUcontext dst_context;
  std::size_t dst_pitch, dst_height;
  std::size_t width_in_bytes, height, depth;
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

struct CUmemPoolProps {
  CUmemAllocationType alloc_type;
  CUmemAllocationHandleType handle_types;
  CUmemLocation location;
  void* win32_security_attributes;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};

struct CUlaunchDim {
  unsigned x, y, z;
};

struct CUlaunchEvent {
  CUevent event;
  int flags;
  int trigger_at_block_start;  ///< programmaticEvent only
};

union CUlaunchAttributeValue {
  char pad[64];
  int cooperative;
  CUlaunchDim cluster_dim;
  int programmatic_stream_serialization_allowed;
  CUlaunchEvent programmatic_event;
  CUlaunchEvent launch_completion_event;
  int priority;
  CUlaunchDim preferred_cluster_dim;
  unsigned shared_mem_carveout;
};
using CUkernelNodeAttrValue = CUlaunchAttributeValue;
using CUstreamAttrValue = CUlaunchAttributeValue;

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned grid_dim_x, grid_dim_y, grid_dim_z;
  unsigned block_dim_x, block_dim_y, block_dim_z;
  unsigned shared_mem_bytes;
  CUstream stream;
  CUlaunchAttribute* attrs;
  unsigned num_attrs;
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned grid_dim_x, grid_dim_y, grid_dim_z;
  unsigned block_dim_x, block_dim_y, block_dim_z;
  unsigned shared_mem_bytes;
  void** kernel_params;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};

struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  std::size_t pitch;
  unsigned value;
  unsigned element_size;
  std::size_t width, height;
};

struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void* user_data;
};

/// The memory copy of CUgraphNodeParams.
struct CUDA_MEMCPY_NODE_PARAMS {
  int flags;
  int reserved;
  CUcontext copy_ctx;
  CUDA_MEMCPY3D copy_params;
};

struct CUgraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY_NODE_PARAMS memcpy;
    CUDA_MEMSET_NODE_PARAMS memset;
    CUDA_HOST_NODE_PARAMS host;
    CUgraph graph;
    CUevent event_wait;
    CUevent event_record;
  };
  long long reserved2;
};

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type;
  unsigned char reserved[5];
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  std::uint64_t flags;
  CUstream upload_stream;
  CUgraphNode err_node_out;
  CUgraphInstantiateResult result_out;
};

struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode error_node;
  CUgraphNode error_from_node;
};

/// What a TMA instruction reads to know a tensor. The driver asks for 64-byte alignment; the type
/// has 128 in the header of CUDA 13.
struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};

}  // namespace tilewright::sim::abi
