// GPUs that can be planned for without one, and without the simulator.
#pragma once

#include "device/device.h"
#include "device/device_spec.h"

namespace tilewright::device {

/// What the driver says about the GPU of a specification "plan:h200", "plan:b200" or "plan:b300".
const DeviceInfo& planned_device_info(DeviceSpec::Kind kind);

}  // namespace tilewright::device
