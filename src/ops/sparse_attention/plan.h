// From a sparse attention problem to launches and a workspace, by arithmetic alone.
#pragma once

#include "tilewright/sparse_attention.h"

#include "device/device.h"
#include "ops/sparse_attention/kernels.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::ops {

/// Where things stand in the workspace, in bytes.
struct SparseWorkspace {
  std::size_t work = 0, work_begin = 0, merges = 0, merge_of_slot = 0, counters = 0;
  std::size_t partial_out = 0, partial_lse = 0, total = 0;
  struct Union {
    std::size_t indices = 0, masks = 0, lengths = 0;
  };
  Union unions[2];  ///< of a tile's windows and compressed lists
};

struct SparsePlanned {
  SparseAttentionPlan plan;
  SparseKernelShape shape;
  SparseWorkspace workspace;
  std::int32_t piece_cost = 0, partial_cost = 0, combine_cost = 0;  ///< of the schedule
  bool merges_parts = false;  ///< by the CTAs that computed them, in place of a launch
};

/// Errors   as SparseAttention's constructor
SparsePlanned make_sparse_plan(const device::DeviceInfo& device,
                               const SparseAttentionProblem& problem);

/// How problem and kernel read.
std::vector<PlanNote> sparse_notes(const SparseAttentionPlan& plan);

}  // namespace tilewright::ops
