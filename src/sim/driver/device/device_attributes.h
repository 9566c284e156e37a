// What cuDeviceGetAttribute answers.
#pragma once

#include "sim/driver/abi/abi.h"
#include "sim/driver/objects/state.h"

#include <optional>

namespace tilewright::sim {

inline constexpr int kPciDeviceOfFirst =
    1;  ///< PCI device number of GPU 0; the next one has the next

/// Nothing for an attribute that a CUDA 13.0 driver does not know.
std::optional<int> attribute_of(const Device& device, abi::CUdevice_attribute attribute);

}  // namespace tilewright::sim
