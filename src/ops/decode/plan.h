// From a decode problem to launches and a workspace, by arithmetic alone.
#pragma once

#include "tilewright/attention_decode.h"

#include "device/device.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::ops {

/// Where things stand in the workspace, in bytes.
struct DecodeWorkspace {
  std::size_t rotated = 0, partial_out = 0, partial_sums = 0, counters = 0, total = 0;
};

struct DecodePlanned {
  AttentionDecodePlan plan;
  DecodeWorkspace workspace;
  std::uint64_t counter_tag = 0;  ///< of this plan, and no other one
};

/// Errors   as AttentionDecode's constructor
DecodePlanned make_decode_plan(const device::DeviceInfo& device,
                               const AttentionDecodeProblem& problem);

/// How problem and kernel read.
std::vector<PlanNote> decode_notes(const AttentionDecodePlan& plan);

}  // namespace tilewright::ops
