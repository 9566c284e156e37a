// What a call of the CUDA driver returns: every code up to CUDA 13.0 in one table, so that an error
// has its name even when no driver is loaded. Checked against cuda.h by
// tests/device/abi_witness_test.cpp.
#pragma once

namespace tilewright::device::abi {

// X(our name, name in cuda.h, value)
// clang-format off
#define TILEWRIGHT_CU_RESULTS(X)                                                                  \
  X(kSuccess, CUDA_SUCCESS, 0)                                                                    \
  X(kInvalidValue, CUDA_ERROR_INVALID_VALUE, 1)                                                   \
  X(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, 2)                                                    \
  X(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED, 3)                                               \
  X(kDeinitialized, CUDA_ERROR_DEINITIALIZED, 4)                                                  \
  X(kProfilerDisabled, CUDA_ERROR_PROFILER_DISABLED, 5)                                           \
  X(kProfilerNotInitialized, CUDA_ERROR_PROFILER_NOT_INITIALIZED, 6)                              \
  X(kProfilerAlreadyStarted, CUDA_ERROR_PROFILER_ALREADY_STARTED, 7)                              \
  X(kProfilerAlreadyStopped, CUDA_ERROR_PROFILER_ALREADY_STOPPED, 8)                              \
  X(kStubLibrary, CUDA_ERROR_STUB_LIBRARY, 34)                                                    \
  X(kCallRequiresNewerDriver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)                          \
  X(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                        \
  X(kNoDevice, CUDA_ERROR_NO_DEVICE, 100)                                                         \
  X(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE, 101)                                               \
  X(kDeviceNotLicensed, CUDA_ERROR_DEVICE_NOT_LICENSED, 102)                                      \
  X(kInvalidImage, CUDA_ERROR_INVALID_IMAGE, 200)                                                 \
  X(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT, 201)                                             \
  X(kContextAlreadyCurrent, CUDA_ERROR_CONTEXT_ALREADY_CURRENT, 202)                              \
  X(kMapFailed, CUDA_ERROR_MAP_FAILED, 205)                                                       \
  X(kUnmapFailed, CUDA_ERROR_UNMAP_FAILED, 206)                                                   \
  X(kArrayIsMapped, CUDA_ERROR_ARRAY_IS_MAPPED, 207)                                              \
  X(kAlreadyMapped, CUDA_ERROR_ALREADY_MAPPED, 208)                                               \
  X(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                           \
  X(kAlreadyAcquired, CUDA_ERROR_ALREADY_ACQUIRED, 210)                                           \
  X(kNotMapped, CUDA_ERROR_NOT_MAPPED, 211)                                                       \
  X(kNotMappedAsArray, CUDA_ERROR_NOT_MAPPED_AS_ARRAY, 212)                                       \
  X(kNotMappedAsPointer, CUDA_ERROR_NOT_MAPPED_AS_POINTER, 213)                                   \
  X(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                         \
  X(kUnsupportedLimit, CUDA_ERROR_UNSUPPORTED_LIMIT, 215)                                         \
  X(kContextAlreadyInUse, CUDA_ERROR_CONTEXT_ALREADY_IN_USE, 216)                                 \
  X(kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                              \
  X(kInvalidPtx, CUDA_ERROR_INVALID_PTX, 218)                                                     \
  X(kInvalidGraphicsContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, 219)                            \
  X(kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                   \
  X(kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                 \
  X(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                              \
  X(kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                            \
  X(kUnsupportedExecAffinity, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, 224)                          \
  X(kUnsupportedDevsideSync, CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225)                            \
  X(kContained, CUDA_ERROR_CONTAINED, 226)                                                        \
  X(kInvalidSource, CUDA_ERROR_INVALID_SOURCE, 300)                                               \
  X(kFileNotFound, CUDA_ERROR_FILE_NOT_FOUND, 301)                                                \
  X(kSharedObjectSymbolNotFound, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302)                  \
  X(kSharedObjectInitFailed, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303)                           \
  X(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM, 304)                                           \
  X(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE, 400)                                               \
  X(kIllegalState, CUDA_ERROR_ILLEGAL_STATE, 401)                                                 \
  X(kLossyQuery, CUDA_ERROR_LOSSY_QUERY, 402)                                                     \
  X(kNotFound, CUDA_ERROR_NOT_FOUND, 500)                                                         \
  X(kNotReady, CUDA_ERROR_NOT_READY, 600)                                                         \
  X(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                             \
  X(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                               \
  X(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                               \
  X(kLaunchIncompatibleTexturing, CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703)                  \
  X(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                       \
  X(kPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)                               \
  X(kPrimaryContextActive, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708)                                \
  X(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                    \
  X(kAssert, CUDA_ERROR_ASSERT, 710)                                                              \
  X(kTooManyPeers, CUDA_ERROR_TOO_MANY_PEERS, 711)                                                \
  X(kHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                 \
  X(kHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                         \
  X(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                    \
  X(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                     \
  X(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                       \
  X(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                  \
  X(kInvalidPc, CUDA_ERROR_INVALID_PC, 718)                                                       \
  X(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED, 719)                                                 \
  X(kCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720)                     \
  X(kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                                        \
  X(kNotPermitted, CUDA_ERROR_NOT_PERMITTED, 800)                                                 \
  X(kNotSupported, CUDA_ERROR_NOT_SUPPORTED, 801)                                                 \
  X(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY, 802)                                            \
  X(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                \
  X(kCompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                  \
  X(kMpsConnectionFailed, CUDA_ERROR_MPS_CONNECTION_FAILED, 805)                                  \
  X(kMpsRpcFailure, CUDA_ERROR_MPS_RPC_FAILURE, 806)                                              \
  X(kMpsServerNotReady, CUDA_ERROR_MPS_SERVER_NOT_READY, 807)                                     \
  X(kMpsMaxClientsReached, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808)                               \
  X(kMpsMaxConnectionsReached, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809)                       \
  X(kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                  \
  X(kCdpNotSupported, CUDA_ERROR_CDP_NOT_SUPPORTED, 811)                                          \
  X(kCdpVersionMismatch, CUDA_ERROR_CDP_VERSION_MISMATCH, 812)                                    \
  X(kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                        \
  X(kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                        \
  X(kStreamCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)                                    \
  X(kStreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                            \
  X(kStreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                              \
  X(kStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                            \
  X(kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                              \
  X(kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT, 907)                                               \
  X(kStreamCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                       \
  X(kTimeout, CUDA_ERROR_TIMEOUT, 909)                                                            \
  X(kGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)                           \
  X(kExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE, 911)                                             \
  X(kInvalidClusterSize, CUDA_ERROR_INVALID_CLUSTER_SIZE, 912)                                    \
  X(kFunctionNotLoaded, CUDA_ERROR_FUNCTION_NOT_LOADED, 913)                                      \
  X(kInvalidResourceType, CUDA_ERROR_INVALID_RESOURCE_TYPE, 914)                                  \
  X(kInvalidResourceConfiguration, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 915)                \
  X(kKeyRotation, CUDA_ERROR_KEY_ROTATION, 916)                                                   \
  X(kUnknown, CUDA_ERROR_UNKNOWN, 999)
// clang-format on

/// A newer driver may return values that have no enumerator here.
enum class CUresult : int {
#define TILEWRIGHT_ENUMERATOR(ours, theirs, value) ours = value,
  TILEWRIGHT_CU_RESULTS(TILEWRIGHT_ENUMERATOR)
#undef TILEWRIGHT_ENUMERATOR
};

}  // namespace tilewright::device::abi
