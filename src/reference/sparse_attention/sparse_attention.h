// Float64 reference of DeepSeek-V4's sparse attention: lists of keys per query, one softmax.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Rows that serve as keys and as values, and which of them each query attends.
struct SparseKeys {
  std::span<const double> rows = {};      ///< [num_rows, head_dim]
  std::span<const int32_t> indices = {};  ///< [queries, topk]; outside [0, num_rows): masked
  int64_t topk = 0;                       ///< 0: the list is absent
  std::span<const int32_t> lengths = {};  ///< [queries] entries in use, the first ones; empty: all
};

struct SparseAttentionParams {
  int64_t queries = 0;  ///< of all sequences: batch * q_len
  int64_t heads = 0;
  int64_t head_dim = 512;
  int64_t v_head_dim = 0;             ///< the first of a row that are its value; 0: all head_dim
  double scale = 0;                   ///< 0: head_dim^-0.5
  std::span<const double> sink = {};  ///< [heads], or empty; +inf and -inf are legal
  bool positive_empty_lse = false;    ///< lse of a query without a key is +inf, as FlashMLA's
  bool magnitudes = false;            ///< also fill the *_magnitude arrays, see attention.h
};

struct SparseAttentionResult {
  std::vector<double> out;              ///< [queries, heads, v_head_dim]
  std::vector<double> lse;              ///< [queries, heads], natural log, sink excluded
  std::vector<double> row_max;          ///< [queries, heads] largest scaled score, -inf: no key
  std::vector<double> out_magnitude;    ///< like out: sum_j p_j |row_j|
  std::vector<double> score_magnitude;  ///< [queries, heads]: max_j scale * sum_c |q_c row_jc|
};

/// out[i,h,:] = sum_j p_j row_j,  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j)),
/// s_j = scale * q[i,h,:] . row_j over the entries of both lists together; out takes the first
/// v_head_dim numbers of row_j (DeepSeek-V3: 512 of 576); an entry that is listed
/// twice counts twice. lse[i,h] = ln sum_j exp(s_j)
/// Shapes   q [queries, heads, head_dim]; the output still carries the rotation of the rows
/// Layout   contiguous
/// Masked   an index outside the rows, and entries past the length (a negative length is 0)
/// Empty    no key left: out = 0, lse = -inf. sink = +inf: out = 0; sink = -inf: as without a sink
/// Errors   InvalidArgument if an array does not have its shape
/// Thread   safe
/// Source   FlashMLA (lists, lse); DeepSeek-V4 reference model (sink)
SparseAttentionResult sparse_attention(const SparseAttentionParams& params,
                                       std::span<const double> q, const SparseKeys& window,
                                       const SparseKeys& compressed = {});

/// The window list of queries at `positions`: [queries, window] rows max(0, p - window + 1) .. p,
/// oldest first, then -1; row numbers are positions minus `first_row`.
std::vector<int32_t> window_indices(std::span<const int32_t> positions, int64_t window,
                                    int64_t first_row = 0);

/// Compressed rows that the token at `position` sees: floor((position + 1) / ratio). The row that
/// the token completes is among them.
constexpr int64_t visible_entries(int64_t position, int64_t ratio) {
  return (position + 1) / ratio;
}

}  // namespace tilewright::reference
