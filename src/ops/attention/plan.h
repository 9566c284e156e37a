// From a problem to launches, by arithmetic alone.
#pragma once

#include "tilewright/attention.h"

#include "device/device.h"
#include "ops/attention/kernels.h"

#include <string>
#include <vector>

namespace tilewright::ops {

/// Errors   as Attention's constructor
AttentionPlan make_attention_plan(const device::DeviceInfo& device,
                                  const AttentionProblem& problem);

/// "head_dim 192, value_dim 128", the second where it is another.
std::string attention_dims_text(const AttentionProblem& problem);

/// How problem and kernel read.
std::vector<PlanNote> attention_notes(const AttentionPlan& plan);

/// (batch, head) pairs whose tiles K6 deals longest first: as many as keep their keys and values in
/// the L2 cache together; 1 where all tiles cost the same.
std::int32_t attention_section_heads(const device::DeviceInfo& device,
                                     const AttentionProblem& problem);

/// Whether tiles differ in cost, so that they are better drawn than dealt.
bool has_uneven_tiles(const AttentionProblem& problem) noexcept;

}  // namespace tilewright::ops
