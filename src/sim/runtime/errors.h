// What a call of the CUDA runtime returns, as CUDA 13.0 has it. Most are the driver's codes under
// other names; those below 100 that the driver lacks are the runtime's own.
#pragma once

// X(our name, name in driver_types.h, value, text of cudaGetErrorString)
// clang-format off
#define TILEWRIGHT_SIM_RUNTIME_ERRORS(X) \
  X(kSuccess, cudaSuccess, 0, "no error") \
  X(kInvalidValue, cudaErrorInvalidValue, 1, "invalid argument") \
  X(kMemoryAllocation, cudaErrorMemoryAllocation, 2, "out of memory") \
  X(kInitializationError, cudaErrorInitializationError, 3, "initialization error") \
  X(kCudartUnloading, cudaErrorCudartUnloading, 4, "driver shutting down") \
  X(kProfilerDisabled, cudaErrorProfilerDisabled, 5, \
    "profiler disabled while using external profiling tool") \
  X(kProfilerNotInitialized, cudaErrorProfilerNotInitialized, 6, \
    "profiler not initialized: call cudaProfilerInitialize()") \
  X(kProfilerAlreadyStarted, cudaErrorProfilerAlreadyStarted, 7, "profiler already started") \
  X(kProfilerAlreadyStopped, cudaErrorProfilerAlreadyStopped, 8, "profiler already stopped") \
  X(kInvalidConfiguration, cudaErrorInvalidConfiguration, 9, "invalid configuration argument") \
  X(kInvalidPitchValue, cudaErrorInvalidPitchValue, 12, "invalid pitch argument") \
  X(kInvalidSymbol, cudaErrorInvalidSymbol, 13, "invalid device symbol") \
  X(kInvalidHostPointer, cudaErrorInvalidHostPointer, 16, "invalid host pointer") \
  X(kInvalidDevicePointer, cudaErrorInvalidDevicePointer, 17, "invalid device pointer") \
  X(kInvalidTexture, cudaErrorInvalidTexture, 18, "invalid texture reference") \
  X(kInvalidTextureBinding, cudaErrorInvalidTextureBinding, 19, \
    "texture is not bound to a pointer") \
  X(kInvalidChannelDescriptor, cudaErrorInvalidChannelDescriptor, 20, \
    "invalid channel descriptor") \
  X(kInvalidMemcpyDirection, cudaErrorInvalidMemcpyDirection, 21, \
    "invalid copy direction for memcpy") \
  X(kAddressOfConstant, cudaErrorAddressOfConstant, 22, "invalid address of constant") \
  X(kTextureFetchFailed, cudaErrorTextureFetchFailed, 23, "fetch from texture failed") \
  X(kTextureNotBound, cudaErrorTextureNotBound, 24, \
    "cannot fetch from a texture that is not bound") \
  X(kSynchronizationError, cudaErrorSynchronizationError, 25, "incorrect use of __syncthreads()") \
  X(kInvalidFilterSetting, cudaErrorInvalidFilterSetting, 26, \
    "linear filtering not supported for non-float type") \
  X(kInvalidNormSetting, cudaErrorInvalidNormSetting, 27, \
    "read as normalized float not supported for data type") \
  X(kMixedDeviceExecution, cudaErrorMixedDeviceExecution, 28, \
    "device emulation mode and device execution mode cannot be mixed") \
  X(kNotYetImplemented, cudaErrorNotYetImplemented, 31, "feature not yet implemented") \
  X(kMemoryValueTooLarge, cudaErrorMemoryValueTooLarge, 32, \
    "memory size or pointer value too large to fit in 32 bit") \
  X(kStubLibrary, cudaErrorStubLibrary, 34, "CUDA driver is a stub library") \
  X(kInsufficientDriver, cudaErrorInsufficientDriver, 35, \
    "CUDA driver version is insufficient for CUDA runtime version") \
  X(kCallRequiresNewerDriver, cudaErrorCallRequiresNewerDriver, 36, \
    "API call is not supported in the installed CUDA driver") \
  X(kInvalidSurface, cudaErrorInvalidSurface, 37, "invalid surface reference") \
  X(kDuplicateVariableName, cudaErrorDuplicateVariableName, 43, \
    "duplicate global variable looked up by string name") \
  X(kDuplicateTextureName, cudaErrorDuplicateTextureName, 44, \
    "duplicate texture looked up by string name") \
  X(kDuplicateSurfaceName, cudaErrorDuplicateSurfaceName, 45, \
    "duplicate surface looked up by string name") \
  X(kDevicesUnavailable, cudaErrorDevicesUnavailable, 46, \
    "CUDA-capable device(s) is/are busy or unavailable") \
  X(kIncompatibleDriverContext, cudaErrorIncompatibleDriverContext, 49, \
    "incompatible driver context") \
  X(kMissingConfiguration, cudaErrorMissingConfiguration, 52, \
    "__global__ function call is not configured") \
  X(kPriorLaunchFailure, cudaErrorPriorLaunchFailure, 53, \
    "unspecified launch failure in prior launch") \
  X(kLaunchMaxDepthExceeded, cudaErrorLaunchMaxDepthExceeded, 65, \
    "launch would exceed maximum depth of nested launches") \
  X(kLaunchFileScopedTex, cudaErrorLaunchFileScopedTex, 66, \
    "launch failed because kernel uses unsupported, file-scoped textures " \
    "(texture objects are supported)") \
  X(kLaunchFileScopedSurf, cudaErrorLaunchFileScopedSurf, 67, \
    "launch failed because kernel uses unsupported, file-scoped surfaces " \
    "(surface objects are supported)") \
  X(kSyncDepthExceeded, cudaErrorSyncDepthExceeded, 68, \
    "cudaDeviceSynchronize failed because caller's grid depth exceeds " \
    "cudaLimitDevRuntimeSyncDepth") \
  X(kLaunchPendingCountExceeded, cudaErrorLaunchPendingCountExceeded, 69, \
    "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount") \
  X(kInvalidDeviceFunction, cudaErrorInvalidDeviceFunction, 98, "invalid device function") \
  X(kNoDevice, cudaErrorNoDevice, 100, "no CUDA-capable device is detected") \
  X(kInvalidDevice, cudaErrorInvalidDevice, 101, "invalid device ordinal") \
  X(kDeviceNotLicensed, cudaErrorDeviceNotLicensed, 102, "device doesn't have valid Grid license") \
  X(kSoftwareValidityNotEstablished, cudaErrorSoftwareValidityNotEstablished, 103, \
    "integrity checks failed") \
  X(kStartupFailure, cudaErrorStartupFailure, 127, "startup failure in cuda runtime") \
  X(kInvalidKernelImage, cudaErrorInvalidKernelImage, 200, "device kernel image is invalid") \
  X(kDeviceUninitialized, cudaErrorDeviceUninitialized, 201, "invalid device context") \
  X(kMapBufferObjectFailed, cudaErrorMapBufferObjectFailed, 205, \
    "mapping of buffer object failed") \
  X(kUnmapBufferObjectFailed, cudaErrorUnmapBufferObjectFailed, 206, \
    "unmapping of buffer object failed") \
  X(kArrayIsMapped, cudaErrorArrayIsMapped, 207, "array is mapped") \
  X(kAlreadyMapped, cudaErrorAlreadyMapped, 208, "resource already mapped") \
  X(kNoKernelImageForDevice, cudaErrorNoKernelImageForDevice, 209, \
    "no kernel image is available for execution on the device") \
  X(kAlreadyAcquired, cudaErrorAlreadyAcquired, 210, "resource already acquired") \
  X(kNotMapped, cudaErrorNotMapped, 211, "resource not mapped") \
  X(kNotMappedAsArray, cudaErrorNotMappedAsArray, 212, "resource not mapped as array") \
  X(kNotMappedAsPointer, cudaErrorNotMappedAsPointer, 213, "resource not mapped as pointer") \
  X(kECCUncorrectable, cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered") \
  X(kUnsupportedLimit, cudaErrorUnsupportedLimit, 215, \
    "limit is not supported on this architecture") \
  X(kDeviceAlreadyInUse, cudaErrorDeviceAlreadyInUse, 216, \
    "exclusive-thread device already in use by a different thread") \
  X(kPeerAccessUnsupported, cudaErrorPeerAccessUnsupported, 217, \
    "peer access is not supported between these two devices") \
  X(kInvalidPtx, cudaErrorInvalidPtx, 218, "a PTX JIT compilation failed") \
  X(kInvalidGraphicsContext, cudaErrorInvalidGraphicsContext, 219, \
    "invalid OpenGL or DirectX context") \
  X(kNvlinkUncorrectable, cudaErrorNvlinkUncorrectable, 220, \
    "uncorrectable NVLink error detected during the execution") \
  X(kJitCompilerNotFound, cudaErrorJitCompilerNotFound, 221, "PTX JIT compiler library not found") \
  X(kUnsupportedPtxVersion, cudaErrorUnsupportedPtxVersion, 222, \
    "the provided PTX was compiled with an unsupported toolchain.") \
  X(kJitCompilationDisabled, cudaErrorJitCompilationDisabled, 223, \
    "PTX JIT compilation was disabled") \
  X(kUnsupportedExecAffinity, cudaErrorUnsupportedExecAffinity, 224, \
    "the provided execution affinity is not supported") \
  X(kUnsupportedDevSideSync, cudaErrorUnsupportedDevSideSync, 225, \
    "the provided PTX contains unsupported call to cudaDeviceSynchronize") \
  X(kContained, cudaErrorContained, 226, \
    "Invalid access of peer GPU memory over nvlink or a hardware error") \
  X(kInvalidSource, cudaErrorInvalidSource, 300, "device kernel image is invalid") \
  X(kFileNotFound, cudaErrorFileNotFound, 301, "file not found") \
  X(kSharedObjectSymbolNotFound, cudaErrorSharedObjectSymbolNotFound, 302, \
    "shared object symbol not found") \
  X(kSharedObjectInitFailed, cudaErrorSharedObjectInitFailed, 303, \
    "shared object initialization failed") \
  X(kOperatingSystem, cudaErrorOperatingSystem, 304, \
    "OS call failed or operation not supported on this OS") \
  X(kInvalidResourceHandle, cudaErrorInvalidResourceHandle, 400, "invalid resource handle") \
  X(kIllegalState, cudaErrorIllegalState, 401, \
    "the operation cannot be performed in the present state") \
  X(kLossyQuery, cudaErrorLossyQuery, 402, "attempted introspection would be semantically lossy") \
  X(kSymbolNotFound, cudaErrorSymbolNotFound, 500, "named symbol not found") \
  X(kNotReady, cudaErrorNotReady, 600, "device not ready") \
  X(kIllegalAddress, cudaErrorIllegalAddress, 700, "an illegal memory access was encountered") \
  X(kLaunchOutOfResources, cudaErrorLaunchOutOfResources, 701, \
    "too many resources requested for launch") \
  X(kLaunchTimeout, cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated") \
  X(kLaunchIncompatibleTexturing, cudaErrorLaunchIncompatibleTexturing, 703, \
    "launch uses incompatible texturing mode") \
  X(kPeerAccessAlreadyEnabled, cudaErrorPeerAccessAlreadyEnabled, 704, \
    "peer access is already enabled") \
  X(kPeerAccessNotEnabled, cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled") \
  X(kSetOnActiveProcess, cudaErrorSetOnActiveProcess, 708, \
    "cannot set while device is active in this process") \
  X(kContextIsDestroyed, cudaErrorContextIsDestroyed, 709, "context is destroyed") \
  X(kAssert, cudaErrorAssert, 710, "device-side assert triggered") \
  X(kTooManyPeers, cudaErrorTooManyPeers, 711, "peer mapping resources exhausted") \
  X(kHostMemoryAlreadyRegistered, cudaErrorHostMemoryAlreadyRegistered, 712, \
    "part or all of the requested memory range is already mapped") \
  X(kHostMemoryNotRegistered, cudaErrorHostMemoryNotRegistered, 713, \
    "pointer does not correspond to a registered memory region") \
  X(kHardwareStackError, cudaErrorHardwareStackError, 714, "hardware stack error") \
  X(kIllegalInstruction, cudaErrorIllegalInstruction, 715, \
    "an illegal instruction was encountered") \
  X(kMisalignedAddress, cudaErrorMisalignedAddress, 716, "misaligned address") \
  X(kInvalidAddressSpace, cudaErrorInvalidAddressSpace, 717, \
    "operation not supported on global/shared address space") \
  X(kInvalidPc, cudaErrorInvalidPc, 718, "invalid program counter") \
  X(kLaunchFailure, cudaErrorLaunchFailure, 719, "unspecified launch failure") \
  X(kCooperativeLaunchTooLarge, cudaErrorCooperativeLaunchTooLarge, 720, \
    "too many blocks in cooperative launch") \
  X(kTensorMemoryLeak, cudaErrorTensorMemoryLeak, 721, "tensor memory not completely freed") \
  X(kNotPermitted, cudaErrorNotPermitted, 800, "operation not permitted") \
  X(kNotSupported, cudaErrorNotSupported, 801, "operation not supported") \
  X(kSystemNotReady, cudaErrorSystemNotReady, 802, "system not yet initialized") \
  X(kSystemDriverMismatch, cudaErrorSystemDriverMismatch, 803, \
    "system has unsupported display driver / cuda driver combination") \
  X(kCompatNotSupportedOnDevice, cudaErrorCompatNotSupportedOnDevice, 804, \
    "forward compatibility was attempted on non supported HW") \
  X(kMpsConnectionFailed, cudaErrorMpsConnectionFailed, 805, \
    "MPS client failed to connect to the MPS control daemon or the MPS server") \
  X(kMpsRpcFailure, cudaErrorMpsRpcFailure, 806, \
    "the remote procedural call between the MPS server and the MPS client failed") \
  X(kMpsServerNotReady, cudaErrorMpsServerNotReady, 807, \
    "MPS server is not ready to accept new MPS client requests") \
  X(kMpsMaxClientsReached, cudaErrorMpsMaxClientsReached, 808, \
    "the hardware resources required to create MPS client have been exhausted") \
  X(kMpsMaxConnectionsReached, cudaErrorMpsMaxConnectionsReached, 809, \
    "the hardware resources required to support device connections have been exhausted") \
  X(kMpsClientTerminated, cudaErrorMpsClientTerminated, 810, \
    "the MPS client has been terminated by the server") \
  X(kCdpNotSupported, cudaErrorCdpNotSupported, 811, \
    "is using CUDA Dynamic Parallelism, but the current configuration, " \
    "like MPS, does not support it") \
  X(kCdpVersionMismatch, cudaErrorCdpVersionMismatch, 812, \
    "unsupported interaction between different versions of CUDA Dynamic Parallelism") \
  X(kStreamCaptureUnsupported, cudaErrorStreamCaptureUnsupported, 900, \
    "operation not permitted when stream is capturing") \
  X(kStreamCaptureInvalidated, cudaErrorStreamCaptureInvalidated, 901, \
    "operation failed due to a previous error during capture") \
  X(kStreamCaptureMerge, cudaErrorStreamCaptureMerge, 902, \
    "operation would result in a merge of separate capture sequences") \
  X(kStreamCaptureUnmatched, cudaErrorStreamCaptureUnmatched, 903, \
    "capture was not ended in the same stream as it began") \
  X(kStreamCaptureUnjoined, cudaErrorStreamCaptureUnjoined, 904, \
    "capturing stream has unjoined work") \
  X(kStreamCaptureIsolation, cudaErrorStreamCaptureIsolation, 905, \
    "dependency created on uncaptured work in another stream") \
  X(kStreamCaptureImplicit, cudaErrorStreamCaptureImplicit, 906, \
    "operation would make the legacy stream depend on a capturing blocking stream") \
  X(kCapturedEvent, cudaErrorCapturedEvent, 907, \
    "operation not permitted on an event last recorded in a capturing stream") \
  X(kStreamCaptureWrongThread, cudaErrorStreamCaptureWrongThread, 908, \
    "attempt to terminate a thread-local capture sequence from another thread") \
  X(kTimeout, cudaErrorTimeout, 909, "wait operation timed out") \
  X(kGraphExecUpdateFailure, cudaErrorGraphExecUpdateFailure, 910, \
    "the graph update was not performed because it included changes which " \
    "violated constraints specific to instantiated graph update") \
  X(kExternalDevice, cudaErrorExternalDevice, 911, \
    "an async error has occured in external entity outside of CUDA") \
  X(kInvalidClusterSize, cudaErrorInvalidClusterSize, 912, \
    "a kernel launch error has occurred due to cluster misconfiguration") \
  X(kFunctionNotLoaded, cudaErrorFunctionNotLoaded, 913, \
    "the function handle is not loaded when calling an API that requires a loaded function") \
  X(kInvalidResourceType, cudaErrorInvalidResourceType, 914, \
    "one or more resources passed in are not valid resource types for the operation") \
  X(kInvalidResourceConfiguration, cudaErrorInvalidResourceConfiguration, 915, \
    "one or more resources are insufficient or non-applicable for the operation") \
  X(kUnknown, cudaErrorUnknown, 999, "unknown error") \
  X(kApiFailureBase, cudaErrorApiFailureBase, 10000, "api failure base")
// clang-format on
