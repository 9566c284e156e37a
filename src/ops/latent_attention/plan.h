// From a latent attention problem to launches and a workspace, by arithmetic alone.
#pragma once

#include "tilewright/latent_attention.h"

#include "device/device.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::ops {

/// Where things stand in the workspace, in bytes.
struct LatentWorkspace {
  std::size_t work = 0, work_begin = 0, merges = 0, partial_out = 0, partial_lse = 0, total = 0;
};

struct LatentPlanned {
  LatentAttentionPlan plan;
  LatentWorkspace workspace;
  int ctas = 0;                                                     ///< of a tile
  int cluster = 1;                                                  ///< of them that share keys
  bool has_maps = false;                                            ///< keys come by tensor copies
  std::int32_t piece_cost = 0, partial_cost = 0, combine_cost = 0;  ///< of the schedule
};

/// Errors   as LatentAttention's constructor
LatentPlanned make_latent_plan(const device::DeviceInfo& device,
                               const LatentAttentionProblem& problem);

}  // namespace tilewright::ops
