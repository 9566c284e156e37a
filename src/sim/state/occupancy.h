// How many CTAs of a kernel an SM holds.
#pragma once

#include "sim/model/device_model.h"
#include "sim/state/launch.h"

#include <cstdint>

namespace tilewright::sim {

/// At a time, of CTAs of this size.
std::uint32_t max_active_ctas_per_sm(const DeviceModel& device, const KernelInfo& kernel,
                                     std::uint32_t threads, std::uint32_t dynamic_shared_bytes);

}  // namespace tilewright::sim
