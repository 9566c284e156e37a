// Random q, k and v for a given AttentionParams, and calls on parts of them.
#pragma once

#include "reference/attention/attention.h"
#include "tests/reference/inputs.h"

#include <cstdint>
#include <vector>

namespace tilewright::reference {

/// One query, one head and `kv_len` keys, all of dimension 1, with scale 1.
inline AttentionParams tiny(int64_t kv_len) {
  return {.batch = 1,
          .heads = 1,
          .kv_heads = 1,
          .q_len = 1,
          .kv_len = kv_len,
          .head_dim = 1,
          .v_head_dim = 1,
          .scale = 1.0};
}

/// One sequence with 4 heads of 6 on 2 KV heads, values of 5.
inline AttentionParams one_sequence(int64_t q_len, int64_t kv_len) {
  return {.batch = 1,
          .heads = 4,
          .kv_heads = 2,
          .q_len = q_len,
          .kv_len = kv_len,
          .head_dim = 6,
          .v_head_dim = 5};
}

/// Causal, 4 heads of 3 on 2 KV heads, values of 5.
inline AttentionParams causal_batch(int64_t batch, int64_t q_len, int64_t kv_len) {
  return {.batch = batch,
          .heads = 4,
          .kv_heads = 2,
          .q_len = q_len,
          .kv_len = kv_len,
          .head_dim = 3,
          .v_head_dim = 5,
          .causal = true};
}

struct AttentionInputs {
  std::vector<double> q, k, v;

  AttentionResult run(const AttentionParams& params) const { return attention(params, q, k, v); }
};

/// q of `q_rows` tokens, k and v of `kv_rows` tokens.
inline AttentionInputs random_attention_inputs(const AttentionParams& p, int64_t q_rows,
                                               int64_t kv_rows, uint64_t seed = 1) {
  return {random_doubles(3 * seed, q_rows * p.heads * p.head_dim),
          random_doubles(3 * seed + 1, kv_rows * p.kv_heads * p.head_dim),
          random_doubles(3 * seed + 2, kv_rows * p.kv_heads * p.v_head_dim)};
}

/// The same for sequences that are neither packed nor paged.
inline AttentionInputs random_attention_inputs(const AttentionParams& p) {
  return random_attention_inputs(p, p.batch * p.q_len, p.batch * p.kv_len);
}

/// Rows [begin, end) of an array [rows, row_elems].
inline std::vector<double> rows_between(const std::vector<double>& array, int64_t begin,
                                        int64_t end, int64_t row_elems) {
  return {array.begin() + begin * row_elems, array.begin() + end * row_elems};
}

/// Element [h, i] of every h of a per-row array [heads, num_rows], as [heads].
inline std::vector<double> column(const std::vector<double>& per_row, int64_t num_rows, int64_t i) {
  std::vector<double> values;
  for (size_t at = i; at < per_row.size(); at += num_rows) values.push_back(per_row[at]);
  return values;
}

}  // namespace tilewright::reference
