// From a device specification to a device.
#pragma once

#include "device/device.h"
#include "device/device_spec.h"
#include "device/driver_libraries.h"

namespace tilewright::device {

/// Whether Tilewright has kernels for this compute capability (10 * major + minor): 90, or 10x.
constexpr bool is_usable_capability(int capability) {
  return capability == 90 || capability / 10 == 10;
}

/// Opens what the specification asks for. Device::spec() is then exact (cuda:0, sim:h200) and
/// Device::why() says how an automatic choice came about.
///
/// The simulator shows each model that it knows as a GPU of its own; the one with the compute
/// capability of the specification is taken.
///
/// Errors   Unsupported if there is no such device; the message lists each library tried and each
///          GPU found, with the reason against it
/// Thread   safe
Device open_device(const DeviceSpec& spec,
                   const DriverLibraries& libraries = DriverLibraries::standard());

}  // namespace tilewright::device
