// Sole ownership of one driver handle: what makes streams, buffers, modules, ... safe to drop.
#pragma once

#include "device/device.h"

#include <utility>

namespace tilewright::device {

/// Name under which the driver exports the function of a table member, for messages.
template <auto kMember>
inline constexpr const char* kExportedName = nullptr;
#define TILEWRIGHT_NAME(member, exported, parameters) \
  template <>                                         \
  inline constexpr const char* kExportedName<&abi::DriverFunctions::member> = #exported;
TILEWRIGHT_DRIVER_FUNCTIONS(TILEWRIGHT_NAME, TILEWRIGHT_NAME)
#undef TILEWRIGHT_NAME

/// A handle of a device, given back by the table member kRelease. Move-only. A failure to give it
/// back is noted with the driver (Driver::take_release_failures). A moved-from object is empty and
/// may only be destroyed or assigned to.
template <class Handle, abi::CUresult (*abi::DriverFunctions::*kRelease)(Handle)>
class Owned {
 public:
  Owned(Device device, Handle handle) noexcept : device_(std::move(device)), handle_(handle) {}
  ~Owned() { release(); }
  Owned(Owned&& other) noexcept
      : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  Handle get() const noexcept { return handle_; }
  const Device& device() const noexcept { return device_; }

 private:
  void release() noexcept {
    if (handle_ == Handle{}) return;
    const CurrentContext current(device_.driver(), device_.context(), std::nothrow);
    if (!current.is_current()) return;  // noted; the handle lives on until the context dies
    device_.driver().note_release((device_.cu().*kRelease)(handle_), kExportedName<kRelease>);
  }

  Device device_;
  Handle handle_;
};

}  // namespace tilewright::device
