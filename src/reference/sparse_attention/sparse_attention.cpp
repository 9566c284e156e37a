#include "reference/sparse_attention/sparse_attention.h"

#include "reference/attention/attention.h"
#include "reference/shape.h"

#include <algorithm>
#include <limits>

namespace tilewright::reference {
namespace {

void check(const SparseAttentionParams& p, const SparseKeys& keys) {
  if (keys.topk == 0) return;
  require_at_least("sparse_attention", "topk", keys.topk, 0);
  const int64_t num_rows = static_cast<int64_t>(keys.rows.size()) / p.head_dim;
  require_shape("sparse_attention", "rows", keys.rows.size(), "[rows, head_dim]",
                {num_rows, p.head_dim});
  require_shape("sparse_attention", "indices", keys.indices.size(), "[queries, topk]",
                {p.queries, keys.topk});
  if (!keys.lengths.empty())
    require_shape("sparse_attention", "lengths", keys.lengths.size(), "[queries]", {p.queries});
}

// Appends the rows of one query's list that are not masked, counted from `offset`.
void append_valid(const SparseKeys& keys, int64_t query, int64_t head_dim, int64_t offset,
                  std::vector<int32_t>& rows) {
  const int64_t num_rows = static_cast<int64_t>(keys.rows.size()) / head_dim;
  const int64_t length =
      keys.lengths.empty() ? keys.topk : std::clamp<int64_t>(keys.lengths[query], 0, keys.topk);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t row = keys.indices[query * keys.topk + i];
    if (row >= 0 && row < num_rows) rows.push_back(static_cast<int32_t>(offset + row));
  }
}

// The first `width` numbers of each row; empty if those are all.
std::vector<double> leading(std::span<const double> rows, int64_t row, int64_t width) {
  std::vector<double> values;
  if (width == row) return values;
  for (int64_t at = 0; at < static_cast<int64_t>(rows.size()); at += row)
    values.insert(values.end(), rows.begin() + at, rows.begin() + at + width);
  return values;
}

// The valid rows of every query, padded to the same length: a page table of pages of one key.
struct Lists {
  std::vector<int32_t> table, lengths;
  int64_t width = 0;
};

Lists make_lists(const SparseAttentionParams& p, const SparseKeys& window,
                 const SparseKeys& compressed) {
  const int64_t offset = static_cast<int64_t>(window.rows.size()) / p.head_dim;
  Lists lists;
  lists.width = std::max<int64_t>(window.topk + compressed.topk, 1);
  for (int64_t i = 0; i < p.queries; ++i) {
    std::vector<int32_t> rows;
    append_valid(window, i, p.head_dim, 0, rows);
    append_valid(compressed, i, p.head_dim, offset, rows);
    lists.lengths.push_back(static_cast<int32_t>(rows.size()));
    rows.resize(lists.width, 0);
    lists.table.insert(lists.table.end(), rows.begin(), rows.end());
  }
  return lists;
}

}  // namespace

SparseAttentionResult sparse_attention(const SparseAttentionParams& p, std::span<const double> q,
                                       const SparseKeys& window, const SparseKeys& compressed) {
  require_at_least("sparse_attention", "head_dim", p.head_dim, 1);
  const int64_t v_head_dim = p.v_head_dim == 0 ? p.head_dim : p.v_head_dim;
  require_at_least("sparse_attention", "v_head_dim", v_head_dim, 1);
  require_at_least("sparse_attention", "head_dim", p.head_dim, v_head_dim);
  check(p, window);
  check(p, compressed);
  const Lists lists = make_lists(p, window, compressed);
  AttentionParams dense{.batch = p.queries,
                        .heads = p.heads,
                        .kv_heads = 1,
                        .q_len = 1,
                        .head_dim = p.head_dim,
                        .v_head_dim = v_head_dim};
  if (p.scale != 0) dense.scale = p.scale;
  dense.sink = p.sink;
  dense.kv_lens = lists.lengths;
  dense.page_table = lists.table;
  dense.page_size = 1;
  dense.magnitudes = p.magnitudes;
  std::vector<double> both;
  std::span<const double> rows = window.rows;
  if (!compressed.rows.empty()) {
    both.assign(window.rows.begin(), window.rows.end());
    both.insert(both.end(), compressed.rows.begin(), compressed.rows.end());
    rows = both;
  }
  const std::vector<double> values = leading(rows, p.head_dim, v_head_dim);
  AttentionResult result =
      attention(dense, q, rows, values.empty() ? rows : std::span<const double>(values));
  for (int64_t i = 0; p.positive_empty_lse && i < p.queries; ++i) {
    if (lists.lengths[i] > 0) continue;
    std::fill_n(result.lse.begin() + i * p.heads, p.heads, std::numeric_limits<double>::infinity());
  }
  return {std::move(result.out), std::move(result.lse), std::move(result.row_max),
          std::move(result.out_magnitude), std::move(result.score_magnitude)};
}

std::vector<int32_t> window_indices(std::span<const int32_t> positions, int64_t window,
                                    int64_t first_row) {
  require_at_least("sparse_attention", "window", window, 1);
  std::vector<int32_t> indices;
  for (const int32_t position : positions) {
    const int64_t begin = std::max<int64_t>(0, position - window + 1);
    for (int64_t i = begin; i < begin + window; ++i)
      indices.push_back(i <= position ? static_cast<int32_t>(i - first_row) : -1);
  }
  return indices;
}

}  // namespace tilewright::reference
