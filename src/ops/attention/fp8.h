// Attention in e4m3: which form of K7 computes a problem, how sums are accumulated and why, and the
// steps from operands of 16 bits.
#pragma once

#include "tilewright/attention_prepare.h"

#include "kernels/attention/k7/k7_fp8.h"
#include "ops/attention/kernels.h"

#include <string>

namespace tilewright::ops {

/// What kAuto becomes for a problem whose operands are e4m3, and which form of a kernel it takes.
struct Fp8Choice {
  const kernels::K7Variant* variant = nullptr;  ///< null: there is none, or a Blackwell kernel
  Fp8Accumulation accumulation = Fp8Accumulation::kOneLevel;
  std::string reason;
  std::int32_t flush_tiles = 1;  ///< two levels: tiles of keys that the tensor core adds up
};
Fp8Choice choose_fp8(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Bound on the part of a sum of so many products that accumulators of 13 fraction bits lose: each
/// step of 32 products cuts the sum off by less than 2^-13 of it.
double fp8_accumulation_error(std::int64_t keys);

/// The problem that a kernel of `kind` computes: that of e4m3 operands as it is; of 16 bits, what
/// it is once they are prepared.
AttentionProblem fp8_problem(AttentionFp8 kind, const AttentionProblem& problem);
/// How operands of 16 bits get there.
AttentionPrepareProblem fp8_prepare_problem(AttentionFp8 kind, const AttentionProblem& problem);

/// Where run() keeps prepared operands: bytes from the begin of the workspace.
struct Fp8Workspace {
  std::size_t prepare = 0, attention = 0;  ///< workspaces of the two
  std::size_t q8 = 0, k8 = 0, v8 = 0, q_descale = 0, k_descale = 0, v_descale = 0;
  std::size_t v_descale_max = 0, bytes = 0;
};
Fp8Workspace fp8_workspace(const AttentionPreparePlan& prepare, const AttentionPlan& attention);

/// What K7 reads beyond AttentionParams, but for addresses.
void set_fp8_numbers(const AttentionPlan& plan, const AttentionKernel& kernel,
                     kernels::AttentionFp8Params& params);
/// And the addresses.
void bind_fp8_scales(const AttentionArguments& arguments, kernels::AttentionFp8Params& params);

}  // namespace tilewright::ops
