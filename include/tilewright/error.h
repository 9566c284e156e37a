// The one exception type of Tilewright. Library code reports every failure with it and never
// prints.
#pragma once

#include <stdexcept>
#include <string>

namespace tilewright {

/// What went wrong, as a class a caller can react to. The text of the error says the rest.
enum class ErrorKind {
  kInvalidArgument,  ///< the caller asked for something that makes no sense; fix the call
  kUnsupported,      ///< it makes sense, but nothing here can do it
  kOutOfMemory,      ///< host or device memory, or a fixed capacity, is exhausted
  kDeviceError,      ///< the driver or the device reported a failure
  kParseError,       ///< a file or text is malformed
  kCheckFailed,      ///< a result differs from what it was checked against
  kInternal,         ///< a defect in Tilewright; please report it
};

/// Name of the kind as it appears in messages: "InvalidArgument", "ParseError", ...
const char* to_string(ErrorKind kind) noexcept;

/// Message of the form "function: what is wrong, with values; what was expected; what to do".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace tilewright
