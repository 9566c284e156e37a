// Declarations of what unsupported.cpp defines. Apart from functions.h, because these have no
// parameters and so must not be seen together with cuda.h.
#pragma once

#include "sim/driver/abi/functions.h"

namespace tilewright::sim::abi {

#define TILEWRIGHT_DECLARE(name, ...) extern "C" CUresult name();
TILEWRIGHT_SIM_UNSUPPORTED_FUNCTIONS(TILEWRIGHT_DECLARE)
TILEWRIGHT_SIM_UNSUPPORTED_PER_THREAD_NAMES(TILEWRIGHT_DECLARE)
#undef TILEWRIGHT_DECLARE

}  // namespace tilewright::sim::abi
