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

namespace {

struct Advice {
  CUresult result;
  const char* text;
};

constexpr const char* kContextGone =
    "The context of this device is gone; was it reset (cuDevicePrimaryCtxReset) by other "
    "code in this process?";
constexpr const char* kNotWhileCapturing =
    "Not allowed while a stream is captured; synchronous copies, allocation and the "
    "legacy default stream must wait until the capture has ended";

constexpr Advice kAdvice[] = {
    {CUresult::kOutOfMemory,
     "Free buffers, use a smaller problem, or check what else runs on the GPU"},
    {CUresult::kNoDevice,
     "No GPU is visible to the driver; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
     "--device sim:h200"},
    {CUresult::kStubLibrary,
     "This is the toolkit's link-time stub, not a driver; remove its stubs folder from "
     "LD_LIBRARY_PATH"},
    {CUresult::kSystemDriverMismatch,
     "The driver library and the kernel module differ in version; reboot, or reinstall the "
     "driver"},
    {CUresult::kSystemNotReady, "The fabric manager or another driver service is not running"},
    {CUresult::kDeviceUnavailable,
     "Another process has the GPU in exclusive mode (nvidia-smi -q -d COMPUTE)"},
    {CUresult::kInvalidPtx, "The PTX has an error; the driver's log names the line"},
    {CUresult::kUnsupportedPtxVersion,
     "The PTX is newer than this driver; update the driver, or compile with an older "
     "toolkit"},
    {CUresult::kNoBinaryForGpu,
     "The image was compiled for another GPU; sm_90a code runs on compute capability 9.0 "
     "only, sm_100f code on 10.0 and 10.3 only"},
    {CUresult::kNotFound,
     "Nothing of that name is in the module; kernels are `extern \"C\"` entries"},
    {CUresult::kNotReady, "The work is still running; synchronize first"},
    {CUresult::kInvalidContext, kContextGone},
    {CUresult::kContextIsDestroyed, kContextGone},
    {CUresult::kLaunchTimeout,
     "A kernel ran longer than the display watchdog allows, or hangs; the context is lost"},
    {CUresult::kLaunchOutOfResources,
     "The block needs more registers or shared memory than an SM has; use fewer threads or "
     "less shared memory"},
    {CUresult::kInvalidClusterSize,
     "The cluster does not fit; 8 blocks are portable, 16 need "
     "Kernel::allow_nonportable_cluster and enough free SMs in one GPC"},
    {CUresult::kStreamCaptureUnsupported, kNotWhileCapturing},
    {CUresult::kStreamCaptureImplicit, kNotWhileCapturing},
    {CUresult::kStreamCaptureInvalidated,
     "An earlier call broke the capture; the first error says which"},
};

bool is_kernel_failure(CUresult result) noexcept {
  switch (result) {
    case CUresult::kIllegalAddress:
    case CUresult::kMisalignedAddress:
    case CUresult::kInvalidAddressSpace:
    case CUresult::kIllegalInstruction:
    case CUresult::kInvalidPc:
    case CUresult::kHardwareStackError:
    case CUresult::kLaunchFailed:
    case CUresult::kAssert:
    case CUresult::kTensorMemoryLeak:
      return true;
    default:
      return false;
  }
}

}  // namespace

const char* advice_on(CUresult result, bool is_simulated) noexcept {
  if (is_kernel_failure(result)) {
    return is_simulated
               ? "A kernel failed; the simulator has said on standard error which one, where and "
                 "why"
               : "A kernel launched earlier failed, perhaps long before this call. The context is "
                 "lost and the process must end. Find the kernel with compute-sanitizer, or run it "
                 "on the simulator with --device sim:h200";
  }
  for (const Advice& advice : kAdvice) {
    if (advice.result == result) return advice.text;
  }
  return "";
}

}  // namespace tilewright::device
