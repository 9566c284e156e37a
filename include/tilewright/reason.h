// Why an operator refuses a problem: every reason, as data.
#pragma once

#include "tilewright/error.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tilewright {

/// One thing that is wrong.
struct Reason {
  /// What it is about: a member of the problem ("head_dim", "fp8.scales") or of the prepared weight
  /// ("n", "experts"); "kernel" for a kernel that cannot do the problem; "device".
  std::string field;
  std::string value;  ///< as given: "96"; name of the kernel, or of the device
  std::string rule;   ///< what was expected: "64, 128 or 256"; what the kernel or the device lacks
  std::string fix;    ///< what to do, as sentences: "Pad with zeros."; empty if the rule says it
};

/// "head_dim = 96; expected 64, 128 or 256. Pad with zeros."; "kernel k2 does not support ..."
std::string to_string(const Reason& reason);

/// The Error of a problem that makes no sense (InvalidArgument) or that nothing here can do
/// (Unsupported). Its text lists the reasons as well. Of a problem that makes no sense these are
/// all that is wrong with it; which kernels could do it is asked only of one that does.
class Refusal : public Error {
 public:
  Refusal(ErrorKind kind, const std::string& message, std::vector<Reason> reasons)
      : Error(kind, message),
        reasons_(std::make_shared<const std::vector<Reason>>(std::move(reasons))) {}

  const std::vector<Reason>& reasons() const noexcept { return *reasons_; }

 private:
  std::shared_ptr<const std::vector<Reason>> reasons_;  // copies of an exception may not throw
};

}  // namespace tilewright
