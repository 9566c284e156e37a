// The sections of the instruction table, each in its own file.
#pragma once

#include "sim/program/lowering.h"

namespace tilewright::sim {

const InsnSection& control_section();
const InsnSection& barrier_section();

}  // namespace tilewright::sim
