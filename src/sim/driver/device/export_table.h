// Tables of functions that have no names: the CUDA runtime asks for them by a number.
#pragma once

#include "sim/driver/abi/abi.h"

namespace tilewright::sim {

/// nullptr if there is no such table here. `caller`: an address in the code that asks; the library
/// it belongs to is named if this stands in its way.
const void* find_export_table(const abi::CUuuid& id, const void* caller) noexcept;

}  // namespace tilewright::sim
