// The arithmetic of a sparse attention problem: what makes sense, and how much work it is.
#pragma once

#include "tilewright/sparse_attention.h"

#include <cstdint>

namespace tilewright::ops {

/// Checks, and fills in strides, scale and layouts.
/// Errors   InvalidArgument naming field, value, rule and remedy
SparseAttentionProblem complete_sparse_problem(const SparseAttentionProblem& problem);

constexpr std::int64_t sparse_queries(const SparseAttentionProblem& p) noexcept {
  return p.batch * p.q_len;
}
/// Blocks of 64 entries of a query with full lists.
std::int64_t sparse_blocks_of_query(const SparseAttentionProblem& p) noexcept;
/// The format of the caches; both have the same.
NumberFormat sparse_format(const SparseAttentionProblem& p) noexcept;

/// 2 * 1024 for each head, query and entry.
double sparse_flops(const SparseAttentionProblem& p) noexcept;
/// The rows that the lists name, q and out: each once.
double sparse_bytes(const SparseAttentionProblem& p) noexcept;
/// What no kernel can be faster than, in microseconds: the larger of bytes at `bytes_per_s` and
/// flops at `flops_per_s`.
double sparse_floor_us(const SparseAttentionProblem& p, double bytes_per_s,
                       double flops_per_s) noexcept;

}  // namespace tilewright::ops
