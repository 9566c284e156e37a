// Tables of functions that have no names: the CUDA runtime asks for them by a number.
#pragma once

#include "sim/driver/abi.h"

namespace tilewright::sim {

/// nullptr if there is no such table here.
const void* find_export_table(const abi::CUuuid& id) noexcept;

}  // namespace tilewright::sim
