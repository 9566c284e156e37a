// The sections of the instruction table, in the order in which `tilewright sim isa` lists them.
#pragma once

#include "sim/program/lowering.h"

namespace tilewright::sim {

const InsnSection& arithmetic_section();
const InsnSection& bits_section();
const InsnSection& compare_section();
const InsnSection& convert_section();
const InsnSection& move_section();
const InsnSection& special_function_section();

}  // namespace tilewright::sim
