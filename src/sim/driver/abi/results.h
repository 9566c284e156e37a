// What a call of the CUDA driver returns: every code up to CUDA 13.0, with the words of
// cuGetErrorString. Checked against cuda.h by tests/sim/driver/abi/abi_witness_test.cpp.
#pragma once

// X(our name, name in cuda.h, value, text)
// clang-format off
#define TILEWRIGHT_SIM_RESULTS(X) \
  X(kSuccess, CUDA_SUCCESS, 0, "no error") \
  X(kInvalidValue, CUDA_ERROR_INVALID_VALUE, 1, "invalid argument") \
  X(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory") \
  X(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error") \
  X(kDeinitialized, CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down") \
  X(kProfilerDisabled, CUDA_ERROR_PROFILER_DISABLED, 5, \
    "profiler disabled while using external profiling tool") \
  X(kProfilerNotInitialized, CUDA_ERROR_PROFILER_NOT_INITIALIZED, 6, \
    "profiler not initialized: call cudaProfilerInitialize()") \
  X(kProfilerAlreadyStarted, CUDA_ERROR_PROFILER_ALREADY_STARTED, 7, "profiler already started") \
  X(kProfilerAlreadyStopped, CUDA_ERROR_PROFILER_ALREADY_STOPPED, 8, "profiler already stopped") \
  X(kStubLibrary, CUDA_ERROR_STUB_LIBRARY, 34, "CUDA driver is a stub library") \
  X(kCallRequiresNewerDriver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36, \
    "the driver does not support this call") \
  X(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE, 46, \
    "CUDA-capable device(s) is/are busy or unavailable") \
  X(kNoDevice, CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected") \
  X(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal") \
  X(kDeviceNotLicensed, CUDA_ERROR_DEVICE_NOT_LICENSED, 102, \
    "device doesn't have valid Grid license") \
  X(kInvalidImage, CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid") \
  X(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context") \
  X(kContextAlreadyCurrent, CUDA_ERROR_CONTEXT_ALREADY_CURRENT, 202, "context already current") \
  X(kMapFailed, CUDA_ERROR_MAP_FAILED, 205, "mapping of buffer object failed") \
  X(kUnmapFailed, CUDA_ERROR_UNMAP_FAILED, 206, "unmapping of buffer object failed") \
  X(kArrayIsMapped, CUDA_ERROR_ARRAY_IS_MAPPED, 207, "array is mapped") \
  X(kAlreadyMapped, CUDA_ERROR_ALREADY_MAPPED, 208, "resource already mapped") \
  X(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU, 209, \
    "no kernel image is available for execution on the device") \
  X(kAlreadyAcquired, CUDA_ERROR_ALREADY_ACQUIRED, 210, "resource already acquired") \
  X(kNotMapped, CUDA_ERROR_NOT_MAPPED, 211, "resource not mapped") \
  X(kNotMappedAsArray, CUDA_ERROR_NOT_MAPPED_AS_ARRAY, 212, "resource not mapped as array") \
  X(kNotMappedAsPointer, CUDA_ERROR_NOT_MAPPED_AS_POINTER, 213, \
    "resource not mapped as pointer") \
  X(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered") \
  X(kUnsupportedLimit, CUDA_ERROR_UNSUPPORTED_LIMIT, 215, \
    "limit is not supported on this architecture") \
  X(kContextAlreadyInUse, CUDA_ERROR_CONTEXT_ALREADY_IN_USE, 216, \
    "exclusive-thread device already in use by a different thread") \
  X(kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, \
    "peer access is not supported between these two devices") \
  X(kInvalidPtx, CUDA_ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed") \
  X(kInvalidGraphicsContext, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, 219, \
    "invalid OpenGL or DirectX context") \
  X(kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE, 220, \
    "uncorrectable NVLink error detected during the execution") \
  X(kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221, \
    "PTX JIT compiler library not found") \
  X(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, \
    "the provided PTX was compiled with an unsupported toolchain.") \
  X(kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED, 223, \
    "PTX JIT compilation was disabled") \
  X(kUnsupportedExecAffinity, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, 224, \
    "the provided execution affinity is not supported") \
  X(kUnsupportedDevsideSync, CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225, \
    "the provided PTX contains unsupported call to cudaDeviceSynchronize") \
  X(kContained, CUDA_ERROR_CONTAINED, 226, \
    "Invalid access of peer GPU memory over nvlink or a hardware error") \
  X(kInvalidSource, CUDA_ERROR_INVALID_SOURCE, 300, "device kernel image is invalid") \
  X(kFileNotFound, CUDA_ERROR_FILE_NOT_FOUND, 301, "file not found") \
  X(kSharedObjectSymbolNotFound, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302, \
    "a symbol of a shared object was not found") \
  X(kSharedObjectInitFailed, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303, \
    "shared object initialization failed") \
  X(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM, 304, \
    "OS call failed or operation not supported on this OS") \
  X(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle") \
  X(kIllegalState, CUDA_ERROR_ILLEGAL_STATE, 401, \
    "the operation cannot be performed in the present state") \
  X(kLossyQuery, CUDA_ERROR_LOSSY_QUERY, 402, \
    "attempted introspection would be semantically lossy") \
  X(kNotFound, CUDA_ERROR_NOT_FOUND, 500, "named symbol not found") \
  X(kNotReady, CUDA_ERROR_NOT_READY, 600, "device not ready") \
  X(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS, 700, \
    "an illegal memory access was encountered") \
  X(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, \
    "too many resources requested for launch") \
  X(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated") \
  X(kLaunchIncompatibleTexturing, CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703, \
    "launch uses incompatible texturing mode") \
  X(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, \
    "peer access is already enabled") \
  X(kPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705, \
    "peer access has not been enabled") \
  X(kPrimaryContextActive, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708, \
    "cannot set while device is active in this process") \
  X(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed") \
  X(kAssert, CUDA_ERROR_ASSERT, 710, "device-side assert triggered") \
  X(kTooManyPeers, CUDA_ERROR_TOO_MANY_PEERS, 711, "peer mapping resources exhausted") \
  X(kHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, \
    "part or all of the requested memory range is already mapped") \
  X(kHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, \
    "pointer does not correspond to a registered memory region") \
  X(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR, 714, "hardware stack error") \
  X(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, \
    "an illegal instruction was encountered") \
  X(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address") \
  X(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717, \
    "operation not supported on global/shared address space") \
  X(kInvalidPc, CUDA_ERROR_INVALID_PC, 718, "invalid program counter") \
  X(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure") \
  X(kCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720, \
    "too many blocks in cooperative launch") \
  X(kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK, 721, "tensor memory not completely freed") \
  X(kNotPermitted, CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted") \
  X(kNotSupported, CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported") \
  X(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY, 802, "system not yet initialized") \
  X(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, \
    "the display driver and the CUDA driver do not fit together") \
  X(kCompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, \
    "forward compatibility was attempted on hardware that does not support it") \
  X(kMpsConnectionFailed, CUDA_ERROR_MPS_CONNECTION_FAILED, 805, \
    "the MPS client cannot connect to the MPS server") \
  X(kMpsRpcFailure, CUDA_ERROR_MPS_RPC_FAILURE, 806, \
    "the call between MPS server and MPS client failed") \
  X(kMpsServerNotReady, CUDA_ERROR_MPS_SERVER_NOT_READY, 807, \
    "MPS server is not ready to accept new MPS client requests") \
  X(kMpsMaxClientsReached, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808, \
    "the hardware resources for MPS clients are exhausted") \
  X(kMpsMaxConnectionsReached, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809, \
    "the hardware resources for device connections are exhausted") \
  X(kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED, 810, \
    "the MPS client has been terminated by the server") \
  X(kCdpNotSupported, CUDA_ERROR_CDP_NOT_SUPPORTED, 811, \
    "dynamic parallelism is not supported in this configuration") \
  X(kCdpVersionMismatch, CUDA_ERROR_CDP_VERSION_MISMATCH, 812, \
    "dynamic parallelism of different versions") \
  X(kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, \
    "operation not permitted when stream is capturing") \
  X(kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, \
    "operation failed due to a previous error during capture") \
  X(kStreamCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, \
    "operation would result in a merge of separate capture sequences") \
  X(kStreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, \
    "capture was not ended in the same stream as it began") \
  X(kStreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, \
    "capturing stream has unjoined work") \
  X(kStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, \
    "dependency created on uncaptured work in another stream") \
  X(kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, \
    "operation would make the legacy stream depend on a capturing blocking stream") \
  X(kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT, 907, \
    "operation not permitted on an event last recorded in a capturing stream") \
  X(kStreamCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, \
    "attempt to terminate a thread-local capture sequence from another thread") \
  X(kTimeout, CUDA_ERROR_TIMEOUT, 909, "wait operation timed out") \
  X(kGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, \
    "the graph update violates constraints of instantiated graphs") \
  X(kExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE, 911, \
    "an asynchronous error occurred outside of CUDA") \
  X(kInvalidClusterSize, CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, \
    "a kernel launch has misconfigured clusters") \
  X(kFunctionNotLoaded, CUDA_ERROR_FUNCTION_NOT_LOADED, 913, \
    "the function handle is not loaded") \
  X(kInvalidResourceType, CUDA_ERROR_INVALID_RESOURCE_TYPE, 914, \
    "a resource of this type is not valid for the operation") \
  X(kInvalidResourceConfiguration, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 915, \
    "the resources are insufficient or not applicable for the operation") \
  X(kKeyRotation, CUDA_ERROR_KEY_ROTATION, 916, "a key rotation failed") \
  X(kUnknown, CUDA_ERROR_UNKNOWN, 999, "unknown error")
// clang-format on
