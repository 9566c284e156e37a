// How many CTAs and clusters the device holds at a time.
#pragma once

#include "sim/driver/objects/module.h"

namespace tilewright::sim {

std::uint32_t max_ctas_per_sm(const FunctionObject& function, std::uint32_t threads,
                              std::uint32_t dynamic_shared_bytes);

}  // namespace tilewright::sim
