// The direct kernels in a plan: how their launch is cut, and what it has in shared memory.
#pragma once

#include "device/device.h"
#include "kernels/moe/direct/direct.h"
#include "ops/moe/plan.h"

#include <cstdint>
#include <string>

namespace tilewright::ops {

/// Why they cannot do it; empty if they can.
std::string direct_obstacle(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                            const MoeProblem& problem);

struct DirectExperts {
  const MoeWeightsInfo& weights;
  const MoeProblem& problem;
};

/// How the launch for routed experts is cut, and for a single one beside them, if there is one.
struct DirectCut {
  /// Parts of MoeDirectProduct and MoeDirectParams that follow from sizes.
  kernels::MoeDirectParams params;
  int ctas;
  std::int64_t shared_bytes;
};
DirectCut cut_direct(const device::DeviceInfo& device, const DirectExperts& routed,
                     const DirectExperts* single = nullptr);

/// What a direct launch may have; the rest of what there is holds the routing.
inline constexpr std::int64_t kMostDirectSharedBytes = 232448 - 6144;

/// Whether an expert fits beside routed ones.
bool fits_one_launch(const device::DeviceInfo& device, const DirectExperts& routed,
                     const DirectExperts& single);

}  // namespace tilewright::ops
