// Launch configurations, as the driver takes them.
#pragma once

#include "sim/runtime/abi.h"

namespace tilewright::sim::runtime {

CUlaunchConfig driver_config(const cudaLaunchConfig& config);

}  // namespace tilewright::sim::runtime
