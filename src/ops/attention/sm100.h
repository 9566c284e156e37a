// The attention kernels of Blackwell, for the operator: what they can do, and what they cost by
// count.
#pragma once

#include "ops/attention/kernels.h"

#include <vector>

namespace tilewright::ops {

/// Stages that are attention as the operator has it: sm100_c, sm100_e, sm100_f.
std::vector<AttentionKernel> make_sm100_attention_kernels();

/// Microseconds in which no unit of the busiest SM could do more, from the counts of
/// src/kernels/attention_sm100/README.md. No B200 has been measured.
double sm100_attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& problem);

}  // namespace tilewright::ops
