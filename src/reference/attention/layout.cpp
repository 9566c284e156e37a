#include "reference/attention/layout.h"

#include "base/error.h"
#include "reference/shape.h"

#include <cmath>

namespace tilewright::reference {
namespace {

void check_numbers(const AttentionParams& p) {
  require_at_least("attention", "batch", p.batch, 0);
  require_at_least("attention", "heads", p.heads, 1);
  require_at_least("attention", "kv_heads", p.kv_heads, 1);
  require_at_least("attention", "head_dim", p.head_dim, 1);
  require_at_least("attention", "v_head_dim", p.v_head_dim, 1);
  require_at_least("attention", "window_left", p.window_left, -1);
  require_at_least("attention", "window_right", p.window_right, -1);
  require(p.heads % p.kv_heads == 0, kInvalid,
          "attention: heads = {} and kv_heads = {}; expected kv_heads to divide heads. Repeat or "
          "drop KV heads.",
          p.heads, p.kv_heads);
  require(p.softcap >= 0 && std::isfinite(p.softcap), kInvalid,
          "attention: softcap = {}; expected a finite value >= 0. Use 0 for none.", p.softcap);
  require(std::isfinite(p.scale.value_or(1.0)), kInvalid,
          "attention: scale = {}; expected a finite value. Leave it empty for head_dim^-0.5.",
          p.scale.value_or(1.0));
}

void check_sink(const AttentionParams& p) {
  if (p.sink.empty()) return;
  require_shape("attention", "sink", p.sink.size(), "[heads]", {p.heads});
  for (size_t h = 0; h < p.sink.size(); ++h) {
    require(!std::isnan(p.sink[h]), kInvalid,
            "attention: sink[{}] is NaN; expected a number or an infinity. Use -inf for no sink.",
            h);
  }
}

void check_page_arguments(const AttentionParams& p) {
  require(p.page_table.empty() ? p.page_size == 0 : p.page_size > 0, kInvalid,
          "attention: page_size = {} and page_table has {} entries; expected both or neither. Pass "
          "a page table and a positive page size, or an empty table and 0.",
          p.page_size, p.page_table.size());
  if (p.page_table.empty()) return;
  require(p.cu_seqlens_kv.empty(), kInvalid,
          "attention: page_table and cu_seqlens_kv are both given; expected keys that are paged or "
          "packed, not both. Pass the lengths of paged sequences as kv_lens.");
  require(p.batch > 0 && p.page_table.size() % p.batch == 0, kInvalid,
          "attention: page_table has {} entries for batch = {}; expected [batch, pages]. Pad every "
          "row to the same number of pages.",
          p.page_table.size(), p.batch);
}

// cu must be [batch + 1], start at 0, never fall and end at num_rows.
void check_cu_seqlens(const char* name, std::span<const int32_t> cu, int64_t batch,
                      int64_t num_rows) {
  require_shape("attention", name, cu.size(), "[batch + 1]", {batch + 1});
  require(cu.front() == 0 && cu.back() == num_rows, kInvalid,
          "attention: {} runs from {} to {}; expected 0 to {}, the rows of the packed array. Pass "
          "exclusive prefix sums of the lengths.",
          name, cu.front(), cu.back(), num_rows);
  for (int64_t b = 0; b < batch; ++b) {
    require(cu[b] <= cu[b + 1], kInvalid,
            "attention: {}[{}] = {} is followed by {}; expected values that never fall. Pass "
            "exclusive prefix sums of the lengths.",
            name, b, cu[b], cu[b + 1]);
  }
}

// Number of whole rows in an array; require_shape reports an array with a part of a row.
int64_t rows_of(std::span<const double> array, int64_t row_elems) {
  return static_cast<int64_t>(array.size()) / row_elems;
}

void check_q(const AttentionParams& p, std::span<const double> q) {
  if (p.cu_seqlens_q.empty()) {
    require_shape("attention", "q", q.size(), "[batch, q_len, heads, head_dim]",
                  {p.batch, p.q_len, p.heads, p.head_dim});
    return;
  }
  const int64_t total_q = rows_of(q, p.heads * p.head_dim);
  require_shape("attention", "q", q.size(), "[total_q, heads, head_dim]",
                {total_q, p.heads, p.head_dim});
  check_cu_seqlens("cu_seqlens_q", p.cu_seqlens_q, p.batch, total_q);
}

void check_kv(const AttentionParams& p, std::span<const double> k, std::span<const double> v) {
  if (!p.page_table.empty()) {
    const int64_t num_pages = rows_of(k, p.page_size * p.kv_heads * p.head_dim);
    require_shape("attention", "k", k.size(), "[num_pages, page_size, kv_heads, head_dim]",
                  {num_pages, p.page_size, p.kv_heads, p.head_dim});
    require_shape("attention", "v", v.size(), "[num_pages, page_size, kv_heads, v_head_dim]",
                  {num_pages, p.page_size, p.kv_heads, p.v_head_dim});
  } else if (!p.cu_seqlens_kv.empty()) {
    const int64_t total_kv = rows_of(k, p.kv_heads * p.head_dim);
    require_shape("attention", "k", k.size(), "[total_kv, kv_heads, head_dim]",
                  {total_kv, p.kv_heads, p.head_dim});
    require_shape("attention", "v", v.size(), "[total_kv, kv_heads, v_head_dim]",
                  {total_kv, p.kv_heads, p.v_head_dim});
    check_cu_seqlens("cu_seqlens_kv", p.cu_seqlens_kv, p.batch, total_kv);
  } else {
    require_shape("attention", "k", k.size(), "[batch, kv_len, kv_heads, head_dim]",
                  {p.batch, p.kv_len, p.kv_heads, p.head_dim});
    require_shape("attention", "v", v.size(), "[batch, kv_len, kv_heads, v_head_dim]",
                  {p.batch, p.kv_len, p.kv_heads, p.v_head_dim});
  }
}

// Keys that sequence b may use at most.
int64_t stored_keys(const AttentionParams& p, int64_t b) {
  if (!p.page_table.empty()) {
    return static_cast<int64_t>(p.page_table.size()) / p.batch * p.page_size;
  }
  if (!p.cu_seqlens_kv.empty()) return p.cu_seqlens_kv[b + 1] - p.cu_seqlens_kv[b];
  return p.kv_len;
}

int64_t keys_in_use(const AttentionParams& p, int64_t b) {
  const int64_t stored = stored_keys(p, b);
  const bool is_paged = !p.page_table.empty();
  const int64_t used = !p.kv_lens.empty() ? p.kv_lens[b] : is_paged ? p.kv_len : stored;
  require(used >= 0 && used <= stored, kInvalid,
          "attention: sequence {} uses {} keys; expected 0 to {}, the keys stored for it. Correct "
          "{}, or store more keys.",
          b, used, stored, p.kv_lens.empty() ? "kv_len" : "kv_lens");
  return used;
}

void check_pages(const AttentionParams& p, const AttentionSequence& s, int64_t num_pages) {
  const int64_t pages_per_row = static_cast<int64_t>(p.page_table.size()) / p.batch;
  for (int64_t i = 0; i * p.page_size < s.kv_len; ++i) {
    const int64_t page = p.page_table[s.index * pages_per_row + i];
    require(page >= 0 && page < num_pages, kInvalid,
            "attention: page_table[{}, {}] = {}; expected 0 to {}, the pages in k, because "
            "sequence {} uses {} keys. Shorten kv_lens or correct the table.",
            s.index, i, page, num_pages - 1, s.index, s.kv_len);
  }
}

}  // namespace

std::vector<AttentionSequence> attention_sequences(const AttentionParams& p,
                                                   std::span<const double> q,
                                                   std::span<const double> k,
                                                   std::span<const double> v) {
  check_numbers(p);
  check_sink(p);
  check_page_arguments(p);
  check_q(p, q);
  check_kv(p, k, v);
  if (!p.kv_lens.empty()) {
    require_shape("attention", "kv_lens", p.kv_lens.size(), "[batch]", {p.batch});
  }
  std::vector<AttentionSequence> sequences;
  for (int64_t b = 0; b < p.batch; ++b) {
    AttentionSequence s{b, b * p.q_len, p.q_len, b * p.kv_len, keys_in_use(p, b)};
    if (!p.cu_seqlens_q.empty()) {
      s.q_begin = p.cu_seqlens_q[b];
      s.q_len = p.cu_seqlens_q[b + 1] - p.cu_seqlens_q[b];
    }
    if (!p.cu_seqlens_kv.empty()) s.kv_begin = p.cu_seqlens_kv[b];
    if (!p.page_table.empty()) {
      s.kv_begin = 0;
      check_pages(p, s, rows_of(k, p.page_size * p.kv_heads * p.head_dim));
    }
    sequences.push_back(s);
  }
  return sequences;
}

int64_t attention_kv_row(const AttentionParams& p, const AttentionSequence& s, int64_t j) {
  if (p.page_table.empty()) return s.kv_begin + j;
  const int64_t pages_per_row = static_cast<int64_t>(p.page_table.size()) / p.batch;
  const int64_t page = p.page_table[s.index * pages_per_row + j / p.page_size];
  return page * p.page_size + j % p.page_size;
}

}  // namespace tilewright::reference
