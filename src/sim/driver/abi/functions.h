// Declarations of the functions that the simulator has.
#pragma once

#include "sim/driver/abi/function_tables.h"

namespace tilewright::sim::abi {

#define TILEWRIGHT_SIM_DECLARE(name, version, parameters) extern "C" CUresult name parameters;
TILEWRIGHT_SIM_FUNCTIONS(TILEWRIGHT_SIM_DECLARE)
#undef TILEWRIGHT_SIM_DECLARE

}  // namespace tilewright::sim::abi
