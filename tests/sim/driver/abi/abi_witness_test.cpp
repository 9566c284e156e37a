// Our declarations of the driver's interface against the toolkit's own header.
#include "sim/driver/abi/function_tables.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL  // all versions of all functions, and no macros that rename
#include <cuda.h>
#include <cudaProfiler.h>
#endif

#if defined(CUDA_VERSION) && CUDA_VERSION >= 13000

namespace tilewright::sim::abi {
namespace {

/// Ours<T>: T with the types of cuda.h replaced by those of namespace abi.
template <class T>
struct Replace {
  using type = T;
};
template <class T>
using Ours = typename Replace<T>::type;
template <class T>
struct Replace<const T> {
  using type = const Ours<T>;
};
template <class T>
struct Replace<T*> {
  using type = Ours<T>*;
};
template <class Result, class... Args>
struct Replace<Result(Args...)> {
  using type = Ours<Result>(Ours<Args>...);
};
#define REPLACE(theirs, ours) \
  template <>                 \
  struct Replace<::theirs> {  \
    using type = abi::ours;   \
  };
#define REPLACE_SAME(name, ...) REPLACE(name, name)
REPLACE_SAME(CUresult)
TILEWRIGHT_SIM_ENUMS(REPLACE_SAME)
REPLACE_SAME(CUctx_st)
REPLACE_SAME(CUmod_st)
REPLACE_SAME(CUfunc_st)
REPLACE_SAME(CUlib_st)
REPLACE_SAME(CUkern_st)
REPLACE_SAME(CUstream_st)
REPLACE_SAME(CUevent_st)
REPLACE_SAME(CUgraph_st)
REPLACE_SAME(CUgraphNode_st)
REPLACE_SAME(CUgraphExec_st)
REPLACE_SAME(CUmemPoolHandle_st)
REPLACE_SAME(CUlinkState_st)
REPLACE_SAME(CUuserObject_st)
REPLACE_SAME(CUuuid)
REPLACE_SAME(CUdevprop)
REPLACE_SAME(CUctxCreateParams)
REPLACE_SAME(CUDA_MEMCPY2D)
REPLACE_SAME(CUDA_MEMCPY3D)
REPLACE_SAME(CUDA_MEMCPY3D_PEER)
REPLACE_SAME(CUmemLocation)
REPLACE_SAME(CUmemAccessDesc)
REPLACE_SAME(CUmemPoolProps)
REPLACE_SAME(CUlaunchAttributeValue)
REPLACE_SAME(CUlaunchConfig)
REPLACE_SAME(CUDA_KERNEL_NODE_PARAMS)
REPLACE_SAME(CUDA_MEMSET_NODE_PARAMS)
REPLACE_SAME(CUDA_HOST_NODE_PARAMS)
REPLACE_SAME(CUgraphNodeParams)
REPLACE_SAME(CUgraphEdgeData)
REPLACE_SAME(CUDA_GRAPH_INSTANTIATE_PARAMS)
REPLACE_SAME(CUgraphExecUpdateResultInfo)
REPLACE_SAME(CUtensorMap)
#undef REPLACE
#undef REPLACE_SAME

TEST(SimAbiWitness, FunctionSignatures) {
  int num_checked = 0;
  // A mention in a table whose name cuda.h lacks would not compile.
#define CHECK(name, version, parameters)                                                  \
  static_assert(std::is_same_v<abi::CUresult parameters, Ours<decltype(::name)>>, #name); \
  ++num_checked;
  TILEWRIGHT_SIM_FUNCTIONS(CHECK)
#undef CHECK
  EXPECT_GT(num_checked, 250);
}

TEST(SimAbiWitness, OlderNamesHaveTheSameSignature) {
#define CHECK(name, version, target) \
  static_assert(std::is_same_v<decltype(::name), decltype(::target)>, #name);
  TILEWRIGHT_SIM_OLDER_NAMES(CHECK)
#undef CHECK
#define CHECK(name, target) \
  static_assert(std::is_same_v<decltype(::name), decltype(::target)>, #name);
  TILEWRIGHT_SIM_PER_THREAD_NAMES(CHECK)
#undef CHECK
}

TEST(SimAbiWitness, EnumValues) {
#define CHECK_VALUE(ours, theirs, value, ...) \
  static_assert(value == static_cast<int>(::theirs), #theirs);
#define CHECK_ENUM(name, table)                       \
  static_assert(sizeof(abi::name) == sizeof(::name)); \
  table(CHECK_VALUE)
  TILEWRIGHT_SIM_ENUMS(CHECK_ENUM)
  CHECK_ENUM(CUresult, TILEWRIGHT_SIM_RESULTS)
#undef CHECK_ENUM
#undef CHECK_VALUE
  static_assert(abi::kMemHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
  static_assert(abi::kMemHostAllocDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
  static_assert(abi::kMemHostAllocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED);
  static_assert(abi::kEventRecordExternal == CU_EVENT_RECORD_EXTERNAL);
  EXPECT_EQ(abi::kLegacyStream, reinterpret_cast<std::uintptr_t>(CU_STREAM_LEGACY));
  EXPECT_EQ(abi::kPerThreadStream, reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD));
  EXPECT_EQ(abi::kLaunchParamEnd, reinterpret_cast<std::uintptr_t>(CU_LAUNCH_PARAM_END));
  EXPECT_EQ(abi::kLaunchParamBufferPointer,
            reinterpret_cast<std::uintptr_t>(CU_LAUNCH_PARAM_BUFFER_POINTER));
  EXPECT_EQ(abi::kLaunchParamBufferSize,
            reinterpret_cast<std::uintptr_t>(CU_LAUNCH_PARAM_BUFFER_SIZE));
}

// Sizes of structs, and the place and size of every member.
#define SIZE(name) static_assert(sizeof(abi::name) == sizeof(::name), #name);
#define MEMBER(type, ours, theirs)                                               \
  static_assert(offsetof(abi::type, ours) == offsetof(::type, theirs), #theirs); \
  static_assert(sizeof(abi::type::ours) == sizeof(::type::theirs), #theirs);
SIZE(CUdevprop)
SIZE(CUctxCreateParams)
SIZE(CUDA_MEMCPY2D)
SIZE(CUDA_MEMCPY3D)
SIZE(CUDA_MEMCPY3D_PEER)
SIZE(CUmemLocation)
SIZE(CUmemAccessDesc)
SIZE(CUmemPoolProps)
SIZE(CUlaunchAttribute)
SIZE(CUlaunchConfig)
SIZE(CUDA_KERNEL_NODE_PARAMS)
SIZE(CUDA_MEMSET_NODE_PARAMS)
SIZE(CUDA_HOST_NODE_PARAMS)
SIZE(CUDA_MEMCPY_NODE_PARAMS)
SIZE(CUgraphEdgeData)
SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS)
SIZE(CUgraphExecUpdateResultInfo)
SIZE(CUuuid)
SIZE(CUlaunchAttributeValue)
SIZE(CUgraphNodeParams)
SIZE(CUtensorMap)
MEMBER(CUdevprop, max_threads_per_block, maxThreadsPerBlock)
MEMBER(CUdevprop, max_threads_dim, maxThreadsDim)
MEMBER(CUdevprop, max_grid_size, maxGridSize)
MEMBER(CUdevprop, shared_mem_per_block, sharedMemPerBlock)
MEMBER(CUdevprop, total_constant_memory, totalConstantMemory)
MEMBER(CUdevprop, simd_width, SIMDWidth)
MEMBER(CUdevprop, mem_pitch, memPitch)
MEMBER(CUdevprop, regs_per_block, regsPerBlock)
MEMBER(CUdevprop, clock_rate, clockRate)
MEMBER(CUdevprop, texture_align, textureAlign)

MEMBER(CUctxCreateParams, exec_affinity_params, execAffinityParams)
MEMBER(CUctxCreateParams, num_exec_affinity_params, numExecAffinityParams)
MEMBER(CUctxCreateParams, cig_params, cigParams)

MEMBER(CUDA_MEMCPY2D, src_x_in_bytes, srcXInBytes)
MEMBER(CUDA_MEMCPY2D, src_y, srcY)
MEMBER(CUDA_MEMCPY2D, src_memory_type, srcMemoryType)
MEMBER(CUDA_MEMCPY2D, src_host, srcHost)
MEMBER(CUDA_MEMCPY2D, src_device, srcDevice)
MEMBER(CUDA_MEMCPY2D, src_array, srcArray)
MEMBER(CUDA_MEMCPY2D, src_pitch, srcPitch)
MEMBER(CUDA_MEMCPY2D, dst_x_in_bytes, dstXInBytes)
MEMBER(CUDA_MEMCPY2D, dst_y, dstY)
MEMBER(CUDA_MEMCPY2D, dst_memory_type, dstMemoryType)
MEMBER(CUDA_MEMCPY2D, dst_host, dstHost)
MEMBER(CUDA_MEMCPY2D, dst_device, dstDevice)
MEMBER(CUDA_MEMCPY2D, dst_array, dstArray)
MEMBER(CUDA_MEMCPY2D, dst_pitch, dstPitch)
MEMBER(CUDA_MEMCPY2D, width_in_bytes, WidthInBytes)
MEMBER(CUDA_MEMCPY2D, height, Height)

MEMBER(CUDA_MEMCPY3D, src_x_in_bytes, srcXInBytes)
MEMBER(CUDA_MEMCPY3D, src_y, srcY)
MEMBER(CUDA_MEMCPY3D, src_z, srcZ)
MEMBER(CUDA_MEMCPY3D, src_lod, srcLOD)
MEMBER(CUDA_MEMCPY3D, src_memory_type, srcMemoryType)
MEMBER(CUDA_MEMCPY3D, src_host, srcHost)
MEMBER(CUDA_MEMCPY3D, src_device, srcDevice)
MEMBER(CUDA_MEMCPY3D, src_array, srcArray)
MEMBER(CUDA_MEMCPY3D, reserved0, reserved0)
MEMBER(CUDA_MEMCPY3D, src_pitch, srcPitch)
MEMBER(CUDA_MEMCPY3D, src_height, srcHeight)
MEMBER(CUDA_MEMCPY3D, dst_x_in_bytes, dstXInBytes)
MEMBER(CUDA_MEMCPY3D, dst_y, dstY)
MEMBER(CUDA_MEMCPY3D, dst_z, dstZ)
MEMBER(CUDA_MEMCPY3D, dst_lod, dstLOD)
MEMBER(CUDA_MEMCPY3D, dst_memory_type, dstMemoryType)
MEMBER(CUDA_MEMCPY3D, dst_host, dstHost)
MEMBER(CUDA_MEMCPY3D, dst_device, dstDevice)
MEMBER(CUDA_MEMCPY3D, dst_array, dstArray)
MEMBER(CUDA_MEMCPY3D, reserved1, reserved1)
MEMBER(CUDA_MEMCPY3D, dst_pitch, dstPitch)
MEMBER(CUDA_MEMCPY3D, dst_height, dstHeight)
MEMBER(CUDA_MEMCPY3D, width_in_bytes, WidthInBytes)
MEMBER(CUDA_MEMCPY3D, height, Height)
MEMBER(CUDA_MEMCPY3D, depth, Depth)

MEMBER(CUDA_MEMCPY3D_PEER, src_x_in_bytes, srcXInBytes)
MEMBER(CUDA_MEMCPY3D_PEER, src_y, srcY)
MEMBER(CUDA_MEMCPY3D_PEER, src_z, srcZ)
MEMBER(CUDA_MEMCPY3D_PEER, src_lod, srcLOD)
MEMBER(CUDA_MEMCPY3D_PEER, src_memory_type, srcMemoryType)
MEMBER(CUDA_MEMCPY3D_PEER, src_host, srcHost)
MEMBER(CUDA_MEMCPY3D_PEER, src_device, srcDevice)
MEMBER(CUDA_MEMCPY3D_PEER, src_array, srcArray)
MEMBER(CUDA_MEMCPY3D_PEER, src_context, srcContext)
MEMBER(CUDA_MEMCPY3D_PEER, src_pitch, srcPitch)
MEMBER(CUDA_MEMCPY3D_PEER, src_height, srcHeight)
MEMBER(CUDA_MEMCPY3D_PEER, dst_x_in_bytes, dstXInBytes)
MEMBER(CUDA_MEMCPY3D_PEER, dst_y, dstY)
MEMBER(CUDA_MEMCPY3D_PEER, dst_z, dstZ)
MEMBER(CUDA_MEMCPY3D_PEER, dst_lod, dstLOD)
MEMBER(CUDA_MEMCPY3D_PEER, dst_memory_type, dstMemoryType)
MEMBER(CUDA_MEMCPY3D_PEER, dst_host, dstHost)
MEMBER(CUDA_MEMCPY3D_PEER, dst_device, dstDevice)
MEMBER(CUDA_MEMCPY3D_PEER, dst_array, dstArray)
MEMBER(CUDA_MEMCPY3D_PEER, dst_context, dstContext)
MEMBER(CUDA_MEMCPY3D_PEER, dst_pitch, dstPitch)
MEMBER(CUDA_MEMCPY3D_PEER, dst_height, dstHeight)
MEMBER(CUDA_MEMCPY3D_PEER, width_in_bytes, WidthInBytes)
MEMBER(CUDA_MEMCPY3D_PEER, height, Height)
MEMBER(CUDA_MEMCPY3D_PEER, depth, Depth)

MEMBER(CUmemLocation, type, type)
MEMBER(CUmemLocation, id, id)

MEMBER(CUmemAccessDesc, location, location)
MEMBER(CUmemAccessDesc, flags, flags)

MEMBER(CUmemPoolProps, alloc_type, allocType)
MEMBER(CUmemPoolProps, handle_types, handleTypes)
MEMBER(CUmemPoolProps, location, location)
MEMBER(CUmemPoolProps, win32_security_attributes, win32SecurityAttributes)
MEMBER(CUmemPoolProps, max_size, maxSize)
MEMBER(CUmemPoolProps, usage, usage)
MEMBER(CUmemPoolProps, reserved, reserved)

MEMBER(CUlaunchAttribute, id, id)
MEMBER(CUlaunchAttribute, value, value)

MEMBER(CUlaunchConfig, grid_dim_x, gridDimX)
MEMBER(CUlaunchConfig, grid_dim_y, gridDimY)
MEMBER(CUlaunchConfig, grid_dim_z, gridDimZ)
MEMBER(CUlaunchConfig, block_dim_x, blockDimX)
MEMBER(CUlaunchConfig, block_dim_y, blockDimY)
MEMBER(CUlaunchConfig, block_dim_z, blockDimZ)
MEMBER(CUlaunchConfig, shared_mem_bytes, sharedMemBytes)
MEMBER(CUlaunchConfig, stream, hStream)
MEMBER(CUlaunchConfig, attrs, attrs)
MEMBER(CUlaunchConfig, num_attrs, numAttrs)

MEMBER(CUDA_KERNEL_NODE_PARAMS, func, func)
MEMBER(CUDA_KERNEL_NODE_PARAMS, grid_dim_x, gridDimX)
MEMBER(CUDA_KERNEL_NODE_PARAMS, grid_dim_y, gridDimY)
MEMBER(CUDA_KERNEL_NODE_PARAMS, grid_dim_z, gridDimZ)
MEMBER(CUDA_KERNEL_NODE_PARAMS, block_dim_x, blockDimX)
MEMBER(CUDA_KERNEL_NODE_PARAMS, block_dim_y, blockDimY)
MEMBER(CUDA_KERNEL_NODE_PARAMS, block_dim_z, blockDimZ)
MEMBER(CUDA_KERNEL_NODE_PARAMS, shared_mem_bytes, sharedMemBytes)
MEMBER(CUDA_KERNEL_NODE_PARAMS, kernel_params, kernelParams)
MEMBER(CUDA_KERNEL_NODE_PARAMS, extra, extra)
MEMBER(CUDA_KERNEL_NODE_PARAMS, kern, kern)
MEMBER(CUDA_KERNEL_NODE_PARAMS, ctx, ctx)

MEMBER(CUDA_MEMSET_NODE_PARAMS, dst, dst)
MEMBER(CUDA_MEMSET_NODE_PARAMS, pitch, pitch)
MEMBER(CUDA_MEMSET_NODE_PARAMS, value, value)
MEMBER(CUDA_MEMSET_NODE_PARAMS, element_size, elementSize)
MEMBER(CUDA_MEMSET_NODE_PARAMS, width, width)
MEMBER(CUDA_MEMSET_NODE_PARAMS, height, height)

MEMBER(CUDA_HOST_NODE_PARAMS, fn, fn)
MEMBER(CUDA_HOST_NODE_PARAMS, user_data, userData)

MEMBER(CUDA_MEMCPY_NODE_PARAMS, flags, flags)
MEMBER(CUDA_MEMCPY_NODE_PARAMS, reserved, reserved)
MEMBER(CUDA_MEMCPY_NODE_PARAMS, copy_ctx, copyCtx)
MEMBER(CUDA_MEMCPY_NODE_PARAMS, copy_params, copyParams)

MEMBER(CUgraphEdgeData, from_port, from_port)
MEMBER(CUgraphEdgeData, to_port, to_port)
MEMBER(CUgraphEdgeData, type, type)
MEMBER(CUgraphEdgeData, reserved, reserved)

MEMBER(CUDA_GRAPH_INSTANTIATE_PARAMS, flags, flags)
MEMBER(CUDA_GRAPH_INSTANTIATE_PARAMS, upload_stream, hUploadStream)
MEMBER(CUDA_GRAPH_INSTANTIATE_PARAMS, err_node_out, hErrNode_out)
MEMBER(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out, result_out)

MEMBER(CUgraphExecUpdateResultInfo, result, result)
MEMBER(CUgraphExecUpdateResultInfo, error_node, errorNode)
MEMBER(CUgraphExecUpdateResultInfo, error_from_node, errorFromNode)

#undef SIZE
#undef MEMBER

// What a union member means is in its bytes: write with our type, read with theirs.
TEST(SimAbiWitness, UnionsReadBack) {
  static_assert(alignof(::CUtensorMap) % alignof(abi::CUtensorMap) == 0);
  abi::CUlaunchAttributeValue ours{};
  ours.cluster_dim = {2, 3, 4};
  ::CUlaunchAttributeValue theirs;
  std::memcpy(&theirs, &ours, sizeof theirs);
  EXPECT_EQ(theirs.clusterDim.x, 2u);
  EXPECT_EQ(theirs.clusterDim.z, 4u);

  ::CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.elementSize = 2;
  params.memset.height = 7;
  abi::CUgraphNodeParams read;
  std::memcpy(&read, &params, sizeof read);
  EXPECT_EQ(read.type, abi::CUgraphNodeType::kMemset);
  EXPECT_EQ(read.memset.element_size, 2u);
  EXPECT_EQ(read.memset.height, 7u);

  params = {};
  params.kernel.gridDimY = 5;
  std::memcpy(&read, &params, sizeof read);
  EXPECT_EQ(read.kernel.grid_dim_y, 5u);
  params = {};
  params.memcpy.copyParams.Depth = 9;
  std::memcpy(&read, &params, sizeof read);
  EXPECT_EQ(read.memcpy.copy_params.depth, 9u);
}

}  // namespace
}  // namespace tilewright::sim::abi

#else

TEST(SimAbiWitness, CudaHeader) {
  GTEST_SKIP() << "no cuda.h of CUDA 13.0 or newer; set TILEWRIGHT_CUDA_INCLUDE to compare with it";
}

#endif
