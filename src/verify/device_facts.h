// What a device says of runs: a simulator its counts, a GPU its clocks.
#pragma once

#include "tilewright/device.h"

#include <nlohmann/json_fwd.hpp>

namespace tilewright::cli {

/// What a simulated device counted since the last call, summed over kernels; null on a GPU or if no
/// report was asked for (request_counts). See docs/03-simulator.md for the members.
nlohmann::json take_counts(const Device& device);
/// Before the device is opened: lets simulators count.
void request_counts();

/// "clocks", power and temperature as nvidia-smi says; null without it.
nlohmann::json read_clocks(const Device& device);

}  // namespace tilewright::cli
