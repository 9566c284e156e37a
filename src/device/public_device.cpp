// The public face of this module.
#include "tilewright/device.h"

#include "device/open_device.h"

#include <optional>
#include <utility>

namespace tilewright {

Device::Device(std::shared_ptr<const device::Device> device) noexcept
    : device_(std::move(device)) {}

Device Device::open(const std::string& spec) {
  const device::DeviceSpec parsed =
      spec.empty() ? device::resolve_device_spec() : device::parse_device_spec(spec);
  return Device(std::make_shared<const device::Device>(device::open_device(parsed)));
}

const std::string& Device::spec() const noexcept {
  return device_->spec();
}
const std::string& Device::why() const noexcept {
  return device_->why();
}
const std::string& Device::name() const noexcept {
  return device_->info().name;
}
std::string Device::description() const {
  return device_->describe();
}
bool Device::is_simulated() const noexcept {
  return device_->is_simulated();
}
int Device::compute_capability() const noexcept {
  return device_->info().compute_capability;
}
int Device::num_sms() const noexcept {
  return device_->info().num_sms;
}
std::size_t Device::memory_bytes() const noexcept {
  return device_->info().memory_bytes;
}
void Device::synchronize() const {
  device_->synchronize();
}
void* Device::context() const noexcept {
  return device_->context();
}

void* Device::driver_function(const std::string& exported_name) const noexcept {
  return device_->driver().function(exported_name);
}

}  // namespace tilewright
