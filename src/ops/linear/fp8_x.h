// e4m3 activations of a linear layer: given by the caller, or made in the workspace.
#pragma once

#include "ops/linear/kernel.h"

namespace tilewright::ops {

/// Where e4m3 rows and their scales lie.
struct Fp8Rows {
  const void* codes = nullptr;  ///< [m, columns] in operand order
  std::int64_t stride_bytes = 0;
  const float* scales = nullptr;  ///< [m], or [ceil(k / 128)][scale_rows]
};

bool is_x_quantised_here(const LinearProblem& p) noexcept;

/// Adds the quantising launch and its workspace to a plan if x is bf16; first of all launches.
void lay_out_fp8_x(LinearPlan& plan);

/// Enqueues it, and says where the rows are.
Fp8Rows run_fp8_x(const LinearCall& call);

/// Microseconds that it takes.
double fp8_x_us(const LinearWeightInfo& weight, const LinearProblem& p) noexcept;

/// Where bf16 rows lie that a kernel without e4m3 reads.
struct Bf16Rows {
  const std::uint16_t* rows = nullptr;
  std::int64_t stride = 0;  ///< elements
};

/// The other way round, for kernels that read bf16: if x is e4m3, a first launch that makes bf16 of
/// it, code times scale rounded once, and its workspace.
void lay_out_widened_x(LinearPlan& plan);
Bf16Rows run_widened_x(const LinearCall& call);
double widened_x_us(const LinearWeightInfo& weight, const LinearProblem& p) noexcept;

}  // namespace tilewright::ops
