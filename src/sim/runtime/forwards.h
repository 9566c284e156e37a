// Functions of the runtime that are the driver's under other names: the same parameters, the same
// meaning, and a context that is there without being asked for.
#pragma once

// X(name in the runtime, name in the driver, parameters, arguments)
// clang-format off
#define TILEWRIGHT_SIM_RUNTIME_FORWARDS(X) \
  X(cudaDeviceSynchronize, cuCtxSynchronize, (), ()) \
  X(cudaDeviceSetLimit, cuCtxSetLimit, (CUlimit a, std::size_t b), (a, b)) \
  X(cudaDeviceGetLimit, cuCtxGetLimit, (std::size_t* a, CUlimit b), (a, b)) \
  X(cudaDeviceGetCacheConfig, cuCtxGetCacheConfig, (CUfunc_cache* a), (a)) \
  X(cudaDeviceSetCacheConfig, cuCtxSetCacheConfig, (CUfunc_cache a), (a)) \
  X(cudaDeviceGetSharedMemConfig, cuCtxGetSharedMemConfig, (CUsharedconfig* a), (a)) \
  X(cudaDeviceSetSharedMemConfig, cuCtxSetSharedMemConfig, (CUsharedconfig a), (a)) \
  X(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int* a, int* b), (a, b)) \
  X(cudaCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, (), ()) \
  X(cudaDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int* a, CUdevice b, CUdevice c), (a, b, c)) \
  X(cudaDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, \
    (int* a, CUdevice_P2PAttribute b, CUdevice c, CUdevice d), (a, b, c, d)) \
  X(cudaDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, (CUdevice* a, const char* b), (a, b)) \
  X(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char* a, int b, CUdevice c), (a, b, c)) \
  X(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (CUmemoryPool* a, CUdevice b), (a, b)) \
  X(cudaDeviceGetMemPool, cuDeviceGetMemPool, (CUmemoryPool* a, CUdevice b), (a, b)) \
  X(cudaDeviceSetMemPool, cuDeviceSetMemPool, (CUdevice a, CUmemoryPool b), (a, b)) \
  X(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, \
    (CUdevice a, CUgraphMem_attribute b, void* c), (a, b, c)) \
  X(cudaDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, \
    (CUdevice a, CUgraphMem_attribute b, void* c), (a, b, c)) \
  X(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim, (CUdevice a), (a)) \
  X(cudaProfilerStart, cuProfilerStart, (), ()) \
  X(cudaProfilerStop, cuProfilerStop, (), ()) \
  X(cudaStreamCreateWithFlags, cuStreamCreate, (CUstream* a, unsigned b), (a, b)) \
  X(cudaStreamCreateWithPriority, cuStreamCreateWithPriority, \
    (CUstream* a, unsigned b, int c), (a, b, c)) \
  X(cudaStreamDestroy, cuStreamDestroy_v2, (CUstream a), (a)) \
  X(cudaStreamSynchronize, cuStreamSynchronize, (CUstream a), (a)) \
  X(cudaStreamQuery, cuStreamQuery, (CUstream a), (a)) \
  X(cudaStreamWaitEvent, cuStreamWaitEvent, (CUstream a, CUevent b, unsigned c), (a, b, c)) \
  X(cudaStreamGetPriority, cuStreamGetPriority, (CUstream a, int* b), (a, b)) \
  X(cudaStreamGetFlags, cuStreamGetFlags, (CUstream a, unsigned* b), (a, b)) \
  X(cudaStreamGetId, cuStreamGetId, (CUstream a, unsigned long long* b), (a, b)) \
  X(cudaStreamGetDevice, cuStreamGetDevice, (CUstream a, CUdevice* b), (a, b)) \
  X(cudaStreamCopyAttributes, cuStreamCopyAttributes, (CUstream a, CUstream b), (a, b)) \
  X(cudaStreamGetAttribute, cuStreamGetAttribute, \
    (CUstream a, CUstreamAttrID b, CUstreamAttrValue* c), (a, b, c)) \
  X(cudaStreamSetAttribute, cuStreamSetAttribute, \
    (CUstream a, CUstreamAttrID b, const CUstreamAttrValue* c), (a, b, c)) \
  X(cudaStreamAddCallback, cuStreamAddCallback, \
    (CUstream a, CUstreamCallback b, void* c, unsigned d), (a, b, c, d)) \
  X(cudaStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream a, CUstreamCaptureMode b), (a, b)) \
  X(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, \
    (CUstream a, CUgraph b, const CUgraphNode* c, const CUgraphEdgeData* d, std::size_t e, \
     CUstreamCaptureMode f), (a, b, c, d, e, f)) \
  X(cudaStreamEndCapture, cuStreamEndCapture, (CUstream a, CUgraph* b), (a, b)) \
  X(cudaStreamIsCapturing, cuStreamIsCapturing, (CUstream a, CUstreamCaptureStatus* b), (a, b)) \
  X(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, \
    (CUstream a, CUstreamCaptureStatus* b, std::uint64_t* c, CUgraph* d, const CUgraphNode** e, \
     const CUgraphEdgeData** f, std::size_t* g), (a, b, c, d, e, f, g)) \
  X(cudaStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2, \
    (CUstream a, CUgraphNode* b, const CUgraphEdgeData* c, std::size_t d, unsigned e), (a, b, \
     c, d, e)) \
  X(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, \
    (CUstreamCaptureMode* a), (a)) \
  X(cudaLaunchHostFunc, cuLaunchHostFunc, (CUstream a, CUhostFn b, void* c), (a, b, c)) \
  X(cudaEventCreateWithFlags, cuEventCreate, (CUevent* a, unsigned b), (a, b)) \
  X(cudaEventDestroy, cuEventDestroy_v2, (CUevent a), (a)) \
  X(cudaEventRecord, cuEventRecord, (CUevent a, CUstream b), (a, b)) \
  X(cudaEventRecordWithFlags, cuEventRecordWithFlags, \
    (CUevent a, CUstream b, unsigned c), (a, b, c)) \
  X(cudaEventSynchronize, cuEventSynchronize, (CUevent a), (a)) \
  X(cudaEventQuery, cuEventQuery, (CUevent a), (a)) \
  X(cudaEventElapsedTime, cuEventElapsedTime_v2, (float* a, CUevent b, CUevent c), (a, b, c)) \
  X(cudaMemGetInfo, cuMemGetInfo_v2, (std::size_t* a, std::size_t* b), (a, b)) \
  X(cudaMemPoolCreate, cuMemPoolCreate, (CUmemoryPool* a, const CUmemPoolProps* b), (a, b)) \
  X(cudaMemPoolDestroy, cuMemPoolDestroy, (CUmemoryPool a), (a)) \
  X(cudaMemPoolGetAccess, cuMemPoolGetAccess, \
    (CUmemAccess_flags* a, CUmemoryPool b, CUmemLocation* c), (a, b, c)) \
  X(cudaMemPoolSetAccess, cuMemPoolSetAccess, \
    (CUmemoryPool a, const CUmemAccessDesc* b, std::size_t c), (a, b, c)) \
  X(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, \
    (CUmemoryPool a, CUmemPool_attribute b, void* c), (a, b, c)) \
  X(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, \
    (CUmemoryPool a, CUmemPool_attribute b, void* c), (a, b, c)) \
  X(cudaMemPoolTrimTo, cuMemPoolTrimTo, (CUmemoryPool a, std::size_t b), (a, b)) \
  X(cudaMemGetDefaultMemPool, cuMemGetDefaultMemPool, \
    (CUmemoryPool* a, CUmemLocation* b, CUmemAllocationType c), (a, b, c)) \
  X(cudaMemGetMemPool, cuMemGetMemPool, \
    (CUmemoryPool* a, CUmemLocation* b, CUmemAllocationType c), (a, b, c)) \
  X(cudaMemSetMemPool, cuMemSetMemPool, \
    (CUmemLocation* a, CUmemAllocationType b, CUmemoryPool c), (a, b, c)) \
  X(cudaLibraryLoadData, cuLibraryLoadData, \
    (CUlibrary* a, const void* b, CUjit_option* c, void** d, unsigned e, CUlibraryOption* f, \
     void** g, unsigned h), (a, b, c, d, e, f, g, h)) \
  X(cudaLibraryLoadFromFile, cuLibraryLoadFromFile, \
    (CUlibrary* a, const char* b, CUjit_option* c, void** d, unsigned e, CUlibraryOption* f, \
     void** g, unsigned h), (a, b, c, d, e, f, g, h)) \
  X(cudaLibraryUnload, cuLibraryUnload, (CUlibrary a), (a)) \
  X(cudaLibraryGetKernel, cuLibraryGetKernel, \
    (CUkernel* a, CUlibrary b, const char* c), (a, b, c)) \
  X(cudaLibraryGetKernelCount, cuLibraryGetKernelCount, (unsigned* a, CUlibrary b), (a, b)) \
  X(cudaLibraryEnumerateKernels, cuLibraryEnumerateKernels, \
    (CUkernel* a, unsigned b, CUlibrary c), (a, b, c)) \
  X(cudaGraphCreate, cuGraphCreate, (CUgraph* a, unsigned b), (a, b)) \
  X(cudaGraphDestroy, cuGraphDestroy, (CUgraph a), (a)) \
  X(cudaGraphClone, cuGraphClone, (CUgraph* a, CUgraph b), (a, b)) \
  X(cudaGraphDebugDotPrint, cuGraphDebugDotPrint, \
    (CUgraph a, const char* b, unsigned c), (a, b, c)) \
  X(cudaGraphDestroyNode, cuGraphDestroyNode, (CUgraphNode a), (a)) \
  X(cudaGraphNodeGetType, cuGraphNodeGetType, (CUgraphNode a, CUgraphNodeType* b), (a, b)) \
  X(cudaGraphNodeFindInClone, cuGraphNodeFindInClone, \
    (CUgraphNode* a, CUgraphNode b, CUgraph c), (a, b, c)) \
  X(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled, \
    (CUgraphExec a, CUgraphNode b, unsigned* c), (a, b, c)) \
  X(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled, \
    (CUgraphExec a, CUgraphNode b, unsigned c), (a, b, c)) \
  X(cudaGraphGetNodes, cuGraphGetNodes, (CUgraph a, CUgraphNode* b, std::size_t* c), (a, b, c)) \
  X(cudaGraphGetRootNodes, cuGraphGetRootNodes, \
    (CUgraph a, CUgraphNode* b, std::size_t* c), (a, b, c)) \
  X(cudaGraphGetEdges, cuGraphGetEdges_v2, \
    (CUgraph a, CUgraphNode* b, CUgraphNode* c, CUgraphEdgeData* d, std::size_t* e), (a, b, c, \
     d, e)) \
  X(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, \
    (CUgraphNode a, CUgraphNode* b, CUgraphEdgeData* c, std::size_t* d), (a, b, c, d)) \
  X(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2, \
    (CUgraphNode a, CUgraphNode* b, CUgraphEdgeData* c, std::size_t* d), (a, b, c, d)) \
  X(cudaGraphAddDependencies, cuGraphAddDependencies_v2, \
    (CUgraph a, const CUgraphNode* b, const CUgraphNode* c, const CUgraphEdgeData* d, \
     std::size_t e), (a, b, c, d, e)) \
  X(cudaGraphRemoveDependencies, cuGraphRemoveDependencies_v2, \
    (CUgraph a, const CUgraphNode* b, const CUgraphNode* c, const CUgraphEdgeData* d, \
     std::size_t e), (a, b, c, d, e)) \
  X(cudaGraphAddEmptyNode, cuGraphAddEmptyNode, \
    (CUgraphNode* a, CUgraph b, const CUgraphNode* c, std::size_t d), (a, b, c, d)) \
  X(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode, \
    (CUgraphNode* a, CUgraph b, const CUgraphNode* c, std::size_t d, CUgraph e), (a, b, c, d, e)) \
  X(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, \
    (CUgraphNode a, CUgraph* b), (a, b)) \
  X(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode, \
    (CUgraphNode* a, CUgraph b, const CUgraphNode* c, std::size_t d, CUevent e), (a, b, c, d, e)) \
  X(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode, \
    (CUgraphNode* a, CUgraph b, const CUgraphNode* c, std::size_t d, CUevent e), (a, b, c, d, e)) \
  X(cudaGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, \
    (CUgraphNode a, CUevent* b), (a, b)) \
  X(cudaGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, \
    (CUgraphNode a, CUevent b), (a, b)) \
  X(cudaGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, \
    (CUgraphNode a, CUevent* b), (a, b)) \
  X(cudaGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, \
    (CUgraphNode a, CUevent b), (a, b)) \
  X(cudaGraphAddHostNode, cuGraphAddHostNode, \
    (CUgraphNode* a, CUgraph b, const CUgraphNode* c, std::size_t d, \
     const CUDA_HOST_NODE_PARAMS* e), (a, b, c, d, e)) \
  X(cudaGraphHostNodeGetParams, cuGraphHostNodeGetParams, \
    (CUgraphNode a, CUDA_HOST_NODE_PARAMS* b), (a, b)) \
  X(cudaGraphHostNodeSetParams, cuGraphHostNodeSetParams, \
    (CUgraphNode a, const CUDA_HOST_NODE_PARAMS* b), (a, b)) \
  X(cudaGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, \
    (CUgraphNode a, CUDA_MEMSET_NODE_PARAMS* b), (a, b)) \
  X(cudaGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, \
    (CUgraphNode a, const CUDA_MEMSET_NODE_PARAMS* b), (a, b)) \
  X(cudaGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, \
    (CUgraphNode a, CUgraphNode b), (a, b)) \
  X(cudaGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, \
    (CUgraphNode a, CUkernelNodeAttrID b, CUkernelNodeAttrValue* c), (a, b, c)) \
  X(cudaGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, \
    (CUgraphNode a, CUkernelNodeAttrID b, const CUkernelNodeAttrValue* c), (a, b, c)) \
  X(cudaGraphInstantiate, cuGraphInstantiateWithFlags, \
    (CUgraphExec* a, CUgraph b, unsigned long long c), (a, b, c)) \
  X(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, \
    (CUgraphExec* a, CUgraph b, unsigned long long c), (a, b, c)) \
  X(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams, \
    (CUgraphExec* a, CUgraph b, CUDA_GRAPH_INSTANTIATE_PARAMS* c), (a, b, c)) \
  X(cudaGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec a), (a)) \
  X(cudaGraphExecGetFlags, cuGraphExecGetFlags, (CUgraphExec a, std::uint64_t* b), (a, b)) \
  X(cudaGraphExecUpdate, cuGraphExecUpdate_v2, \
    (CUgraphExec a, CUgraph b, CUgraphExecUpdateResultInfo* c), (a, b, c)) \
  X(cudaGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, \
    (CUgraphExec a, CUgraphNode b, const CUDA_HOST_NODE_PARAMS* c), (a, b, c)) \
  X(cudaGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, \
    (CUgraphExec a, CUgraphNode b, CUgraph c), (a, b, c)) \
  X(cudaGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, \
    (CUgraphExec a, CUgraphNode b, CUevent c), (a, b, c)) \
  X(cudaGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, \
    (CUgraphExec a, CUgraphNode b, CUevent c), (a, b, c)) \
  X(cudaGraphUpload, cuGraphUpload, (CUgraphExec a, CUstream b), (a, b)) \
  X(cudaGraphLaunch, cuGraphLaunch, (CUgraphExec a, CUstream b), (a, b)) \
  X(cudaGraphRetainUserObject, cuGraphRetainUserObject, \
    (CUgraph a, CUuserObject b, unsigned c, unsigned d), (a, b, c, d)) \
  X(cudaGraphReleaseUserObject, cuGraphReleaseUserObject, \
    (CUgraph a, CUuserObject b, unsigned c), (a, b, c)) \
  X(cudaUserObjectCreate, cuUserObjectCreate, \
    (CUuserObject* a, void* b, CUhostFn c, unsigned d, unsigned e), (a, b, c, d, e)) \
  X(cudaUserObjectRelease, cuUserObjectRelease, (CUuserObject a, unsigned b), (a, b)) \
  X(cudaUserObjectRetain, cuUserObjectRetain, (CUuserObject a, unsigned b), (a, b))
// clang-format on
