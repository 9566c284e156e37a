// The part of the CUDA driver's binary interface that Tilewright uses, in our own declarations:
// host code compiles without the CUDA toolkit. Type names are those of cuda.h, in a namespace of
// their own; tests/device/abi_witness_test.cpp compares every value, size and offset with cuda.h.
#pragma once

#include "device/driver_result.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::device::abi {

using CUdevice = int;                    ///< ordinal-like handle of a GPU
using CUdeviceptr = unsigned long long;  ///< address in device memory
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUkernel = struct CUkern_st*;

struct CUuuid {
  char bytes[16];
};

// Every enum below is a table of X(our name, name in cuda.h, value): the witness test walks the
// same tables. Only the values in use here are listed.
// clang-format off

#define TILEWRIGHT_CU_DEVICE_ATTRIBUTES(X)                                                         \
  X(kMaxSharedPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                        \
  X(kClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                             \
  X(kNumSms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                         \
  X(kMemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                \
  X(kMemoryBusWidthBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                          \
  X(kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                               \
  X(kMaxThreadsPerSm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                      \
  X(kComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                               \
  X(kComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                               \
  X(kSharedPerSm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                    \
  X(kRegistersPerSm, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                     \
  X(kMaxSharedPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)            \
  X(kReservedSharedPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111)            \
  X(kClusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 120)                                       \
  X(kTensorMapAccess, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 127)

#define TILEWRIGHT_CU_FUNCTION_ATTRIBUTES(X)                                                       \
  X(kMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                               \
  X(kSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                      \
  X(kConstSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                                        \
  X(kLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                        \
  X(kNumRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                       \
  X(kPtxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                                 \
  X(kBinaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                           \
  X(kMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                \
  X(kClusterSizeMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 10)                         \
  X(kRequiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 11)                           \
  X(kRequiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 12)                         \
  X(kRequiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 13)                           \
  X(kNonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)

#define TILEWRIGHT_CU_POINTER_ATTRIBUTES(X)                                                        \
  X(kMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                              \
  X(kIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                               \
  X(kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                        \
  X(kRangeStartAddress, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                 \
  X(kRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)

#define TILEWRIGHT_CU_MEMORY_TYPES(X)                                                              \
  X(kHost, CU_MEMORYTYPE_HOST, 1)                                                                  \
  X(kDevice, CU_MEMORYTYPE_DEVICE, 2)                                                              \
  X(kArray, CU_MEMORYTYPE_ARRAY, 3)                                                                \
  X(kUnified, CU_MEMORYTYPE_UNIFIED, 4)

#define TILEWRIGHT_CU_JIT_OPTIONS(X)                                                               \
  X(kMaxRegisters, CU_JIT_MAX_REGISTERS, 0)                                                        \
  X(kErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER, 5)                                                   \
  X(kErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                               \
  X(kOptimizationLevel, CU_JIT_OPTIMIZATION_LEVEL, 7)                                              \
  X(kGenerateLineInfo, CU_JIT_GENERATE_LINE_INFO, 13)

#define TILEWRIGHT_CU_LAUNCH_ATTRIBUTES(X)                                                         \
  X(kIgnore, CU_LAUNCH_ATTRIBUTE_IGNORE, 0)                                                        \
  X(kCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                                              \
  X(kClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                   \
  X(kProgrammaticStreamSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)

#define TILEWRIGHT_CU_STREAM_FLAGS(X)                                                              \
  X(kDefault, CU_STREAM_DEFAULT, 0)                                                                \
  X(kNonBlocking, CU_STREAM_NON_BLOCKING, 1)

#define TILEWRIGHT_CU_EVENT_FLAGS(X)                                                               \
  X(kDefault, CU_EVENT_DEFAULT, 0)                                                                 \
  X(kDisableTiming, CU_EVENT_DISABLE_TIMING, 2)

#define TILEWRIGHT_CU_CAPTURE_MODES(X)                                                             \
  X(kGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                                     \
  X(kThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                          \
  X(kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED, 2)

#define TILEWRIGHT_CU_GRAPH_NODE_TYPES(X)                                                          \
  X(kKernel, CU_GRAPH_NODE_TYPE_KERNEL, 0)                                                         \
  X(kMemcpy, CU_GRAPH_NODE_TYPE_MEMCPY, 1)                                                         \
  X(kMemset, CU_GRAPH_NODE_TYPE_MEMSET, 2)                                                         \
  X(kHost, CU_GRAPH_NODE_TYPE_HOST, 3)

#define TILEWRIGHT_CU_TENSOR_MAP_DATA_TYPES(X)                                                     \
  X(kUint8, CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)                                                      \
  X(kUint16, CU_TENSOR_MAP_DATA_TYPE_UINT16, 1)                                                    \
  X(kUint32, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2)                                                    \
  X(kInt32, CU_TENSOR_MAP_DATA_TYPE_INT32, 3)                                                      \
  X(kUint64, CU_TENSOR_MAP_DATA_TYPE_UINT64, 4)                                                    \
  X(kInt64, CU_TENSOR_MAP_DATA_TYPE_INT64, 5)                                                      \
  X(kFloat16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                                  \
  X(kFloat32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                                                  \
  X(kFloat64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8)                                                  \
  X(kBfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                                                \
  X(kFloat32Ftz, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 10)                                          \
  X(kTfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 11)                                               \
  X(kTfloat32Ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 12)                                        \
  X(k16U4Align8B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 13)                                        \
  X(k16U4Align16B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, 14)                                      \
  X(k16U6Align16B, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 15)

#define TILEWRIGHT_CU_TENSOR_MAP_INTERLEAVES(X)                                                    \
  X(kNone, CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                                                       \
  X(k16B, CU_TENSOR_MAP_INTERLEAVE_16B, 1)                                                         \
  X(k32B, CU_TENSOR_MAP_INTERLEAVE_32B, 2)

#define TILEWRIGHT_CU_TENSOR_MAP_SWIZZLES(X)                                                       \
  X(kNone, CU_TENSOR_MAP_SWIZZLE_NONE, 0)                                                          \
  X(k32B, CU_TENSOR_MAP_SWIZZLE_32B, 1)                                                            \
  X(k64B, CU_TENSOR_MAP_SWIZZLE_64B, 2)                                                            \
  X(k128B, CU_TENSOR_MAP_SWIZZLE_128B, 3)                                                          \
  X(k128BAtom32B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, 4)                                          \
  X(k128BAtom32BFlip8B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, 5)                            \
  X(k128BAtom64B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, 6)

#define TILEWRIGHT_CU_TENSOR_MAP_L2_PROMOTIONS(X)                                                  \
  X(kNone, CU_TENSOR_MAP_L2_PROMOTION_NONE, 0)                                                     \
  X(k64B, CU_TENSOR_MAP_L2_PROMOTION_L2_64B, 1)                                                    \
  X(k128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)                                                  \
  X(k256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)

#define TILEWRIGHT_CU_TENSOR_MAP_OOB_FILLS(X)                                                      \
  X(kZeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)                                                  \
  X(kNan, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, 1)

// X(enum, its table): all enums of this file
#define TILEWRIGHT_CU_ENUMS(X)                                                                     \
  X(CUdevice_attribute, TILEWRIGHT_CU_DEVICE_ATTRIBUTES)                                           \
  X(CUfunction_attribute, TILEWRIGHT_CU_FUNCTION_ATTRIBUTES)                                       \
  X(CUpointer_attribute, TILEWRIGHT_CU_POINTER_ATTRIBUTES)                                         \
  X(CUmemorytype, TILEWRIGHT_CU_MEMORY_TYPES)                                                      \
  X(CUjit_option, TILEWRIGHT_CU_JIT_OPTIONS)                                                       \
  X(CUlaunchAttributeID, TILEWRIGHT_CU_LAUNCH_ATTRIBUTES)                                          \
  X(CUstream_flags, TILEWRIGHT_CU_STREAM_FLAGS)                                                    \
  X(CUevent_flags, TILEWRIGHT_CU_EVENT_FLAGS)                                                      \
  X(CUstreamCaptureMode, TILEWRIGHT_CU_CAPTURE_MODES)                                              \
  X(CUgraphNodeType, TILEWRIGHT_CU_GRAPH_NODE_TYPES)                                               \
  X(CUtensorMapDataType, TILEWRIGHT_CU_TENSOR_MAP_DATA_TYPES)                                      \
  X(CUtensorMapInterleave, TILEWRIGHT_CU_TENSOR_MAP_INTERLEAVES)                                   \
  X(CUtensorMapSwizzle, TILEWRIGHT_CU_TENSOR_MAP_SWIZZLES)                                         \
  X(CUtensorMapL2promotion, TILEWRIGHT_CU_TENSOR_MAP_L2_PROMOTIONS)                                \
  X(CUtensorMapFloatOOBfill, TILEWRIGHT_CU_TENSOR_MAP_OOB_FILLS)
// clang-format on

#define TILEWRIGHT_ENUMERATOR(ours, theirs, value) ours = value,
#define TILEWRIGHT_ENUM(name, table) enum class name : int { table(TILEWRIGHT_ENUMERATOR) };
TILEWRIGHT_CU_ENUMS(TILEWRIGHT_ENUM)
#undef TILEWRIGHT_ENUM
#undef TILEWRIGHT_ENUMERATOR

/// cuMemHostAlloc: the memory is pinned for every context, not only the current one.
inline constexpr unsigned kMemHostAllocPortable = 1;

struct ClusterDim {
  unsigned x, y, z;  ///< blocks per cluster
};

union CUlaunchAttributeValue {
  char pad[64];
  ClusterDim cluster_dim;
  int cooperative;
  int programmatic_stream_serialization_allowed;
  alignas(8) std::uint64_t for_alignment;  // cuda.h has pointers among the members
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned grid_dim_x, grid_dim_y, grid_dim_z;     ///< in blocks
  unsigned block_dim_x, block_dim_y, block_dim_z;  ///< in threads
  unsigned shared_mem_bytes;                       ///< dynamic shared memory per block
  CUstream stream;
  CUlaunchAttribute* attrs;
  unsigned num_attrs;
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;  ///< null where the launch was of `kern`
  unsigned grid_dim_x, grid_dim_y, grid_dim_z;
  unsigned block_dim_x, block_dim_y, block_dim_z;
  unsigned shared_mem_bytes;
  void** kernel_params;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};

/// What a TMA instruction reads to know a tensor. Opaque; only the driver and PTX write it. The
/// driver asks for 64-byte alignment (the header of CUDA 13 gives its own type 128).
struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};

}  // namespace tilewright::device::abi
