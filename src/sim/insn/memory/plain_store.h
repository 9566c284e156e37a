// st and red, for instructions that differ from them by their name alone.
#pragma once

#include "sim/compile/lowering.h"

namespace tilewright::sim {

void lower_store(Lowering& l);
void lower_reduction(Lowering& l);

}  // namespace tilewright::sim
