// A head_dim that no kernel has, computed as the next wider one: tensor maps read zeros for what is
// missing and write nothing there.
#pragma once

#include "tilewright/attention.h"

#include "kernels/attention/results/trim.h"
#include "ops/attention/kernels.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::ops {

/// The narrowest of 64, 128, 256, ... that has so many columns.
int padded_head_dim(std::int64_t head_dim) noexcept;
/// Whether a kernel of that width may compute a head_dim: by less than twice the products, or it is
/// one of 64.
bool is_padded_to(std::int64_t head_dim, int width) noexcept;

/// Columns that a kernel which can do a problem computes: those of its variant.
int attention_width(const AttentionKernel& kernel, const AttentionProblem& problem);
/// The same of values and out.
int attention_value_width(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Whether results are written to the workspace, as wide as they are computed, and trimmed then:
/// the kernel writes rows, and not by tensor maps.
bool trims(const AttentionKernel& kernel, const AttentionProblem& problem);
/// What they take there; 0 if they do not.
std::size_t padded_out_bytes(const AttentionKernel& kernel, const AttentionProblem& problem);
/// Microseconds of that; 0 if they do not. Padded results are written and read once more, by the
/// memory of an H200, whose rates the other costs are.
double trim_cost_us(const AttentionKernel& kernel, const AttentionProblem& problem);
Launch trim_launch(const AttentionProblem& problem);

/// The end of a workspace is where padded results are.
void* padded_out(const AttentionPlan& plan, const AttentionKernel& kernel, void* workspace);
/// Contiguous strides of padded results.
kernels::AttentionStrides padded_out_strides(const AttentionKernel& kernel,
                                             const AttentionProblem& problem);
/// The arguments of the last launch.
kernels::AttentionTrimParams trim_params(const AttentionPlan& plan, const AttentionKernel& kernel,
                                         const AttentionArguments& arguments);

}  // namespace tilewright::ops
