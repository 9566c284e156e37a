// Every function that a CUDA 13.0 driver exports, in two tables: those that the simulator has, and
// those that it answers with CUDA_ERROR_NOT_SUPPORTED.
#pragma once

#include "sim/driver/abi/abi.h"

// X(exported name, CUDA version that introduced it, parameter types)
// clang-format off
#define TILEWRIGHT_SIM_FUNCTIONS(X) \
  X(cuCtxCreate_v2, 3020, (CUcontext*, unsigned, CUdevice)) \
  X(cuCtxCreate_v4, 12050, (CUcontext*, CUctxCreateParams*, unsigned, CUdevice)) \
  X(cuCtxDestroy_v2, 4000, (CUcontext)) \
  X(cuCtxDisablePeerAccess, 4000, (CUcontext)) \
  X(cuCtxEnablePeerAccess, 4000, (CUcontext, unsigned)) \
  X(cuCtxGetApiVersion, 3020, (CUcontext, unsigned*)) \
  X(cuCtxGetCacheConfig, 3020, (CUfunc_cache*)) \
  X(cuCtxGetCurrent, 4000, (CUcontext*)) \
  X(cuCtxGetDevice, 2000, (CUdevice*)) \
  X(cuCtxGetDevice_v2, 13000, (CUdevice*, CUcontext)) \
  X(cuCtxGetFlags, 7000, (unsigned*)) \
  X(cuCtxGetId, 12000, (CUcontext, unsigned long long*)) \
  X(cuCtxGetLimit, 3010, (size_t*, CUlimit)) \
  X(cuCtxGetSharedMemConfig, 4020, (CUsharedconfig*)) \
  X(cuCtxGetStreamPriorityRange, 5050, (int*, int*)) \
  X(cuCtxPopCurrent_v2, 4000, (CUcontext*)) \
  X(cuCtxPushCurrent_v2, 4000, (CUcontext)) \
  X(cuCtxResetPersistingL2Cache, 11000, ()) \
  X(cuCtxSetCacheConfig, 3020, (CUfunc_cache)) \
  X(cuCtxSetCurrent, 4000, (CUcontext)) \
  X(cuCtxSetFlags, 12010, (unsigned)) \
  X(cuCtxSetLimit, 3010, (CUlimit, size_t)) \
  X(cuCtxSetSharedMemConfig, 4020, (CUsharedconfig)) \
  X(cuCtxSynchronize, 2000, ()) \
  X(cuCtxSynchronize_v2, 13000, (CUcontext)) \
  X(cuDeviceCanAccessPeer, 4000, (int*, CUdevice, CUdevice)) \
  X(cuDeviceComputeCapability, 2000, (int*, int*, CUdevice)) \
  X(cuDeviceGet, 2000, (CUdevice*, int)) \
  X(cuDeviceGetAttribute, 2000, (int*, CUdevice_attribute, CUdevice)) \
  X(cuDeviceGetByPCIBusId, 4010, (CUdevice*, const char*)) \
  X(cuDeviceGetCount, 2000, (int*)) \
  X(cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool*, CUdevice)) \
  X(cuDeviceGetGraphMemAttribute, 11040, (CUdevice, CUgraphMem_attribute, void*)) \
  X(cuDeviceGetLuid, 10000, (char*, unsigned*, CUdevice)) \
  X(cuDeviceGetMemPool, 11020, (CUmemoryPool*, CUdevice)) \
  X(cuDeviceGetName, 2000, (char*, int, CUdevice)) \
  X(cuDeviceGetP2PAttribute, 8000, (int*, CUdevice_P2PAttribute, CUdevice, CUdevice)) \
  X(cuDeviceGetPCIBusId, 4010, (char*, int, CUdevice)) \
  X(cuDeviceGetProperties, 2000, (CUdevprop*, CUdevice)) \
  X(cuDeviceGetUuid_v2, 11040, (CUuuid*, CUdevice)) \
  X(cuDeviceGraphMemTrim, 11040, (CUdevice)) \
  X(cuDevicePrimaryCtxGetState, 7000, (CUdevice, unsigned*, int*)) \
  X(cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice)) \
  X(cuDevicePrimaryCtxReset_v2, 11000, (CUdevice)) \
  X(cuDevicePrimaryCtxRetain, 7000, (CUcontext*, CUdevice)) \
  X(cuDevicePrimaryCtxSetFlags_v2, 11000, (CUdevice, unsigned)) \
  X(cuDeviceSetGraphMemAttribute, 11040, (CUdevice, CUgraphMem_attribute, void*)) \
  X(cuDeviceSetMemPool, 11020, (CUdevice, CUmemoryPool)) \
  X(cuDeviceTotalMem_v2, 3020, (size_t*, CUdevice)) \
  X(cuDriverGetVersion, 2020, (int*)) \
  X(cuEventCreate, 2000, (CUevent*, unsigned)) \
  X(cuEventDestroy_v2, 4000, (CUevent)) \
  X(cuEventElapsedTime_v2, 12080, (float*, CUevent, CUevent)) \
  X(cuEventQuery, 2000, (CUevent)) \
  X(cuEventRecord, 2000, (CUevent, CUstream)) \
  X(cuEventRecordWithFlags, 11010, (CUevent, CUstream, unsigned)) \
  X(cuEventSynchronize, 2000, (CUevent)) \
  X(cuFuncGetAttribute, 2020, (int*, CUfunction_attribute, CUfunction)) \
  X(cuFuncGetModule, 11000, (CUmodule*, CUfunction)) \
  X(cuFuncGetName, 12030, (const char**, CUfunction)) \
  X(cuFuncGetParamInfo, 12040, (CUfunction, size_t, size_t*, size_t*)) \
  X(cuFuncIsLoaded, 12040, (CUfunctionLoadingState*, CUfunction)) \
  X(cuFuncLoad, 12040, (CUfunction)) \
  X(cuFuncSetAttribute, 9000, (CUfunction, CUfunction_attribute, int)) \
  X(cuFuncSetCacheConfig, 3000, (CUfunction, CUfunc_cache)) \
  X(cuFuncSetSharedMemConfig, 4020, (CUfunction, CUsharedconfig)) \
  X(cuGetErrorName, 6000, (CUresult, const char**)) \
  X(cuGetErrorString, 6000, (CUresult, const char**)) \
  X(cuGetExportTable, 3000, (const void**, const CUuuid*)) \
  X(cuGetProcAddress, 11030, (const char*, void**, int, std::uint64_t)) \
  X(cuGetProcAddress_v2, 12000, \
    (const char*, void**, int, std::uint64_t, CUdriverProcAddressQueryResult*)) \
  X(cuGraphAddChildGraphNode, 10000, (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph)) \
  X(cuGraphAddDependencies, 10000, (CUgraph, const CUgraphNode*, const CUgraphNode*, size_t)) \
  X(cuGraphAddDependencies_v2, 12030, \
    (CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*, size_t)) \
  X(cuGraphAddEmptyNode, 10000, (CUgraphNode*, CUgraph, const CUgraphNode*, size_t)) \
  X(cuGraphAddEventRecordNode, 11010, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUevent)) \
  X(cuGraphAddEventWaitNode, 11010, (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUevent)) \
  X(cuGraphAddHostNode, 10000, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_HOST_NODE_PARAMS*)) \
  X(cuGraphAddKernelNode_v2, 12000, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS*)) \
  X(cuGraphAddMemcpyNode, 10000, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D*, CUcontext)) \
  X(cuGraphAddMemsetNode, 10000, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMSET_NODE_PARAMS*, \
     CUcontext)) \
  X(cuGraphAddNode, 12020, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraphNodeParams*)) \
  X(cuGraphAddNode_v2, 12030, \
    (CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t, \
     CUgraphNodeParams*)) \
  X(cuGraphChildGraphNodeGetGraph, 10000, (CUgraphNode, CUgraph*)) \
  X(cuGraphClone, 10000, (CUgraph*, CUgraph)) \
  X(cuGraphCreate, 10000, (CUgraph*, unsigned)) \
  X(cuGraphDebugDotPrint, 11030, (CUgraph, const char*, unsigned)) \
  X(cuGraphDestroy, 10000, (CUgraph)) \
  X(cuGraphDestroyNode, 10000, (CUgraphNode)) \
  X(cuGraphEventRecordNodeGetEvent, 11010, (CUgraphNode, CUevent*)) \
  X(cuGraphEventRecordNodeSetEvent, 11010, (CUgraphNode, CUevent)) \
  X(cuGraphEventWaitNodeGetEvent, 11010, (CUgraphNode, CUevent*)) \
  X(cuGraphEventWaitNodeSetEvent, 11010, (CUgraphNode, CUevent)) \
  X(cuGraphExecChildGraphNodeSetParams, 11010, (CUgraphExec, CUgraphNode, CUgraph)) \
  X(cuGraphExecDestroy, 10000, (CUgraphExec)) \
  X(cuGraphExecEventRecordNodeSetEvent, 11010, (CUgraphExec, CUgraphNode, CUevent)) \
  X(cuGraphExecEventWaitNodeSetEvent, 11010, (CUgraphExec, CUgraphNode, CUevent)) \
  X(cuGraphExecGetFlags, 12000, (CUgraphExec, std::uint64_t*)) \
  X(cuGraphExecHostNodeSetParams, 10020, (CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS*)) \
  X(cuGraphExecKernelNodeSetParams_v2, 12000, \
    (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*)) \
  X(cuGraphExecMemcpyNodeSetParams, 10020, \
    (CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*, CUcontext)) \
  X(cuGraphExecMemsetNodeSetParams, 10020, \
    (CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*, CUcontext)) \
  X(cuGraphExecNodeSetParams, 12020, (CUgraphExec, CUgraphNode, CUgraphNodeParams*)) \
  X(cuGraphExecUpdate_v2, 12000, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)) \
  X(cuGraphGetEdges, 10000, (CUgraph, CUgraphNode*, CUgraphNode*, size_t*)) \
  X(cuGraphGetEdges_v2, 12030, (CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, size_t*)) \
  X(cuGraphGetNodes, 10000, (CUgraph, CUgraphNode*, size_t*)) \
  X(cuGraphGetRootNodes, 10000, (CUgraph, CUgraphNode*, size_t*)) \
  X(cuGraphHostNodeGetParams, 10000, (CUgraphNode, CUDA_HOST_NODE_PARAMS*)) \
  X(cuGraphHostNodeSetParams, 10000, (CUgraphNode, const CUDA_HOST_NODE_PARAMS*)) \
  X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec*, CUgraph, unsigned long long)) \
  X(cuGraphInstantiateWithParams, 12000, (CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*)) \
  X(cuGraphInstantiate_v2, 11000, (CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t)) \
  X(cuGraphKernelNodeCopyAttributes, 11000, (CUgraphNode, CUgraphNode)) \
  X(cuGraphKernelNodeGetAttribute, 11000, \
    (CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue*)) \
  X(cuGraphKernelNodeGetParams_v2, 12000, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)) \
  X(cuGraphKernelNodeSetAttribute, 11000, \
    (CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue*)) \
  X(cuGraphKernelNodeSetParams_v2, 12000, (CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*)) \
  X(cuGraphLaunch, 10000, (CUgraphExec, CUstream)) \
  X(cuGraphMemcpyNodeGetParams, 10000, (CUgraphNode, CUDA_MEMCPY3D*)) \
  X(cuGraphMemcpyNodeSetParams, 10000, (CUgraphNode, const CUDA_MEMCPY3D*)) \
  X(cuGraphMemsetNodeGetParams, 10000, (CUgraphNode, CUDA_MEMSET_NODE_PARAMS*)) \
  X(cuGraphMemsetNodeSetParams, 10000, (CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*)) \
  X(cuGraphNodeFindInClone, 10000, (CUgraphNode*, CUgraphNode, CUgraph)) \
  X(cuGraphNodeGetDependencies, 10000, (CUgraphNode, CUgraphNode*, size_t*)) \
  X(cuGraphNodeGetDependencies_v2, 12030, (CUgraphNode, CUgraphNode*, CUgraphEdgeData*, size_t*)) \
  X(cuGraphNodeGetDependentNodes, 10000, (CUgraphNode, CUgraphNode*, size_t*)) \
  X(cuGraphNodeGetDependentNodes_v2, 12030, \
    (CUgraphNode, CUgraphNode*, CUgraphEdgeData*, size_t*)) \
  X(cuGraphNodeGetEnabled, 11060, (CUgraphExec, CUgraphNode, unsigned*)) \
  X(cuGraphNodeGetType, 10000, (CUgraphNode, CUgraphNodeType*)) \
  X(cuGraphNodeSetEnabled, 11060, (CUgraphExec, CUgraphNode, unsigned)) \
  X(cuGraphNodeSetParams, 12020, (CUgraphNode, CUgraphNodeParams*)) \
  X(cuGraphReleaseUserObject, 11030, (CUgraph, CUuserObject, unsigned)) \
  X(cuGraphRemoveDependencies, 10000, (CUgraph, const CUgraphNode*, const CUgraphNode*, size_t)) \
  X(cuGraphRemoveDependencies_v2, 12030, \
    (CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*, size_t)) \
  X(cuGraphRetainUserObject, 11030, (CUgraph, CUuserObject, unsigned, unsigned)) \
  X(cuGraphUpload, 11010, (CUgraphExec, CUstream)) \
  X(cuInit, 2000, (unsigned)) \
  X(cuKernelGetAttribute, 12000, (int*, CUfunction_attribute, CUkernel, CUdevice)) \
  X(cuKernelGetFunction, 12000, (CUfunction*, CUkernel)) \
  X(cuKernelGetLibrary, 12050, (CUlibrary*, CUkernel)) \
  X(cuKernelGetName, 12030, (const char**, CUkernel)) \
  X(cuKernelGetParamInfo, 12040, (CUkernel, size_t, size_t*, size_t*)) \
  X(cuKernelSetAttribute, 12000, (CUfunction_attribute, int, CUkernel, CUdevice)) \
  X(cuKernelSetCacheConfig, 12000, (CUkernel, CUfunc_cache, CUdevice)) \
  X(cuLaunchCooperativeKernel, 9000, \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     CUstream, void**)) \
  X(cuLaunchHostFunc, 10000, (CUstream, CUhostFn, void*)) \
  X(cuLaunchKernel, 4000, \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     CUstream, void**, void**)) \
  X(cuLaunchKernelEx, 11060, (const CUlaunchConfig*, CUfunction, void**, void**)) \
  X(cuLibraryEnumerateKernels, 12040, (CUkernel*, unsigned, CUlibrary)) \
  X(cuLibraryGetGlobal, 12000, (CUdeviceptr*, size_t*, CUlibrary, const char*)) \
  X(cuLibraryGetKernel, 12000, (CUkernel*, CUlibrary, const char*)) \
  X(cuLibraryGetKernelCount, 12040, (unsigned*, CUlibrary)) \
  X(cuLibraryGetManaged, 12000, (CUdeviceptr*, size_t*, CUlibrary, const char*)) \
  X(cuLibraryGetModule, 12000, (CUmodule*, CUlibrary)) \
  X(cuLibraryLoadData, 12000, \
    (CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, \
     unsigned)) \
  X(cuLibraryLoadFromFile, 12000, \
    (CUlibrary*, const char*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, \
     unsigned)) \
  X(cuLibraryUnload, 12000, (CUlibrary)) \
  X(cuLinkAddData_v2, 6050, \
    (CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned, CUjit_option*, void**)) \
  X(cuLinkAddFile_v2, 6050, \
    (CUlinkState, CUjitInputType, const char*, unsigned, CUjit_option*, void**)) \
  X(cuLinkComplete, 5050, (CUlinkState, void**, size_t*)) \
  X(cuLinkCreate_v2, 6050, (unsigned, CUjit_option*, void**, CUlinkState*)) \
  X(cuLinkDestroy, 5050, (CUlinkState)) \
  X(cuMemAdvise, 8000, (CUdeviceptr, size_t, CUmem_advise, CUdevice)) \
  X(cuMemAdvise_v2, 12020, (CUdeviceptr, size_t, CUmem_advise, CUmemLocation)) \
  X(cuMemAllocAsync, 11020, (CUdeviceptr*, size_t, CUstream)) \
  X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr*, size_t, CUmemoryPool, CUstream)) \
  X(cuMemAllocHost, 2000, (void**, unsigned)) \
  X(cuMemAllocHost_v2, 3020, (void**, size_t)) \
  X(cuMemAllocManaged, 6000, (CUdeviceptr*, size_t, unsigned)) \
  X(cuMemAllocPitch_v2, 3020, (CUdeviceptr*, size_t*, size_t, size_t, unsigned)) \
  X(cuMemAlloc_v2, 3020, (CUdeviceptr*, size_t)) \
  X(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream)) \
  X(cuMemFreeHost, 2000, (void*)) \
  X(cuMemFree_v2, 3020, (CUdeviceptr)) \
  X(cuMemGetAddressRange_v2, 3020, (CUdeviceptr*, size_t*, CUdeviceptr)) \
  X(cuMemGetDefaultMemPool, 13000, (CUmemoryPool*, CUmemLocation*, CUmemAllocationType)) \
  X(cuMemGetInfo_v2, 3020, (size_t*, size_t*)) \
  X(cuMemGetMemPool, 13000, (CUmemoryPool*, CUmemLocation*, CUmemAllocationType)) \
  X(cuMemHostAlloc, 2020, (void**, size_t, unsigned)) \
  X(cuMemHostGetDevicePointer_v2, 3020, (CUdeviceptr*, void*, unsigned)) \
  X(cuMemHostGetFlags, 2030, (unsigned*, void*)) \
  X(cuMemHostRegister_v2, 6050, (void*, size_t, unsigned)) \
  X(cuMemHostUnregister, 4000, (void*)) \
  X(cuMemPoolCreate, 11020, (CUmemoryPool*, const CUmemPoolProps*)) \
  X(cuMemPoolDestroy, 11020, (CUmemoryPool)) \
  X(cuMemPoolGetAccess, 11020, (CUmemAccess_flags*, CUmemoryPool, CUmemLocation*)) \
  X(cuMemPoolGetAttribute, 11020, (CUmemoryPool, CUmemPool_attribute, void*)) \
  X(cuMemPoolSetAccess, 11020, (CUmemoryPool, const CUmemAccessDesc*, size_t)) \
  X(cuMemPoolSetAttribute, 11020, (CUmemoryPool, CUmemPool_attribute, void*)) \
  X(cuMemPoolTrimTo, 11020, (CUmemoryPool, size_t)) \
  X(cuMemPrefetchAsync, 8000, (CUdeviceptr, size_t, CUdevice, CUstream)) \
  X(cuMemPrefetchAsync_v2, 12020, (CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream)) \
  X(cuMemRangeGetAttribute, 8000, (void*, size_t, CUmem_range_attribute, CUdeviceptr, size_t)) \
  X(cuMemRangeGetAttributes, 8000, \
    (void**, size_t*, CUmem_range_attribute*, size_t, CUdeviceptr, size_t)) \
  X(cuMemSetMemPool, 13000, (CUmemLocation*, CUmemAllocationType, CUmemoryPool)) \
  X(cuMemcpy, 4000, (CUdeviceptr, CUdeviceptr, size_t)) \
  X(cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D*, CUstream)) \
  X(cuMemcpy2DUnaligned_v2, 3020, (const CUDA_MEMCPY2D*)) \
  X(cuMemcpy2D_v2, 3020, (const CUDA_MEMCPY2D*)) \
  X(cuMemcpy3DAsync_v2, 3020, (const CUDA_MEMCPY3D*, CUstream)) \
  X(cuMemcpy3DPeer, 4000, (const CUDA_MEMCPY3D_PEER*)) \
  X(cuMemcpy3DPeerAsync, 4000, (const CUDA_MEMCPY3D_PEER*, CUstream)) \
  X(cuMemcpy3D_v2, 3020, (const CUDA_MEMCPY3D*)) \
  X(cuMemcpyAsync, 4000, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
  X(cuMemcpyDtoDAsync_v2, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
  X(cuMemcpyDtoD_v2, 3020, (CUdeviceptr, CUdeviceptr, size_t)) \
  X(cuMemcpyDtoHAsync_v2, 3020, (void*, CUdeviceptr, size_t, CUstream)) \
  X(cuMemcpyDtoH_v2, 3020, (void*, CUdeviceptr, size_t)) \
  X(cuMemcpyHtoDAsync_v2, 3020, (CUdeviceptr, const void*, size_t, CUstream)) \
  X(cuMemcpyHtoD_v2, 3020, (CUdeviceptr, const void*, size_t)) \
  X(cuMemcpyPeer, 4000, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)) \
  X(cuMemcpyPeerAsync, 4000, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
  X(cuMemsetD16Async, 3020, (CUdeviceptr, unsigned short, size_t, CUstream)) \
  X(cuMemsetD16_v2, 3020, (CUdeviceptr, unsigned short, size_t)) \
  X(cuMemsetD2D16Async, 3020, (CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream)) \
  X(cuMemsetD2D16_v2, 3020, (CUdeviceptr, size_t, unsigned short, size_t, size_t)) \
  X(cuMemsetD2D32Async, 3020, (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream)) \
  X(cuMemsetD2D32_v2, 3020, (CUdeviceptr, size_t, unsigned, size_t, size_t)) \
  X(cuMemsetD2D8Async, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream)) \
  X(cuMemsetD2D8_v2, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t)) \
  X(cuMemsetD32Async, 3020, (CUdeviceptr, unsigned, size_t, CUstream)) \
  X(cuMemsetD32_v2, 3020, (CUdeviceptr, unsigned, size_t)) \
  X(cuMemsetD8Async, 3020, (CUdeviceptr, unsigned char, size_t, CUstream)) \
  X(cuMemsetD8_v2, 3020, (CUdeviceptr, unsigned char, size_t)) \
  X(cuModuleEnumerateFunctions, 12040, (CUfunction*, unsigned, CUmodule)) \
  X(cuModuleGetFunction, 2000, (CUfunction*, CUmodule, const char*)) \
  X(cuModuleGetFunctionCount, 12040, (unsigned*, CUmodule)) \
  X(cuModuleGetGlobal_v2, 3020, (CUdeviceptr*, size_t*, CUmodule, const char*)) \
  X(cuModuleGetLoadingMode, 11070, (CUmoduleLoadingMode*)) \
  X(cuModuleLoad, 2000, (CUmodule*, const char*)) \
  X(cuModuleLoadData, 2000, (CUmodule*, const void*)) \
  X(cuModuleLoadDataEx, 2010, (CUmodule*, const void*, unsigned, CUjit_option*, void**)) \
  X(cuModuleLoadFatBinary, 2000, (CUmodule*, const void*)) \
  X(cuModuleUnload, 2000, (CUmodule)) \
  X(cuOccupancyAvailableDynamicSMemPerBlock, 10020, (size_t*, CUfunction, int, int)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (int*, CUfunction, int, size_t)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, \
    (int*, CUfunction, int, size_t, unsigned)) \
  X(cuOccupancyMaxActiveClusters, 11070, (int*, CUfunction, const CUlaunchConfig*)) \
  X(cuOccupancyMaxPotentialBlockSize, 6050, \
    (int*, int*, CUfunction, CUoccupancyB2DSize, size_t, int)) \
  X(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, \
    (int*, int*, CUfunction, CUoccupancyB2DSize, size_t, int, unsigned)) \
  X(cuOccupancyMaxPotentialClusterSize, 11070, (int*, CUfunction, const CUlaunchConfig*)) \
  X(cuPointerGetAttribute, 4000, (void*, CUpointer_attribute, CUdeviceptr)) \
  X(cuPointerGetAttributes, 7000, (unsigned, CUpointer_attribute*, void**, CUdeviceptr)) \
  X(cuPointerSetAttribute, 6000, (const void*, CUpointer_attribute, CUdeviceptr)) \
  X(cuProfilerStart, 4000, ()) \
  X(cuProfilerStop, 4000, ()) \
  X(cuStreamAddCallback, 5000, (CUstream, CUstreamCallback, void*, unsigned)) \
  X(cuStreamAttachMemAsync, 6000, (CUstream, CUdeviceptr, size_t, unsigned)) \
  X(cuStreamBeginCapture, 10000, (CUstream)) \
  X(cuStreamBeginCaptureToGraph, 12030, \
    (CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t, \
     CUstreamCaptureMode)) \
  X(cuStreamBeginCapture_v2, 10010, (CUstream, CUstreamCaptureMode)) \
  X(cuStreamCopyAttributes, 11000, (CUstream, CUstream)) \
  X(cuStreamCreate, 2000, (CUstream*, unsigned)) \
  X(cuStreamCreateWithPriority, 5050, (CUstream*, unsigned, int)) \
  X(cuStreamDestroy_v2, 4000, (CUstream)) \
  X(cuStreamEndCapture, 10000, (CUstream, CUgraph*)) \
  X(cuStreamGetAttribute, 11000, (CUstream, CUstreamAttrID, CUstreamAttrValue*)) \
  X(cuStreamGetCaptureInfo, 10010, (CUstream, CUstreamCaptureStatus*, std::uint64_t*)) \
  X(cuStreamGetCaptureInfo_v2, 11030, \
    (CUstream, CUstreamCaptureStatus*, std::uint64_t*, CUgraph*, const CUgraphNode**, size_t*)) \
  X(cuStreamGetCaptureInfo_v3, 12030, \
    (CUstream, CUstreamCaptureStatus*, std::uint64_t*, CUgraph*, const CUgraphNode**, \
     const CUgraphEdgeData**, size_t*)) \
  X(cuStreamGetCtx, 9020, (CUstream, CUcontext*)) \
  X(cuStreamGetDevice, 12080, (CUstream, CUdevice*)) \
  X(cuStreamGetFlags, 5050, (CUstream, unsigned*)) \
  X(cuStreamGetId, 12000, (CUstream, unsigned long long*)) \
  X(cuStreamGetPriority, 5050, (CUstream, int*)) \
  X(cuStreamIsCapturing, 10000, (CUstream, CUstreamCaptureStatus*)) \
  X(cuStreamQuery, 2000, (CUstream)) \
  X(cuStreamSetAttribute, 11000, (CUstream, CUstreamAttrID, const CUstreamAttrValue*)) \
  X(cuStreamSynchronize, 2000, (CUstream)) \
  X(cuStreamUpdateCaptureDependencies, 11030, (CUstream, CUgraphNode*, size_t, unsigned)) \
  X(cuStreamUpdateCaptureDependencies_v2, 12030, \
    (CUstream, CUgraphNode*, const CUgraphEdgeData*, size_t, unsigned)) \
  X(cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned)) \
  X(cuStreamWriteValue32_v2, 11070, (CUstream, CUdeviceptr, std::uint32_t, unsigned)) \
  X(cuStreamWriteValue64_v2, 11070, (CUstream, CUdeviceptr, std::uint64_t, unsigned)) \
  X(cuTensorMapEncodeIm2col, 12000, \
    (CUtensorMap*, CUtensorMapDataType, std::uint32_t, void*, const std::uint64_t*, \
     const std::uint64_t*, const int*, const int*, std::uint32_t, std::uint32_t, \
     const std::uint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, \
     CUtensorMapFloatOOBfill)) \
  X(cuTensorMapEncodeIm2colWide, 12080, \
    (CUtensorMap*, CUtensorMapDataType, std::uint32_t, void*, const std::uint64_t*, \
     const std::uint64_t*, int, int, std::uint32_t, std::uint32_t, const std::uint32_t*, \
     CUtensorMapInterleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle, \
     CUtensorMapL2promotion, CUtensorMapFloatOOBfill)) \
  X(cuTensorMapEncodeTiled, 12000, \
    (CUtensorMap*, CUtensorMapDataType, std::uint32_t, void*, const std::uint64_t*, \
     const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, CUtensorMapInterleave, \
     CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill)) \
  X(cuTensorMapReplaceAddress, 12000, (CUtensorMap*, void*)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode*)) \
  X(cuUserObjectCreate, 11030, (CUuserObject*, void*, CUhostFn, unsigned, unsigned)) \
  X(cuUserObjectRelease, 11030, (CUuserObject, unsigned)) \
  X(cuUserObjectRetain, 11030, (CUuserObject, unsigned))

// X(exported name, CUDA version that introduced it)
#define TILEWRIGHT_SIM_UNSUPPORTED_FUNCTIONS(X) \
  X(cuArray3DCreate, 2000) \
  X(cuArray3DCreate_v2, 3020) \
  X(cuArray3DGetDescriptor, 2000) \
  X(cuArray3DGetDescriptor_v2, 3020) \
  X(cuArrayCreate, 2000) \
  X(cuArrayCreate_v2, 3020) \
  X(cuArrayDestroy, 2000) \
  X(cuArrayGetDescriptor, 2000) \
  X(cuArrayGetDescriptor_v2, 3020) \
  X(cuArrayGetMemoryRequirements, 11060) \
  X(cuArrayGetPlane, 11020) \
  X(cuArrayGetSparseProperties, 11010) \
  X(cuCheckpointProcessCheckpoint, 12080) \
  X(cuCheckpointProcessGetRestoreThreadId, 12080) \
  X(cuCheckpointProcessGetState, 12080) \
  X(cuCheckpointProcessLock, 12080) \
  X(cuCheckpointProcessRestore, 12080) \
  X(cuCheckpointProcessUnlock, 12080) \
  X(cuCoredumpGetAttribute, 12010) \
  X(cuCoredumpGetAttributeGlobal, 12010) \
  X(cuCoredumpSetAttribute, 12010) \
  X(cuCoredumpSetAttributeGlobal, 12010) \
  X(cuCtxAttach, 2000) \
  X(cuCtxCreate_v3, 11040) \
  X(cuCtxDetach, 2000) \
  X(cuCtxFromGreenCtx, 12040) \
  X(cuCtxGetDevResource, 12040) \
  X(cuCtxGetExecAffinity, 11040) \
  X(cuCtxRecordEvent, 12050) \
  X(cuCtxWaitEvent, 12050) \
  X(cuDestroyExternalMemory, 10000) \
  X(cuDestroyExternalSemaphore, 10000) \
  X(cuDevResourceGenerateDesc, 12040) \
  X(cuDevSmResourceSplitByCount, 12040) \
  X(cuDeviceGetDevResource, 12040) \
  X(cuDeviceGetExecAffinitySupport, 11040) \
  X(cuDeviceGetHostAtomicCapabilities, 13000) \
  X(cuDeviceGetNvSciSyncAttributes, 10020) \
  X(cuDeviceGetP2PAtomicCapabilities, 13000) \
  X(cuDeviceGetTexture1DLinearMaxWidth, 11010) \
  X(cuDeviceRegisterAsyncNotification, 12040) \
  X(cuDeviceTotalMem, 2000) \
  X(cuDeviceUnregisterAsyncNotification, 12040) \
  X(cuExternalMemoryGetMappedBuffer, 10000) \
  X(cuExternalMemoryGetMappedMipmappedArray, 10000) \
  X(cuFlushGPUDirectRDMAWrites, 11030) \
  X(cuFuncSetBlockShape, 2000) \
  X(cuFuncSetSharedSize, 2000) \
  X(cuGraphAddBatchMemOpNode, 11070) \
  X(cuGraphAddExternalSemaphoresSignalNode, 11020) \
  X(cuGraphAddExternalSemaphoresWaitNode, 11020) \
  X(cuGraphAddKernelNode, 10000) \
  X(cuGraphAddMemAllocNode, 11040) \
  X(cuGraphAddMemFreeNode, 11040) \
  X(cuGraphBatchMemOpNodeGetParams, 11070) \
  X(cuGraphBatchMemOpNodeSetParams, 11070) \
  X(cuGraphConditionalHandleCreate, 12030) \
  X(cuGraphExecBatchMemOpNodeSetParams, 11070) \
  X(cuGraphExecExternalSemaphoresSignalNodeSetParams, 11020) \
  X(cuGraphExecExternalSemaphoresWaitNodeSetParams, 11020) \
  X(cuGraphExecKernelNodeSetParams, 10010) \
  X(cuGraphExecUpdate, 10020) \
  X(cuGraphExternalSemaphoresSignalNodeGetParams, 11020) \
  X(cuGraphExternalSemaphoresSignalNodeSetParams, 11020) \
  X(cuGraphExternalSemaphoresWaitNodeGetParams, 11020) \
  X(cuGraphExternalSemaphoresWaitNodeSetParams, 11020) \
  X(cuGraphInstantiate, 10000) \
  X(cuGraphKernelNodeGetParams, 10000) \
  X(cuGraphKernelNodeSetParams, 10000) \
  X(cuGraphMemAllocNodeGetParams, 11040) \
  X(cuGraphMemFreeNodeGetParams, 11040) \
  X(cuGraphicsMapResources, 3000) \
  X(cuGraphicsResourceGetMappedMipmappedArray, 5000) \
  X(cuGraphicsResourceGetMappedPointer, 3000) \
  X(cuGraphicsResourceGetMappedPointer_v2, 3020) \
  X(cuGraphicsResourceSetMapFlags, 3000) \
  X(cuGraphicsResourceSetMapFlags_v2, 6050) \
  X(cuGraphicsSubResourceGetMappedArray, 3000) \
  X(cuGraphicsUnmapResources, 3000) \
  X(cuGraphicsUnregisterResource, 3000) \
  X(cuGreenCtxCreate, 12040) \
  X(cuGreenCtxDestroy, 12040) \
  X(cuGreenCtxGetDevResource, 12040) \
  X(cuGreenCtxGetId, 12090) \
  X(cuGreenCtxRecordEvent, 12040) \
  X(cuGreenCtxStreamCreate, 12050) \
  X(cuGreenCtxWaitEvent, 12040) \
  X(cuImportExternalMemory, 10000) \
  X(cuImportExternalSemaphore, 10000) \
  X(cuIpcCloseMemHandle, 4010) \
  X(cuIpcGetEventHandle, 4010) \
  X(cuIpcGetMemHandle, 4010) \
  X(cuIpcOpenEventHandle, 4010) \
  X(cuIpcOpenMemHandle, 4010) \
  X(cuIpcOpenMemHandle_v2, 11000) \
  X(cuLaunch, 2000) \
  X(cuLaunchCooperativeKernelMultiDevice, 9000) \
  X(cuLaunchGrid, 2000) \
  X(cuLaunchGridAsync, 2000) \
  X(cuLibraryGetUnifiedFunction, 12000) \
  X(cuLinkAddData, 5050) \
  X(cuLinkAddFile, 5050) \
  X(cuLinkCreate, 5050) \
  X(cuLogsCurrent, 12090) \
  X(cuLogsDumpToFile, 12090) \
  X(cuLogsDumpToMemory, 12090) \
  X(cuLogsRegisterCallback, 12090) \
  X(cuLogsUnregisterCallback, 12090) \
  X(cuMemAddressFree, 10020) \
  X(cuMemAddressReserve, 10020) \
  X(cuMemAlloc, 2000) \
  X(cuMemAllocPitch, 2000) \
  X(cuMemBatchDecompressAsync, 12060) \
  X(cuMemCreate, 10020) \
  X(cuMemDiscardAndPrefetchBatchAsync, 13000) \
  X(cuMemDiscardBatchAsync, 13000) \
  X(cuMemExportToShareableHandle, 10020) \
  X(cuMemFree, 2000) \
  X(cuMemGetAccess, 10020) \
  X(cuMemGetAddressRange, 2000) \
  X(cuMemGetAllocationGranularity, 10020) \
  X(cuMemGetAllocationPropertiesFromHandle, 10020) \
  X(cuMemGetHandleForAddressRange, 11070) \
  X(cuMemGetInfo, 2000) \
  X(cuMemHostGetDevicePointer, 2020) \
  X(cuMemImportFromShareableHandle, 10020) \
  X(cuMemMap, 10020) \
  X(cuMemMapArrayAsync, 11010) \
  X(cuMemPoolExportPointer, 11020) \
  X(cuMemPoolExportToShareableHandle, 11020) \
  X(cuMemPoolImportFromShareableHandle, 11020) \
  X(cuMemPoolImportPointer, 11020) \
  X(cuMemPrefetchBatchAsync, 13000) \
  X(cuMemRelease, 10020) \
  X(cuMemRetainAllocationHandle, 11000) \
  X(cuMemSetAccess, 10020) \
  X(cuMemUnmap, 10020) \
  X(cuMemcpy2D, 2000) \
  X(cuMemcpy2DAsync, 2000) \
  X(cuMemcpy2DUnaligned, 2000) \
  X(cuMemcpy3D, 2000) \
  X(cuMemcpy3DAsync, 2000) \
  X(cuMemcpy3DBatchAsync, 12080) \
  X(cuMemcpy3DBatchAsync_v2, 13000) \
  X(cuMemcpyAtoA, 2000) \
  X(cuMemcpyAtoA_v2, 3020) \
  X(cuMemcpyAtoD, 2000) \
  X(cuMemcpyAtoD_v2, 3020) \
  X(cuMemcpyAtoH, 2000) \
  X(cuMemcpyAtoHAsync, 2000) \
  X(cuMemcpyAtoHAsync_v2, 3020) \
  X(cuMemcpyAtoH_v2, 3020) \
  X(cuMemcpyBatchAsync, 12080) \
  X(cuMemcpyBatchAsync_v2, 13000) \
  X(cuMemcpyDtoA, 2000) \
  X(cuMemcpyDtoA_v2, 3020) \
  X(cuMemcpyDtoD, 2000) \
  X(cuMemcpyDtoDAsync, 3000) \
  X(cuMemcpyDtoH, 2000) \
  X(cuMemcpyDtoHAsync, 2000) \
  X(cuMemcpyHtoA, 2000) \
  X(cuMemcpyHtoAAsync, 2000) \
  X(cuMemcpyHtoAAsync_v2, 3020) \
  X(cuMemcpyHtoA_v2, 3020) \
  X(cuMemcpyHtoD, 2000) \
  X(cuMemcpyHtoDAsync, 2000) \
  X(cuMemsetD16, 2000) \
  X(cuMemsetD2D16, 2000) \
  X(cuMemsetD2D32, 2000) \
  X(cuMemsetD2D8, 2000) \
  X(cuMemsetD32, 2000) \
  X(cuMemsetD8, 2000) \
  X(cuMipmappedArrayCreate, 5000) \
  X(cuMipmappedArrayDestroy, 5000) \
  X(cuMipmappedArrayGetLevel, 5000) \
  X(cuMipmappedArrayGetMemoryRequirements, 11060) \
  X(cuMipmappedArrayGetSparseProperties, 11010) \
  X(cuModuleGetGlobal, 2000) \
  X(cuModuleGetSurfRef, 3000) \
  X(cuModuleGetTexRef, 2000) \
  X(cuMulticastAddDevice, 12010) \
  X(cuMulticastBindAddr, 12010) \
  X(cuMulticastBindMem, 12010) \
  X(cuMulticastCreate, 12010) \
  X(cuMulticastGetGranularity, 12010) \
  X(cuMulticastUnbind, 12010) \
  X(cuParamSetSize, 2000) \
  X(cuParamSetTexRef, 2000) \
  X(cuParamSetf, 2000) \
  X(cuParamSeti, 2000) \
  X(cuParamSetv, 2000) \
  X(cuProfilerInitialize, 4000) \
  X(cuSignalExternalSemaphoresAsync, 10000) \
  X(cuStreamBatchMemOp, 8000) \
  X(cuStreamBatchMemOp_v2, 11070) \
  X(cuStreamGetCtx_v2, 12050) \
  X(cuStreamGetGreenCtx, 12040) \
  X(cuStreamWaitValue32, 8000) \
  X(cuStreamWaitValue32_v2, 11070) \
  X(cuStreamWaitValue64, 9000) \
  X(cuStreamWaitValue64_v2, 11070) \
  X(cuStreamWriteValue32, 8000) \
  X(cuStreamWriteValue64, 9000) \
  X(cuSurfObjectCreate, 5000) \
  X(cuSurfObjectDestroy, 5000) \
  X(cuSurfObjectGetResourceDesc, 5000) \
  X(cuSurfRefGetArray, 3000) \
  X(cuSurfRefSetArray, 3000) \
  X(cuTexObjectCreate, 5000) \
  X(cuTexObjectDestroy, 5000) \
  X(cuTexObjectGetResourceDesc, 5000) \
  X(cuTexObjectGetResourceViewDesc, 5000) \
  X(cuTexObjectGetTextureDesc, 5000) \
  X(cuTexRefCreate, 2000) \
  X(cuTexRefDestroy, 2000) \
  X(cuTexRefGetAddress, 2000) \
  X(cuTexRefGetAddressMode, 2000) \
  X(cuTexRefGetAddress_v2, 3020) \
  X(cuTexRefGetArray, 2000) \
  X(cuTexRefGetBorderColor, 8000) \
  X(cuTexRefGetFilterMode, 2000) \
  X(cuTexRefGetFlags, 2000) \
  X(cuTexRefGetFormat, 2000) \
  X(cuTexRefGetMaxAnisotropy, 5000) \
  X(cuTexRefGetMipmapFilterMode, 5000) \
  X(cuTexRefGetMipmapLevelBias, 5000) \
  X(cuTexRefGetMipmapLevelClamp, 5000) \
  X(cuTexRefGetMipmappedArray, 5000) \
  X(cuTexRefSetAddress, 2000) \
  X(cuTexRefSetAddress2D, 2020) \
  X(cuTexRefSetAddress2D_v2, 3020) \
  X(cuTexRefSetAddress2D_v3, 4010) \
  X(cuTexRefSetAddressMode, 2000) \
  X(cuTexRefSetAddress_v2, 3020) \
  X(cuTexRefSetArray, 2000) \
  X(cuTexRefSetBorderColor, 8000) \
  X(cuTexRefSetFilterMode, 2000) \
  X(cuTexRefSetFlags, 2000) \
  X(cuTexRefSetFormat, 2000) \
  X(cuTexRefSetMaxAnisotropy, 5000) \
  X(cuTexRefSetMipmapFilterMode, 5000) \
  X(cuTexRefSetMipmapLevelBias, 5000) \
  X(cuTexRefSetMipmapLevelClamp, 5000) \
  X(cuTexRefSetMipmappedArray, 5000) \
  X(cuWaitExternalSemaphoresAsync, 10000)

// X(exported name, CUDA version that introduced it, the function it is another name of): an older
// version with the same parameters and meaning
#define TILEWRIGHT_SIM_OLDER_NAMES(X) \
  X(cuCtxCreate, 2000, cuCtxCreate_v2) \
  X(cuCtxDestroy, 2000, cuCtxDestroy_v2) \
  X(cuCtxPopCurrent, 2000, cuCtxPopCurrent_v2) \
  X(cuCtxPushCurrent, 2000, cuCtxPushCurrent_v2) \
  X(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease_v2) \
  X(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset_v2) \
  X(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags_v2) \
  X(cuDeviceGetUuid, 9020, cuDeviceGetUuid_v2) \
  X(cuEventDestroy, 2000, cuEventDestroy_v2) \
  X(cuStreamDestroy, 2000, cuStreamDestroy_v2) \
  X(cuEventElapsedTime, 2000, cuEventElapsedTime_v2) \
  X(cuMemHostRegister, 4000, cuMemHostRegister_v2)

// X(exported name, the function it is another name of): what programs built for a default stream
// per thread call. Streams are drained at submission, so the two default streams behave alike.
#define TILEWRIGHT_SIM_PER_THREAD_NAMES(X) \
  X(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags) \
  X(cuEventRecord_ptsz, cuEventRecord) \
  X(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams) \
  X(cuGraphLaunch_ptsz, cuGraphLaunch) \
  X(cuGraphUpload_ptsz, cuGraphUpload) \
  X(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel) \
  X(cuLaunchHostFunc_ptsz, cuLaunchHostFunc) \
  X(cuLaunchKernelEx_ptsz, cuLaunchKernelEx) \
  X(cuLaunchKernel_ptsz, cuLaunchKernel) \
  X(cuMemAllocAsync_ptsz, cuMemAllocAsync) \
  X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync) \
  X(cuMemFreeAsync_ptsz, cuMemFreeAsync) \
  X(cuMemPrefetchAsync_ptsz, cuMemPrefetchAsync) \
  X(cuMemPrefetchAsync_v2_ptsz, cuMemPrefetchAsync_v2) \
  X(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2) \
  X(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DUnaligned_v2) \
  X(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2) \
  X(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync_v2) \
  X(cuMemcpy3DPeerAsync_ptsz, cuMemcpy3DPeerAsync) \
  X(cuMemcpy3DPeer_ptds, cuMemcpy3DPeer) \
  X(cuMemcpy3D_v2_ptds, cuMemcpy3D_v2) \
  X(cuMemcpyAsync_ptsz, cuMemcpyAsync) \
  X(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2) \
  X(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2) \
  X(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2) \
  X(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2) \
  X(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2) \
  X(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2) \
  X(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync) \
  X(cuMemcpyPeer_ptds, cuMemcpyPeer) \
  X(cuMemcpy_ptds, cuMemcpy) \
  X(cuMemsetD16Async_ptsz, cuMemsetD16Async) \
  X(cuMemsetD16_v2_ptds, cuMemsetD16_v2) \
  X(cuMemsetD2D16Async_ptsz, cuMemsetD2D16Async) \
  X(cuMemsetD2D16_v2_ptds, cuMemsetD2D16_v2) \
  X(cuMemsetD2D32Async_ptsz, cuMemsetD2D32Async) \
  X(cuMemsetD2D32_v2_ptds, cuMemsetD2D32_v2) \
  X(cuMemsetD2D8Async_ptsz, cuMemsetD2D8Async) \
  X(cuMemsetD2D8_v2_ptds, cuMemsetD2D8_v2) \
  X(cuMemsetD32Async_ptsz, cuMemsetD32Async) \
  X(cuMemsetD32_v2_ptds, cuMemsetD32_v2) \
  X(cuMemsetD8Async_ptsz, cuMemsetD8Async) \
  X(cuMemsetD8_v2_ptds, cuMemsetD8_v2) \
  X(cuStreamAddCallback_ptsz, cuStreamAddCallback) \
  X(cuStreamAttachMemAsync_ptsz, cuStreamAttachMemAsync) \
  X(cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph) \
  X(cuStreamBeginCapture_ptsz, cuStreamBeginCapture) \
  X(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture_v2) \
  X(cuStreamCopyAttributes_ptsz, cuStreamCopyAttributes) \
  X(cuStreamEndCapture_ptsz, cuStreamEndCapture) \
  X(cuStreamGetAttribute_ptsz, cuStreamGetAttribute) \
  X(cuStreamGetCaptureInfo_ptsz, cuStreamGetCaptureInfo) \
  X(cuStreamGetCaptureInfo_v2_ptsz, cuStreamGetCaptureInfo_v2) \
  X(cuStreamGetCaptureInfo_v3_ptsz, cuStreamGetCaptureInfo_v3) \
  X(cuStreamGetCtx_ptsz, cuStreamGetCtx) \
  X(cuStreamGetDevice_ptsz, cuStreamGetDevice) \
  X(cuStreamGetFlags_ptsz, cuStreamGetFlags) \
  X(cuStreamGetId_ptsz, cuStreamGetId) \
  X(cuStreamGetPriority_ptsz, cuStreamGetPriority) \
  X(cuStreamIsCapturing_ptsz, cuStreamIsCapturing) \
  X(cuStreamQuery_ptsz, cuStreamQuery) \
  X(cuStreamSetAttribute_ptsz, cuStreamSetAttribute) \
  X(cuStreamSynchronize_ptsz, cuStreamSynchronize) \
  X(cuStreamUpdateCaptureDependencies_ptsz, cuStreamUpdateCaptureDependencies) \
  X(cuStreamUpdateCaptureDependencies_v2_ptsz, cuStreamUpdateCaptureDependencies_v2) \
  X(cuStreamWaitEvent_ptsz, cuStreamWaitEvent) \
  X(cuStreamWriteValue32_v2_ptsz, cuStreamWriteValue32_v2) \
  X(cuStreamWriteValue64_v2_ptsz, cuStreamWriteValue64_v2)

// Those of functions that are not supported.
#define TILEWRIGHT_SIM_UNSUPPORTED_PER_THREAD_NAMES(X) \
  X(cuGraphicsMapResources_ptsz, cuGraphicsMapResources) \
  X(cuGraphicsUnmapResources_ptsz, cuGraphicsUnmapResources) \
  X(cuMemBatchDecompressAsync_ptsz, cuMemBatchDecompressAsync) \
  X(cuMemDiscardAndPrefetchBatchAsync_ptsz, cuMemDiscardAndPrefetchBatchAsync) \
  X(cuMemDiscardBatchAsync_ptsz, cuMemDiscardBatchAsync) \
  X(cuMemMapArrayAsync_ptsz, cuMemMapArrayAsync) \
  X(cuMemPrefetchBatchAsync_ptsz, cuMemPrefetchBatchAsync) \
  X(cuMemcpy3DBatchAsync_ptsz, cuMemcpy3DBatchAsync) \
  X(cuMemcpy3DBatchAsync_v2_ptsz, cuMemcpy3DBatchAsync_v2) \
  X(cuMemcpyAtoA_v2_ptds, cuMemcpyAtoA_v2) \
  X(cuMemcpyAtoD_v2_ptds, cuMemcpyAtoD_v2) \
  X(cuMemcpyAtoHAsync_v2_ptsz, cuMemcpyAtoHAsync_v2) \
  X(cuMemcpyAtoH_v2_ptds, cuMemcpyAtoH_v2) \
  X(cuMemcpyBatchAsync_ptsz, cuMemcpyBatchAsync) \
  X(cuMemcpyBatchAsync_v2_ptsz, cuMemcpyBatchAsync_v2) \
  X(cuMemcpyDtoA_v2_ptds, cuMemcpyDtoA_v2) \
  X(cuMemcpyHtoAAsync_v2_ptsz, cuMemcpyHtoAAsync_v2) \
  X(cuMemcpyHtoA_v2_ptds, cuMemcpyHtoA_v2) \
  X(cuSignalExternalSemaphoresAsync_ptsz, cuSignalExternalSemaphoresAsync) \
  X(cuStreamBatchMemOp_ptsz, cuStreamBatchMemOp) \
  X(cuStreamBatchMemOp_v2_ptsz, cuStreamBatchMemOp_v2) \
  X(cuStreamGetCtx_v2_ptsz, cuStreamGetCtx_v2) \
  X(cuStreamWaitValue32_ptsz, cuStreamWaitValue32) \
  X(cuStreamWaitValue32_v2_ptsz, cuStreamWaitValue32_v2) \
  X(cuStreamWaitValue64_ptsz, cuStreamWaitValue64) \
  X(cuStreamWaitValue64_v2_ptsz, cuStreamWaitValue64_v2) \
  X(cuStreamWriteValue32_ptsz, cuStreamWriteValue32) \
  X(cuStreamWriteValue64_ptsz, cuStreamWriteValue64) \
  X(cuWaitExternalSemaphoresAsync_ptsz, cuWaitExternalSemaphoresAsync)
// clang-format on
