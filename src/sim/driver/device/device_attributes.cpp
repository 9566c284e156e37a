#include "sim/driver/device/device_attributes.h"

#include <limits>

namespace tilewright::sim {

namespace {

using Attribute = abi::CUdevice_attribute;

/// Row of the table: the same for every model, as driver 580 answers for an H200 unless a comment
/// says otherwise.
struct Constant {
  Attribute attribute;
  int value;
};

constexpr int kMaxInt = std::numeric_limits<int>::max();

constexpr Constant kConstants[] = {
    {Attribute::kMaxThreadsPerBlock, 1024},
    {Attribute::kMaxBlockDimX, 1024},
    {Attribute::kMaxBlockDimY, 1024},
    {Attribute::kMaxBlockDimZ, 64},
    {Attribute::kMaxGridDimX, kMaxInt},
    {Attribute::kMaxGridDimY, 65535},
    {Attribute::kMaxGridDimZ, 65535},
    {Attribute::kTotalConstantMemory, 65536},
    {Attribute::kWarpSize, 32},
    {Attribute::kMaxPitch, kMaxInt},
    {Attribute::kTextureAlignment, 512},
    {Attribute::kGpuOverlap, 1},
    {Attribute::kKernelExecTimeout, 0},
    {Attribute::kIntegrated, 0},
    {Attribute::kCanMapHostMemory, 1},
    {Attribute::kComputeMode, 0},
    {Attribute::kMaximumTexture1dWidth, 131072},
    {Attribute::kMaximumTexture2dWidth, 131072},
    {Attribute::kMaximumTexture2dHeight, 65536},
    {Attribute::kMaximumTexture3dWidth, 16384},
    {Attribute::kMaximumTexture3dHeight, 16384},
    {Attribute::kMaximumTexture3dDepth, 16384},
    {Attribute::kMaximumTexture2dLayeredWidth, 32768},
    {Attribute::kMaximumTexture2dLayeredHeight, 32768},
    {Attribute::kMaximumTexture2dLayeredLayers, 2048},
    {Attribute::kSurfaceAlignment, 512},
    {Attribute::kConcurrentKernels, 1},
    {Attribute::kEccEnabled, 1},
    {Attribute::kPciBusId, 0},
    {Attribute::kTccDriver, 0},
    {Attribute::kAsyncEngineCount, 3},
    {Attribute::kUnifiedAddressing, 1},
    {Attribute::kMaximumTexture1dLayeredWidth, 32768},
    {Attribute::kMaximumTexture1dLayeredLayers, 2048},
    {Attribute::kCanTex2dGather, 1},
    {Attribute::kMaximumTexture2dGatherWidth, 32768},
    {Attribute::kMaximumTexture2dGatherHeight, 32768},
    {Attribute::kMaximumTexture3dWidthAlternate, 8192},
    {Attribute::kMaximumTexture3dHeightAlternate, 8192},
    {Attribute::kMaximumTexture3dDepthAlternate, 32768},
    {Attribute::kPciDomainId, 0},
    {Attribute::kTexturePitchAlignment, 32},
    {Attribute::kMaximumTexturecubemapWidth, 32768},
    {Attribute::kMaximumTexturecubemapLayeredWidth, 32768},
    {Attribute::kMaximumTexturecubemapLayeredLayers, 2046},
    {Attribute::kMaximumSurface1dWidth, 32768},
    {Attribute::kMaximumSurface2dWidth, 131072},
    {Attribute::kMaximumSurface2dHeight, 65536},
    {Attribute::kMaximumSurface3dWidth, 16384},
    {Attribute::kMaximumSurface3dHeight, 16384},
    {Attribute::kMaximumSurface3dDepth, 16384},
    {Attribute::kMaximumSurface1dLayeredWidth, 32768},
    {Attribute::kMaximumSurface1dLayeredLayers, 2048},
    {Attribute::kMaximumSurface2dLayeredWidth, 32768},
    {Attribute::kMaximumSurface2dLayeredHeight, 32768},
    {Attribute::kMaximumSurface2dLayeredLayers, 2048},
    {Attribute::kMaximumSurfacecubemapWidth, 32768},
    {Attribute::kMaximumSurfacecubemapLayeredWidth, 32768},
    {Attribute::kMaximumSurfacecubemapLayeredLayers, 2046},
    {Attribute::kMaximumTexture1dLinearWidth, 268435456},
    {Attribute::kMaximumTexture2dLinearWidth, 131072},
    {Attribute::kMaximumTexture2dLinearHeight, 65000},
    {Attribute::kMaximumTexture2dLinearPitch, 2097120},
    {Attribute::kMaximumTexture2dMipmappedWidth, 32768},
    {Attribute::kMaximumTexture2dMipmappedHeight, 32768},
    {Attribute::kMaximumTexture1dMipmappedWidth, 32768},
    {Attribute::kStreamPrioritiesSupported, 1},
    {Attribute::kGlobalL1CacheSupported, 1},
    {Attribute::kLocalL1CacheSupported, 1},
    {Attribute::kManagedMemory, 1},
    {Attribute::kMultiGpuBoard, 0},
    {Attribute::kHostNativeAtomicSupported, 0},
    {Attribute::kSingleToDoublePrecisionPerfRatio, 2},
    {Attribute::kPageableMemoryAccess, 0},
    {Attribute::kConcurrentManagedAccess, 1},
    {Attribute::kComputePreemptionSupported, 1},
    {Attribute::kCanUseHostPointerForRegisteredMem, 1},
    {Attribute::kCanUseStreamMemOpsV1, 0},
    {Attribute::kCanUse64BitStreamMemOpsV1, 0},
    {Attribute::kCanUseStreamWaitValueNorV1, 0},
    {Attribute::kCooperativeLaunch, 1},
    {Attribute::kCooperativeMultiDeviceLaunch, 0},  // no such launch here; 1 on an H200
    {Attribute::kCanFlushRemoteWrites, 0},
    {Attribute::kHostRegisterSupported, 1},
    {Attribute::kPageableMemoryAccessUsesHostPageTables, 0},
    {Attribute::kDirectManagedMemAccessFromHost, 0},
    // What follows up to the next comment is there on an H200 and is not here.
    {Attribute::kVirtualAddressManagementSupported, 0},
    {Attribute::kHandleTypePosixFileDescriptorSupported, 0},
    {Attribute::kGenericCompressionSupported, 0},
    {Attribute::kGpuDirectRdmaWithCudaVmmSupported, 0},
    {Attribute::kSparseCudaArraySupported, 0},
    {Attribute::kTimelineSemaphoreInteropSupported, 0},
    {Attribute::kGpuDirectRdmaSupported, 0},
    {Attribute::kGpuDirectRdmaFlushWritesOptions, 0},
    {Attribute::kGpuDirectRdmaWritesOrdering, 0},
    {Attribute::kMempoolSupportedHandleTypes, 0},
    {Attribute::kDeferredMappingCudaArraySupported, 0},
    {Attribute::kCanUse64BitStreamMemOps, 0},
    {Attribute::kCanUseStreamWaitValueNor, 0},
    {Attribute::kDmaBufSupported, 0},
    {Attribute::kIpcEventSupported, 0},
    {Attribute::kHandleTypeFabricSupported, 0},
    {Attribute::kUnifiedFunctionPointers, 0},
    {Attribute::kHostNumaVirtualMemoryManagementSupported, 0},
    {Attribute::kHostNumaMemoryPoolsSupported, 0},
    {Attribute::kHostMemoryPoolsSupported, 0},
    {Attribute::kHostVirtualMemoryManagementSupported, 0},
    // And again as an H200.
    {Attribute::kHandleTypeWin32HandleSupported, 0},
    {Attribute::kHandleTypeWin32KmtHandleSupported, 0},
    {Attribute::kMaxAccessPolicyWindowSize, 134217728},
    {Attribute::kReadOnlyHostRegisterSupported, 1},
    {Attribute::kMemoryPoolsSupported, 1},
    {Attribute::kClusterLaunch, 1},
    {Attribute::kMemSyncDomainCount, 4},
    {Attribute::kTensorMapAccessSupported, 1},
    {Attribute::kNumaConfig, 0},
    {Attribute::kNumaId, -1},
    {Attribute::kMulticastSupported, 0},
    {Attribute::kMpsEnabled, 0},
    {Attribute::kHostNumaId, 0},
    {Attribute::kD3d12CigSupported, 0},
    {Attribute::kMemDecompressAlgorithmMask, 0},
    {Attribute::kMemDecompressMaximumLength, 0},
    {Attribute::kVulkanCigSupported, 0},
    {Attribute::kGpuPciDeviceId, 0},
    {Attribute::kGpuPciSubsystemId, 0},
    {Attribute::kHostNumaMultinodeIpcSupported, 0},
    {Attribute::kHostAllocDmaBufSupported, 0},
    {Attribute::kOnlyPartialHostNativeAtomicSupported, 0},
};

/// What differs from model to model.
std::optional<std::uint64_t> from_model(const Device& device, Attribute attribute) {
  const DeviceModel& model = device.model;
  switch (attribute) {
    case Attribute::kMaxSharedMemoryPerBlock:
      return model.shared_bytes_per_cta;
    case Attribute::kMaxRegistersPerBlock:
    case Attribute::kMaxRegistersPerMultiprocessor:
      return model.registers_per_sm;
    case Attribute::kClockRate:
      return model.clock_khz;
    case Attribute::kMultiprocessorCount:
      return model.num_sms;
    case Attribute::kPciDeviceId:
    case Attribute::kMultiGpuBoardGroupId:
      return static_cast<std::uint64_t>(device.ordinal + kPciDeviceOfFirst);
    case Attribute::kMemoryClockRate:
      return model.memory_clock_khz;
    case Attribute::kGlobalMemoryBusWidth:
      return model.memory_bus_bits;
    case Attribute::kL2CacheSize:
      return model.l2_bytes;
    case Attribute::kMaxPersistingL2CacheSize:
      return model.l2_bytes * 5 / 8;
    case Attribute::kMaxThreadsPerMultiprocessor:
      return model.max_threads_per_sm;
    case Attribute::kComputeCapabilityMajor:
      return static_cast<std::uint64_t>(model.compute_capability / 10);
    case Attribute::kComputeCapabilityMinor:
      return static_cast<std::uint64_t>(model.compute_capability % 10);
    case Attribute::kMaxSharedMemoryPerMultiprocessor:
      return model.shared_bytes_per_sm;
    case Attribute::kMaxSharedMemoryPerBlockOptin:
      return model.shared_bytes_per_cta_optin;
    case Attribute::kMaxBlocksPerMultiprocessor:
      return model.max_ctas_per_sm;
    case Attribute::kReservedSharedMemoryPerBlock:
      return model.reserved_shared_bytes_per_cta;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int> attribute_of(const Device& device, Attribute attribute) {
  if (const auto value = from_model(device, attribute)) return static_cast<int>(*value);
  for (const Constant& row : kConstants) {
    if (row.attribute == attribute) return row.value;
  }
  return std::nullopt;
}

}  // namespace tilewright::sim
