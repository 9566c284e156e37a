// The functions of the CUDA driver that Tilewright calls, in one table: one row adds a function.
#pragma once

#include "device/driver_abi.h"

namespace tilewright::device {

// REQUIRED(member, exported name, parameters): the library is refused without it.
// OPTIONAL(member, exported name, parameters): the member is null where the library lacks it;
// the caller checks. Every function returns CUresult.
//
// Exported names carry the version that the newest cuda.h selects (cuMemAlloc_v2; plain cuMemAlloc
// is a 32-bit relic with other parameters). One exception: cuEventElapsedTime_v2 came with
// CUDA 12.8, the unversioned one has the same parameters and every driver from 12.0 on exports it.
// clang-format off
#define TILEWRIGHT_DRIVER_FUNCTIONS(REQUIRED, OPTIONAL)                                            \
  REQUIRED(init, cuInit, (unsigned flags))                                                         \
  REQUIRED(driver_get_version, cuDriverGetVersion, (int* version))                                 \
  REQUIRED(get_error_name, cuGetErrorName, (CUresult error, const char** name))                    \
  REQUIRED(get_error_string, cuGetErrorString, (CUresult error, const char** text))                \
                                                                                                   \
  REQUIRED(device_get, cuDeviceGet, (CUdevice* device, int ordinal))                               \
  REQUIRED(device_get_count, cuDeviceGetCount, (int* count))                                       \
  REQUIRED(device_get_name, cuDeviceGetName, (char* name, int size_bytes, CUdevice device))        \
  REQUIRED(device_get_uuid, cuDeviceGetUuid_v2, (CUuuid* uuid, CUdevice device))                   \
  REQUIRED(device_total_mem, cuDeviceTotalMem_v2, (size_t* bytes, CUdevice device))                \
  REQUIRED(device_get_attribute, cuDeviceGetAttribute,                                             \
           (int* value, CUdevice_attribute attribute, CUdevice device))                            \
                                                                                                   \
  REQUIRED(device_primary_ctx_retain, cuDevicePrimaryCtxRetain,                                    \
           (CUcontext* context, CUdevice device))                                                  \
  REQUIRED(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))            \
  REQUIRED(ctx_get_current, cuCtxGetCurrent, (CUcontext* context))                                 \
  REQUIRED(ctx_set_current, cuCtxSetCurrent, (CUcontext context))                                  \
  REQUIRED(ctx_push_current, cuCtxPushCurrent_v2, (CUcontext context))                             \
  REQUIRED(ctx_pop_current, cuCtxPopCurrent_v2, (CUcontext* context))                              \
  REQUIRED(ctx_synchronize, cuCtxSynchronize, ())                                                  \
                                                                                                   \
  REQUIRED(module_load_data_ex, cuModuleLoadDataEx,                                                \
           (CUmodule* module, const void* image, unsigned num_options, CUjit_option* options,      \
            void** values))                                                                        \
  REQUIRED(module_unload, cuModuleUnload, (CUmodule module))                                       \
  REQUIRED(module_get_function, cuModuleGetFunction,                                               \
           (CUfunction* function, CUmodule module, const char* name))                              \
  REQUIRED(module_get_global, cuModuleGetGlobal_v2,                                                \
           (CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name))               \
  REQUIRED(func_get_attribute, cuFuncGetAttribute,                                                 \
           (int* value, CUfunction_attribute attribute, CUfunction function))                      \
  REQUIRED(func_set_attribute, cuFuncSetAttribute,                                                 \
           (CUfunction function, CUfunction_attribute attribute, int value))                       \
  OPTIONAL(func_get_param_info, cuFuncGetParamInfo, /* CUDA 12.4 */                                \
           (CUfunction function, size_t index, size_t* offset_bytes, size_t* size_bytes))          \
                                                                                                   \
  REQUIRED(occupancy_max_active_blocks_per_sm, cuOccupancyMaxActiveBlocksPerMultiprocessor,        \
           (int* num_blocks, CUfunction function, int block_threads, size_t dynamic_shared_bytes)) \
  REQUIRED(occupancy_max_active_clusters, cuOccupancyMaxActiveClusters,                            \
           (int* num_clusters, CUfunction function, const CUlaunchConfig* config))                 \
  REQUIRED(launch_kernel, cuLaunchKernel,                                                          \
           (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                \
            unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,   \
            CUstream stream, void** arguments, void** extra))                                      \
  REQUIRED(launch_kernel_ex, cuLaunchKernelEx,                                                     \
           (const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra))    \
                                                                                                   \
  REQUIRED(mem_alloc, cuMemAlloc_v2, (CUdeviceptr* address, size_t bytes))                         \
  REQUIRED(mem_free, cuMemFree_v2, (CUdeviceptr address))                                          \
  REQUIRED(mem_get_info, cuMemGetInfo_v2, (size_t* free_bytes, size_t* total_bytes))               \
  REQUIRED(mem_host_alloc, cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags))          \
  REQUIRED(mem_free_host, cuMemFreeHost, (void* memory))                                           \
  REQUIRED(memcpy_htod, cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t bytes))         \
  REQUIRED(memcpy_dtoh, cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t bytes))               \
  REQUIRED(memcpy_dtod, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes))         \
  REQUIRED(memcpy_htod_async, cuMemcpyHtoDAsync_v2,                                                \
           (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                      \
  REQUIRED(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2,                                                \
           (void* to, CUdeviceptr from, size_t bytes, CUstream stream))                            \
  REQUIRED(memcpy_dtod_async, cuMemcpyDtoDAsync_v2,                                                \
           (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                      \
  REQUIRED(memset_d8, cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t num_bytes))      \
  REQUIRED(memset_d32, cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t num_words))         \
  REQUIRED(memset_d8_async, cuMemsetD8Async,                                                       \
           (CUdeviceptr to, unsigned char value, size_t num_bytes, CUstream stream))               \
  REQUIRED(memset_d32_async, cuMemsetD32Async,                                                     \
           (CUdeviceptr to, unsigned value, size_t num_words, CUstream stream))                    \
  REQUIRED(pointer_get_attribute, cuPointerGetAttribute,                                           \
           (void* value, CUpointer_attribute attribute, CUdeviceptr address))                      \
                                                                                                   \
  REQUIRED(ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange,                             \
           (int* least, int* greatest))                                                            \
  REQUIRED(stream_create_with_priority, cuStreamCreateWithPriority,                                \
           (CUstream* stream, unsigned flags, int priority))                                       \
  REQUIRED(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                  \
  REQUIRED(stream_synchronize, cuStreamSynchronize, (CUstream stream))                             \
  REQUIRED(stream_query, cuStreamQuery, (CUstream stream))                                         \
  REQUIRED(stream_wait_event, cuStreamWaitEvent,                                                   \
           (CUstream stream, CUevent event, unsigned flags))                                       \
  REQUIRED(event_create, cuEventCreate, (CUevent* event, unsigned flags))                          \
  REQUIRED(event_destroy, cuEventDestroy_v2, (CUevent event))                                      \
  REQUIRED(event_record, cuEventRecord, (CUevent event, CUstream stream))                          \
  REQUIRED(event_synchronize, cuEventSynchronize, (CUevent event))                                 \
  REQUIRED(event_query, cuEventQuery, (CUevent event))                                             \
  REQUIRED(event_elapsed_time, cuEventElapsedTime,                                                 \
           (float* milliseconds, CUevent start, CUevent end))                                      \
                                                                                                   \
  REQUIRED(stream_begin_capture, cuStreamBeginCapture_v2,                                          \
           (CUstream stream, CUstreamCaptureMode mode))                                            \
  REQUIRED(stream_end_capture, cuStreamEndCapture, (CUstream stream, CUgraph* graph))              \
  REQUIRED(graph_destroy, cuGraphDestroy, (CUgraph graph))                                         \
  REQUIRED(graph_instantiate, cuGraphInstantiateWithFlags,                                         \
           (CUgraphExec* executable, CUgraph graph, unsigned long long flags))                     \
  REQUIRED(graph_launch, cuGraphLaunch, (CUgraphExec executable, CUstream stream))                 \
  REQUIRED(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec executable))                       \
  OPTIONAL(graph_get_nodes, cuGraphGetNodes,                                                       \
           (CUgraph graph, CUgraphNode* nodes, size_t* count))                                     \
  OPTIONAL(graph_node_get_type, cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType* type))     \
  OPTIONAL(graph_kernel_node_get_params, cuGraphKernelNodeGetParams_v2,                            \
           (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params))                                    \
  OPTIONAL(func_get_name, cuFuncGetName, /* CUDA 12.3 */ (const char** name, CUfunction function)) \
  OPTIONAL(kernel_get_name, cuKernelGetName, /* CUDA 12.3 */ (const char** name, CUkernel kernel)) \
                                                                                                   \
  REQUIRED(tensor_map_encode_tiled, cuTensorMapEncodeTiled,                                        \
           (CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank, void* address,         \
            const std::uint64_t* dims, const std::uint64_t* strides_bytes,                         \
            const std::uint32_t* box, const std::uint32_t* element_strides,                        \
            CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,                          \
            CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill))
// clang-format on

namespace abi {

/// The table: one pointer per row, null until filled.
struct DriverFunctions {
#define TILEWRIGHT_MEMBER(member, exported, parameters) CUresult(*member) parameters = nullptr;
  TILEWRIGHT_DRIVER_FUNCTIONS(TILEWRIGHT_MEMBER, TILEWRIGHT_MEMBER)
#undef TILEWRIGHT_MEMBER
};

}  // namespace abi
}  // namespace tilewright::device
