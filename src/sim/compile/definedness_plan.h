// What is known of a kernel's values before it runs.
#pragma once

#include "sim/compile/allocation.h"
#include "sim/state/code.h"

namespace tilewright::sim {

/// Sets KernelCode::spread and ::undefined_rows and the flags kMaybeUndefined and kHasRows.
void plan_definedness(KernelCode& code, const RegisterRows& registers);

}  // namespace tilewright::sim
