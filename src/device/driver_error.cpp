// What the driver's error codes mean to a user of Tilewright.
#include "device/driver.h"

namespace tilewright::device {

using abi::CUresult;

std::string name_of(CUresult result) {
  switch (result) {
#define TILEWRIGHT_NAME(ours, theirs, value) \
  case CUresult::ours:                       \
    return #theirs;
    TILEWRIGHT_CU_RESULTS(TILEWRIGHT_NAME)
#undef TILEWRIGHT_NAME
  }
  return fmt::format("CUDA error {}", static_cast<int>(result));
}

ErrorKind kind_of(CUresult result) noexcept {
  switch (result) {
    case CUresult::kOutOfMemory:
      return ErrorKind::kOutOfMemory;
    case CUresult::kInvalidPtx:
      return ErrorKind::kParseError;
    case CUresult::kCallRequiresNewerDriver:
    case CUresult::kNoBinaryForGpu:
    case CUresult::kUnsupportedPtxVersion:
    case CUresult::kJitCompilerNotFound:
    case CUresult::kJitCompilationDisabled:
    case CUresult::kInvalidClusterSize:
    case CUresult::kNotSupported:
    case CUresult::kCompatNotSupportedOnDevice:
      return ErrorKind::kUnsupported;
    default:
      return ErrorKind::kDeviceError;
  }
}

const char* advice_on(CUresult result, bool is_simulated) noexcept {
  switch (result) {
    case CUresult::kOutOfMemory:
      return "Free buffers, use a smaller problem, or check what else runs on the GPU";
    case CUresult::kNoDevice:
      return "No GPU is visible to the driver; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
             "--device sim:h200";
    case CUresult::kStubLibrary:
      return "This is the toolkit's link-time stub, not a driver; remove its stubs folder from "
             "LD_LIBRARY_PATH";
    case CUresult::kSystemDriverMismatch:
      return "The driver library and the kernel module differ in version; reboot, or reinstall the "
             "driver";
    case CUresult::kSystemNotReady:
      return "The fabric manager or another driver service is not running";
    case CUresult::kDeviceUnavailable:
      return "Another process has the GPU in exclusive mode (nvidia-smi -q -d COMPUTE)";
    case CUresult::kInvalidPtx:
      return "The PTX has an error; the driver's log names the line";
    case CUresult::kUnsupportedPtxVersion:
      return "The PTX is newer than this driver; update the driver, or compile with an older "
             "toolkit";
    case CUresult::kNoBinaryForGpu:
      return "The image was compiled for another GPU; sm_90a code runs on compute capability 9.0 "
             "only, sm_100f code on 10.0 and 10.3 only";
    case CUresult::kNotFound:
      return "Nothing of that name is in the module; kernels are `extern \"C\"` entries";
    case CUresult::kNotReady:
      return "The work is still running; synchronize first";
    case CUresult::kInvalidContext:
    case CUresult::kContextIsDestroyed:
      return "The context of this device is gone; was it reset (cuDevicePrimaryCtxReset) by other "
             "code in this process?";
    case CUresult::kIllegalAddress:
    case CUresult::kMisalignedAddress:
    case CUresult::kInvalidAddressSpace:
    case CUresult::kIllegalInstruction:
    case CUresult::kInvalidPc:
    case CUresult::kHardwareStackError:
    case CUresult::kLaunchFailed:
    case CUresult::kAssert:
    case CUresult::kTensorMemoryLeak:
      if (is_simulated) {
        return "A kernel failed; the simulator has said on standard error which one, where and why";
      }
      return "A kernel launched earlier failed, perhaps long before this call. The context is lost "
             "and the process must end. Find the kernel with compute-sanitizer, or run it on the "
             "simulator with --device sim:h200";
    case CUresult::kLaunchTimeout:
      return "A kernel ran longer than the display watchdog allows, or hangs; the context is lost";
    case CUresult::kLaunchOutOfResources:
      return "The block needs more registers or shared memory than an SM has; use fewer threads or "
             "less shared memory";
    case CUresult::kInvalidClusterSize:
      return "The cluster does not fit; 8 blocks are portable, 16 need "
             "Kernel::allow_nonportable_cluster and enough free SMs in one GPC";
    case CUresult::kStreamCaptureUnsupported:
    case CUresult::kStreamCaptureImplicit:
      return "Not allowed while a stream is captured; synchronous copies, allocation and the "
             "legacy default stream must wait until the capture has ended";
    case CUresult::kStreamCaptureInvalidated:
      return "An earlier call broke the capture; the first error says which";
    default:
      return "";
  }
}

}  // namespace tilewright::device
