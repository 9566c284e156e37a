// The arithmetic of a sparse attention problem, beside what the public header has of it.
#pragma once

#include "tilewright/sparse_attention.h"

#include "formats/kv_page.h"

#include <cstdint>

namespace tilewright::ops {

constexpr std::int64_t sparse_queries(const SparseAttentionProblem& p) noexcept {
  return p.batch * p.q_len;
}
/// Blocks of 64 entries of a query with full lists.
std::int64_t sparse_blocks_of_query(const SparseAttentionProblem& p) noexcept;
/// The format of the caches; both have the same.
NumberFormat sparse_format(const SparseAttentionProblem& p) noexcept;

/// Rows of DeepSeek-V3, of 576 numbers.
inline bool is_mla(const SparseAttentionProblem& p) noexcept {
  return p.head_dim == kKvMlaDims;
}
/// Of the caches' rows, as kernels name it.
KvFormat sparse_row_format(const SparseAttentionProblem& p) noexcept;

/// 2 * 1024 (rows of 576: 2 * 1088) for each head, query and entry.
double sparse_flops(const SparseAttentionProblem& p) noexcept;
/// The rows that the lists name, q and out: each once.
double sparse_bytes(const SparseAttentionProblem& p) noexcept;

}  // namespace tilewright::ops
