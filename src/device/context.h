// Making a device's context current for one scope.
#pragma once

#include "device/driver.h"

#include <new>

namespace tilewright::device {

/// While it lives, `context` is the calling thread's current context; then the previous one is
/// again. Costs one query if the context is current already, which is the usual case: the CUDA
/// runtime and Tilewright share the primary context.
///
/// A scope may not outlive the function that opened it, and scopes of one thread end in the reverse
/// order of their beginning. Nothing in Tilewright leaves a context of its own current behind.
class [[nodiscard]] CurrentContext {
 public:
  /// Errors   DeviceError if the driver refuses
  CurrentContext(const Driver& driver, abi::CUcontext context);
  /// For destructors: a refusal is noted with the driver's release failures; see is_current().
  CurrentContext(const Driver& driver, abi::CUcontext context, std::nothrow_t) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  bool is_current() const noexcept { return result_ == abi::CUresult::kSuccess; }

 private:
  void enter(abi::CUcontext context) noexcept;

  const Driver& driver_;
  abi::CUresult result_ = abi::CUresult::kSuccess;
  const char* function_ = "";  // that gave the result
  bool is_pushed_ = false;
};

}  // namespace tilewright::device
