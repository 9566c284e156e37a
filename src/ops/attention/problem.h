// The arithmetic of an attention problem, beside what the public header has of it.
#pragma once

#include "tilewright/attention.h"

#include "ops/operator/problem_checks.h"

namespace tilewright::ops {

/// Longest sequence: positions and windows around them have to fit 32 bits.
inline constexpr std::int64_t kMaxAttentionLength = std::int64_t{1} << 29;

/// What messages call the operands.
struct AttentionTensorNames {
  const char *q = "q", *k = "k", *v = "v";
};
/// As complete(), with what is wrong noted. It is complete if nothing is.
AttentionProblem complete_attention_problem(ProblemChecks& checks, const AttentionProblem& problem,
                                            const AttentionTensorNames& names = {});

/// Operands are quantised values with scales, not numbers of 16 bits.
bool attention_is_e4m3(const AttentionProblem& problem) noexcept;
/// They are, and values lie in columns.
bool attention_has_columns(const AttentionProblem& problem) noexcept;
DType attention_out_dtype(const AttentionProblem& problem) noexcept;
/// Of v and out: value_dim, or head_dim.
std::int64_t attention_value_dim(const AttentionProblem& problem) noexcept;
/// Columns of values in that layout, those of all packed sequences.
std::int64_t attention_value_columns(const AttentionProblem& problem) noexcept;

/// k and v as [batch, rows, ...]: sequences, pages, or one batch of packed sequences.
struct KvShape {
  std::int64_t batch, rows;
};
KvShape attention_kv_shape(const AttentionProblem& problem) noexcept;

/// Of k and v.
DType attention_kv_dtype(const AttentionProblem& problem) noexcept;
/// Whether codes of keys and values become numbers of 16 bits, as queries are.
bool attention_widens(const AttentionProblem& problem) noexcept;

/// Rows of q and out, and of k and v, over all sequences or pages.
std::int64_t attention_q_rows(const AttentionProblem& problem) noexcept;
std::int64_t attention_kv_rows(const AttentionProblem& problem) noexcept;

/// Pairs of query and visible key in one sequence; exact up to 2^53.
double count_visible_scores(const AttentionProblem& problem, std::int64_t q_len,
                            std::int64_t kv_len) noexcept;

/// "bf16", "f16", "e4m3": as in names of kernels.
const char* attention_type_name(DType dtype) noexcept;

}  // namespace tilewright::ops
