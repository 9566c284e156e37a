// cudaGetDeviceProperties: a structure filled from the driver's attributes by a table.
#include "sim/runtime/answer.h"

#include <cstddef>

namespace tilewright::sim::runtime {

namespace {

using Attribute = CUdevice_attribute;
using Prop = cudaDeviceProp;

struct IntRow {
  std::size_t offset_bytes;
  Attribute attribute;
};

/// Members that are an int, or a part of an array of them.
constexpr IntRow kInts[] = {
    {offsetof(Prop, regs_per_block), Attribute::kMaxRegistersPerBlock},
    {offsetof(Prop, warp_size), Attribute::kWarpSize},
    {offsetof(Prop, max_threads_per_block), Attribute::kMaxThreadsPerBlock},
    {offsetof(Prop, max_threads_dim[0]), Attribute::kMaxBlockDimX},
    {offsetof(Prop, max_threads_dim[1]), Attribute::kMaxBlockDimY},
    {offsetof(Prop, max_threads_dim[2]), Attribute::kMaxBlockDimZ},
    {offsetof(Prop, max_grid_size[0]), Attribute::kMaxGridDimX},
    {offsetof(Prop, max_grid_size[1]), Attribute::kMaxGridDimY},
    {offsetof(Prop, max_grid_size[2]), Attribute::kMaxGridDimZ},
    {offsetof(Prop, major), Attribute::kComputeCapabilityMajor},
    {offsetof(Prop, minor), Attribute::kComputeCapabilityMinor},
    {offsetof(Prop, multi_processor_count), Attribute::kMultiprocessorCount},
    {offsetof(Prop, integrated), Attribute::kIntegrated},
    {offsetof(Prop, can_map_host_memory), Attribute::kCanMapHostMemory},
    {offsetof(Prop, max_texture_1d), Attribute::kMaximumTexture1dWidth},
    {offsetof(Prop, max_texture_1d_mipmap), Attribute::kMaximumTexture1dMipmappedWidth},
    {offsetof(Prop, max_texture_2d[0]), Attribute::kMaximumTexture2dWidth},
    {offsetof(Prop, max_texture_2d[1]), Attribute::kMaximumTexture2dHeight},
    {offsetof(Prop, max_texture_2d_mipmap[0]), Attribute::kMaximumTexture2dMipmappedWidth},
    {offsetof(Prop, max_texture_2d_mipmap[1]), Attribute::kMaximumTexture2dMipmappedHeight},
    {offsetof(Prop, max_texture_2d_linear[0]), Attribute::kMaximumTexture2dLinearWidth},
    {offsetof(Prop, max_texture_2d_linear[1]), Attribute::kMaximumTexture2dLinearHeight},
    {offsetof(Prop, max_texture_2d_linear[2]), Attribute::kMaximumTexture2dLinearPitch},
    {offsetof(Prop, max_texture_2d_gather[0]), Attribute::kMaximumTexture2dGatherWidth},
    {offsetof(Prop, max_texture_2d_gather[1]), Attribute::kMaximumTexture2dGatherHeight},
    {offsetof(Prop, max_texture_3d[0]), Attribute::kMaximumTexture3dWidth},
    {offsetof(Prop, max_texture_3d[1]), Attribute::kMaximumTexture3dHeight},
    {offsetof(Prop, max_texture_3d[2]), Attribute::kMaximumTexture3dDepth},
    {offsetof(Prop, max_texture_3d_alt[0]), Attribute::kMaximumTexture3dWidthAlternate},
    {offsetof(Prop, max_texture_3d_alt[1]), Attribute::kMaximumTexture3dHeightAlternate},
    {offsetof(Prop, max_texture_3d_alt[2]), Attribute::kMaximumTexture3dDepthAlternate},
    {offsetof(Prop, max_texture_cubemap), Attribute::kMaximumTexturecubemapWidth},
    {offsetof(Prop, max_texture_1d_layered[0]), Attribute::kMaximumTexture1dLayeredWidth},
    {offsetof(Prop, max_texture_1d_layered[1]), Attribute::kMaximumTexture1dLayeredLayers},
    {offsetof(Prop, max_texture_2d_layered[0]), Attribute::kMaximumTexture2dLayeredWidth},
    {offsetof(Prop, max_texture_2d_layered[1]), Attribute::kMaximumTexture2dLayeredHeight},
    {offsetof(Prop, max_texture_2d_layered[2]), Attribute::kMaximumTexture2dLayeredLayers},
    {offsetof(Prop, max_texture_cubemap_layered[0]), Attribute::kMaximumTexturecubemapLayeredWidth},
    {offsetof(Prop, max_texture_cubemap_layered[1]),
     Attribute::kMaximumTexturecubemapLayeredLayers},
    {offsetof(Prop, max_surface_1d), Attribute::kMaximumSurface1dWidth},
    {offsetof(Prop, max_surface_2d[0]), Attribute::kMaximumSurface2dWidth},
    {offsetof(Prop, max_surface_2d[1]), Attribute::kMaximumSurface2dHeight},
    {offsetof(Prop, max_surface_3d[0]), Attribute::kMaximumSurface3dWidth},
    {offsetof(Prop, max_surface_3d[1]), Attribute::kMaximumSurface3dHeight},
    {offsetof(Prop, max_surface_3d[2]), Attribute::kMaximumSurface3dDepth},
    {offsetof(Prop, max_surface_1d_layered[0]), Attribute::kMaximumSurface1dLayeredWidth},
    {offsetof(Prop, max_surface_1d_layered[1]), Attribute::kMaximumSurface1dLayeredLayers},
    {offsetof(Prop, max_surface_2d_layered[0]), Attribute::kMaximumSurface2dLayeredWidth},
    {offsetof(Prop, max_surface_2d_layered[1]), Attribute::kMaximumSurface2dLayeredHeight},
    {offsetof(Prop, max_surface_2d_layered[2]), Attribute::kMaximumSurface2dLayeredLayers},
    {offsetof(Prop, max_surface_cubemap), Attribute::kMaximumSurfacecubemapWidth},
    {offsetof(Prop, max_surface_cubemap_layered[0]), Attribute::kMaximumSurfacecubemapLayeredWidth},
    {offsetof(Prop, max_surface_cubemap_layered[1]),
     Attribute::kMaximumSurfacecubemapLayeredLayers},
    {offsetof(Prop, concurrent_kernels), Attribute::kConcurrentKernels},
    {offsetof(Prop, ecc_enabled), Attribute::kEccEnabled},
    {offsetof(Prop, pci_bus_id), Attribute::kPciBusId},
    {offsetof(Prop, pci_device_id), Attribute::kPciDeviceId},
    {offsetof(Prop, pci_domain_id), Attribute::kPciDomainId},
    {offsetof(Prop, tcc_driver), Attribute::kTccDriver},
    {offsetof(Prop, async_engine_count), Attribute::kAsyncEngineCount},
    {offsetof(Prop, unified_addressing), Attribute::kUnifiedAddressing},
    {offsetof(Prop, memory_bus_width), Attribute::kGlobalMemoryBusWidth},
    {offsetof(Prop, l2_cache_size), Attribute::kL2CacheSize},
    {offsetof(Prop, persisting_l2_cache_max_size), Attribute::kMaxPersistingL2CacheSize},
    {offsetof(Prop, max_threads_per_multi_processor), Attribute::kMaxThreadsPerMultiprocessor},
    {offsetof(Prop, stream_priorities_supported), Attribute::kStreamPrioritiesSupported},
    {offsetof(Prop, global_l1_cache_supported), Attribute::kGlobalL1CacheSupported},
    {offsetof(Prop, local_l1_cache_supported), Attribute::kLocalL1CacheSupported},
    {offsetof(Prop, regs_per_multiprocessor), Attribute::kMaxRegistersPerMultiprocessor},
    {offsetof(Prop, managed_memory), Attribute::kManagedMemory},
    {offsetof(Prop, is_multi_gpu_board), Attribute::kMultiGpuBoard},
    {offsetof(Prop, multi_gpu_board_group_id), Attribute::kMultiGpuBoardGroupId},
    {offsetof(Prop, host_native_atomic_supported), Attribute::kHostNativeAtomicSupported},
    {offsetof(Prop, pageable_memory_access), Attribute::kPageableMemoryAccess},
    {offsetof(Prop, concurrent_managed_access), Attribute::kConcurrentManagedAccess},
    {offsetof(Prop, compute_preemption_supported), Attribute::kComputePreemptionSupported},
    {offsetof(Prop, can_use_host_pointer_for_registered_mem),
     Attribute::kCanUseHostPointerForRegisteredMem},
    {offsetof(Prop, cooperative_launch), Attribute::kCooperativeLaunch},
    {offsetof(Prop, pageable_memory_access_uses_host_page_tables),
     Attribute::kPageableMemoryAccessUsesHostPageTables},
    {offsetof(Prop, direct_managed_mem_access_from_host),
     Attribute::kDirectManagedMemAccessFromHost},
    {offsetof(Prop, max_blocks_per_multi_processor), Attribute::kMaxBlocksPerMultiprocessor},
    {offsetof(Prop, access_policy_max_window_size), Attribute::kMaxAccessPolicyWindowSize},
    {offsetof(Prop, host_register_supported), Attribute::kHostRegisterSupported},
    {offsetof(Prop, sparse_cuda_array_supported), Attribute::kSparseCudaArraySupported},
    {offsetof(Prop, host_register_read_only_supported), Attribute::kReadOnlyHostRegisterSupported},
    {offsetof(Prop, timeline_semaphore_interop_supported),
     Attribute::kTimelineSemaphoreInteropSupported},
    {offsetof(Prop, memory_pools_supported), Attribute::kMemoryPoolsSupported},
    {offsetof(Prop, gpu_direct_rdma_supported), Attribute::kGpuDirectRdmaSupported},
    {offsetof(Prop, gpu_direct_rdma_flush_writes_options),
     Attribute::kGpuDirectRdmaFlushWritesOptions},
    {offsetof(Prop, gpu_direct_rdma_writes_ordering), Attribute::kGpuDirectRdmaWritesOrdering},
    {offsetof(Prop, memory_pool_supported_handle_types), Attribute::kMempoolSupportedHandleTypes},
    {offsetof(Prop, deferred_mapping_cuda_array_supported),
     Attribute::kDeferredMappingCudaArraySupported},
    {offsetof(Prop, ipc_event_supported), Attribute::kIpcEventSupported},
    {offsetof(Prop, cluster_launch), Attribute::kClusterLaunch},
    {offsetof(Prop, unified_function_pointers), Attribute::kUnifiedFunctionPointers},
    {offsetof(Prop, device_numa_config), Attribute::kNumaConfig},
    {offsetof(Prop, device_numa_id), Attribute::kNumaId},
    {offsetof(Prop, mps_enabled), Attribute::kMpsEnabled},
    {offsetof(Prop, host_numa_id), Attribute::kHostNumaId},
    {offsetof(Prop, gpu_pci_device_id), Attribute::kGpuPciDeviceId},
    {offsetof(Prop, gpu_pci_subsystem_id), Attribute::kGpuPciSubsystemId},
    {offsetof(Prop, host_numa_multinode_ipc_supported), Attribute::kHostNumaMultinodeIpcSupported},
};

struct SizeRow {
  std::size_t Prop::*member;
  Attribute attribute;
};

constexpr SizeRow kSizes[] = {
    {&Prop::shared_mem_per_block, Attribute::kMaxSharedMemoryPerBlock},
    {&Prop::mem_pitch, Attribute::kMaxPitch},
    {&Prop::total_const_mem, Attribute::kTotalConstantMemory},
    {&Prop::texture_alignment, Attribute::kTextureAlignment},
    {&Prop::texture_pitch_alignment, Attribute::kTexturePitchAlignment},
    {&Prop::surface_alignment, Attribute::kSurfaceAlignment},
    {&Prop::shared_mem_per_multiprocessor, Attribute::kMaxSharedMemoryPerMultiprocessor},
    {&Prop::shared_mem_per_block_optin, Attribute::kMaxSharedMemoryPerBlockOptin},
    {&Prop::reserved_shared_mem_per_block, Attribute::kReservedSharedMemoryPerBlock},
};

/// 0 for what the driver does not know.
int get(Attribute attribute, int device) {
  int value = 0;
  const bool is_known = cuDeviceGetAttribute(&value, attribute, device) == CUresult::kSuccess;
  return is_known ? value : 0;
}

}  // namespace

extern "C" {

cudaError cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return with_driver([&] {
    expect(out != nullptr);
    *out = {};
    check(cuDeviceGetName(out->name, sizeof out->name, device));
    check(cuDeviceGetUuid_v2(&out->uuid, device));
    check(cuDeviceTotalMem_v2(&out->total_global_mem, device));
    for (const IntRow& row : kInts) {
      *reinterpret_cast<int*>(reinterpret_cast<char*>(out) + row.offset_bytes) =
          get(row.attribute, device);
    }
    for (const SizeRow& row : kSizes) {
      out->*row.member = static_cast<std::size_t>(get(row.attribute, device));
    }
  });
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
