#include "ops/c_api/device.h"

#include "ops/c_api/convert/versions.h"
#include "ops/c_api/status.h"

using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

tw_status tw_device_open(const char* spec, tw_device** device) {
  return guarded([&] {
    require_address(device, "tw_device_open", "device");
    *device = nullptr;
    tilewright::Device opened = tilewright::Device::open(spec == nullptr ? "" : spec);
    std::string description = opened.description();
    *device = new tw_device{std::move(opened), std::move(description)};
  });
}

void tw_device_close(tw_device* device) {
  delete device;
}

const char* tw_device_description(const tw_device* device) {
  return device == nullptr ? "" : device->description.c_str();
}

int tw_device_is_simulated(const tw_device* device) {
  return device != nullptr && device->device.is_simulated() ? 1 : 0;
}

int tw_device_can_run(const tw_device* device) {
  return device != nullptr && device->device.can_run() ? 1 : 0;
}

void* tw_device_context(const tw_device* device) {
  return device == nullptr ? nullptr : device->device.context();
}

void* tw_device_driver_function(const tw_device* device, const char* exported_name) {
  if (device == nullptr || exported_name == nullptr) return nullptr;
  return device->device.driver_function(exported_name);
}

tw_status tw_device_synchronize(const tw_device* device) {
  return guarded([&] {
    require_address(device, "tw_device_synchronize", "device");
    device->device.synchronize();
  });
}
