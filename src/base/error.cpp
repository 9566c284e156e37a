#include "base/error.h"

namespace tilewright {

const char* to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "InvalidArgument";
    case ErrorKind::kUnsupported:
      return "Unsupported";
    case ErrorKind::kOutOfMemory:
      return "OutOfMemory";
    case ErrorKind::kDeviceError:
      return "DeviceError";
    case ErrorKind::kParseError:
      return "ParseError";
    case ErrorKind::kCheckFailed:
      return "CheckFailed";
    case ErrorKind::kInternal:
      return "Internal";
  }
  return "Unknown";
}

}  // namespace tilewright
