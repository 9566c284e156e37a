// How many CTAs of a launch an SM holds, with the registers that ptxas gave the kernel.
#pragma once

#include "tilewright/kernels.h"

#include <nlohmann/json_fwd.hpp>

namespace tilewright::cli {

/// What a simulator cannot know from PTX: it estimates registers. `kernel` is a kernel of its
/// report, whose "occupancy" is replaced; `facts` is the one that a GPU would run.
void use_real_registers(nlohmann::json& kernel, const EmbeddedKernel& facts);

}  // namespace tilewright::cli
