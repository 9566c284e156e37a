// The public face of this module.
#include "tilewright/device.h"

#include "device/open_device.h"

#include <optional>
#include <utility>

namespace tilewright {

Device::Device(std::shared_ptr<const device::Device> state) noexcept : state_(std::move(state)) {}

Device Device::open(const std::string& spec) {
  const device::DeviceSpec parsed =
      spec.empty() ? device::resolve_device_spec() : device::parse_device_spec(spec);
  return Device(std::make_shared<const device::Device>(device::open_device(parsed)));
}

const std::string& Device::spec() const noexcept {
  return state_->spec();
}
const std::string& Device::why() const noexcept {
  return state_->why();
}
const std::string& Device::name() const noexcept {
  return state_->info().name;
}
std::string Device::description() const {
  return state_->describe();
}
bool Device::is_simulated() const noexcept {
  return state_->is_simulated();
}
bool Device::can_run() const noexcept {
  return state_->has_driver();
}
int Device::compute_capability() const noexcept {
  return state_->info().compute_capability;
}
int Device::num_sms() const noexcept {
  return state_->info().num_sms;
}
std::size_t Device::memory_bytes() const noexcept {
  return state_->info().memory_bytes;
}
std::size_t Device::l2_bytes() const noexcept {
  return static_cast<std::size_t>(state_->info().l2_bytes);
}
int Device::clock_khz() const noexcept {
  return state_->info().clock_khz;
}
const std::string& Device::uuid() const noexcept {
  return state_->info().uuid;
}
int Device::ordinal() const noexcept {
  return state_->info().ordinal;
}
int Device::driver_version() const noexcept {
  return can_run() ? state_->driver().version() : 0;
}
void Device::synchronize() const {
  state_->synchronize();
}
void* Device::context() const noexcept {
  return state_->context();
}

void* Device::driver_function(const std::string& exported_name) const noexcept {
  return can_run() ? state_->driver().function(exported_name) : nullptr;
}

}  // namespace tilewright
