// The CUDA runtime's binary interface in our own declarations, so that the library is built without
// the toolkit. Handles are the driver's. Members are those of driver_types.h in snake_case;
// tests/sim/runtime/runtime_witness_test.cpp compares sizes and offsets with it.
#pragma once

#include "sim/driver/abi/abi.h"
#include "sim/runtime/errors.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::sim::runtime {

using namespace abi;

#define TILEWRIGHT_SIM_ENUMERATOR(ours, theirs, value, text) ours = value,
enum class cudaError : int { TILEWRIGHT_SIM_RUNTIME_ERRORS(TILEWRIGHT_SIM_ENUMERATOR) };
#undef TILEWRIGHT_SIM_ENUMERATOR

/// CUDA 13.0, whose runtime this is.
inline constexpr int kRuntimeVersion = 13000;

enum class cudaMemcpyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kDefault = 4,
};

enum class cudaMemoryType : int { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 };

struct dim3 {
  unsigned x, y, z;
};

struct cudaPitchedPtr {
  void* ptr;
  std::size_t pitch, xsize, ysize;
};

struct cudaExtent {
  std::size_t width, height, depth;
};

struct cudaPos {
  std::size_t x, y, z;
};

struct cudaMemcpy3DParms {
  CUarray src_array;
  cudaPos src_pos;
  cudaPitchedPtr src_ptr;
  CUarray dst_array;
  cudaPos dst_pos;
  cudaPitchedPtr dst_ptr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
  CUarray src_array;
  cudaPos src_pos;
  cudaPitchedPtr src_ptr;
  int src_device;
  CUarray dst_array;
  cudaPos dst_pos;
  cudaPitchedPtr dst_ptr;
  int dst_device;
  cudaExtent extent;
};

struct cudaLaunchConfig {
  dim3 grid_dim, block_dim;
  std::size_t dynamic_smem_bytes;
  CUstream stream;
  CUlaunchAttribute* attrs;
  unsigned num_attrs;
};

struct cudaFuncAttributes {
  std::size_t shared_size_bytes, const_size_bytes, local_size_bytes;
  int max_threads_per_block, num_regs, ptx_version, binary_version, cache_mode_ca;
  int max_dynamic_shared_size_bytes, preferred_shmem_carveout, cluster_dim_must_be_set;
  int required_cluster_width, required_cluster_height, required_cluster_depth;
  int cluster_scheduling_policy_preference, non_portable_cluster_size_allowed;
  int reserved[16];
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

struct cudaChannelFormatDesc {
  int x, y, z, w, kind;
};

struct cudaKernelNodeParams {
  void* func;
  dim3 grid_dim, block_dim;
  unsigned shared_mem_bytes;
  void** kernel_params;
  void** extra;
};

struct cudaMemcpyNodeParams {
  int flags;
  int reserved[3];
  cudaMemcpy3DParms copy_params;
};

/// The kinds of nodes that exist here; all others are refused by their type.
struct cudaGraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParams kernel;
    cudaMemcpyNodeParams memcpy;
  };
  long long reserved2;
};

/// As CUDA 13 has it: clock rates and compute mode are gone.
struct cudaDeviceProp {
  char name[256];
  CUuuid uuid;
  char luid[8];
  unsigned luid_device_node_mask;
  std::size_t total_global_mem, shared_mem_per_block;
  int regs_per_block, warp_size;
  std::size_t mem_pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3];
  std::size_t total_const_mem;
  int major, minor;
  std::size_t texture_alignment, texture_pitch_alignment;
  int multi_processor_count, integrated, can_map_host_memory;
  int max_texture_1d, max_texture_1d_mipmap, max_texture_2d[2], max_texture_2d_mipmap[2];
  int max_texture_2d_linear[3], max_texture_2d_gather[2], max_texture_3d[3], max_texture_3d_alt[3];
  int max_texture_cubemap, max_texture_1d_layered[2], max_texture_2d_layered[3];
  int max_texture_cubemap_layered[2];
  int max_surface_1d, max_surface_2d[2], max_surface_3d[3], max_surface_1d_layered[2];
  int max_surface_2d_layered[3], max_surface_cubemap, max_surface_cubemap_layered[2];
  std::size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus_id, pci_device_id, pci_domain_id, tcc_driver;
  int async_engine_count, unified_addressing, memory_bus_width, l2_cache_size;
  int persisting_l2_cache_max_size, max_threads_per_multi_processor, stream_priorities_supported;
  int global_l1_cache_supported, local_l1_cache_supported;
  std::size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor, managed_memory, is_multi_gpu_board, multi_gpu_board_group_id;
  int host_native_atomic_supported, pageable_memory_access, concurrent_managed_access;
  int compute_preemption_supported, can_use_host_pointer_for_registered_mem, cooperative_launch;
  std::size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables, direct_managed_mem_access_from_host;
  int max_blocks_per_multi_processor, access_policy_max_window_size;
  std::size_t reserved_shared_mem_per_block;
  int host_register_supported, sparse_cuda_array_supported, host_register_read_only_supported;
  int timeline_semaphore_interop_supported, memory_pools_supported, gpu_direct_rdma_supported;
  unsigned gpu_direct_rdma_flush_writes_options;
  int gpu_direct_rdma_writes_ordering;
  unsigned memory_pool_supported_handle_types;
  int deferred_mapping_cuda_array_supported, ipc_event_supported, cluster_launch;
  int unified_function_pointers, device_numa_config, device_numa_id, mps_enabled, host_numa_id;
  unsigned gpu_pci_device_id, gpu_pci_subsystem_id;
  int host_numa_multinode_ipc_supported;
  int reserved[56];
};

}  // namespace tilewright::sim::runtime
