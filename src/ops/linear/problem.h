// The arithmetic of a linear layer: what makes sense, what it defaults to, how much work it is.
#pragma once

#include "tilewright/linear.h"

namespace tilewright::ops {

/// Bytes of an element of x or out.
std::int64_t linear_elem_bytes(DType dtype) noexcept;

/// Columns of an e4m3 x in memory: k rounded up to 64.
std::int64_t fp8_columns(std::int64_t k) noexcept;

/// Rows that block scales of e4m3 activations have in memory: m rounded up to 4.
std::int64_t fp8_scale_rows(std::int64_t m) noexcept;

/// The problem with every default filled in.
/// Errors   InvalidArgument naming field, value, rule and remedy
LinearProblem complete_linear_problem(const LinearWeightInfo& weight, const LinearProblem& problem);

/// Errors   InvalidArgument if no kernel can read such a weight
void check_linear_weight(const LinearWeightInfo& weight);

/// Bytes of the weight as it is stored, without padding.
double linear_weight_bytes(const LinearWeightInfo& weight) noexcept;

/// 2 m n k; and weight, x and out, each once.
double linear_flops(const LinearWeightInfo& weight, const LinearProblem& problem) noexcept;
double linear_bytes(const LinearWeightInfo& weight, const LinearProblem& problem) noexcept;

}  // namespace tilewright::ops
