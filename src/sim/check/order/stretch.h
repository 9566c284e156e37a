// Runs of code within which nothing changes what is ordered: findings in the same two of them have
// one cause.
#pragma once

#include "sim/state/code.h"

#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// By instruction the number of its stretch: code without a branch, barrier, fence, commit or wait.
std::vector<std::uint32_t> stretches_of(const KernelCode& code);

}  // namespace tilewright::sim
