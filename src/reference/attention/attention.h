// Float64 reference of scaled dot-product attention: dense, variable length or paged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::reference {

/// What attention() computes. Spans refer to memory of the caller; an empty one is "not given".
///
/// Sequence b has q_len_b queries and kv_len_b keys. Query i stands at key position
/// i + kv_len_b - q_len_b, so the last query stands at the last key (bottom-right alignment). The
/// causal mask and the window are counted from that position.
struct AttentionParams {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  ///< divides heads; head h reads KV head h / (heads / kv_heads)
  int64_t q_len = 0;     ///< queries of every sequence; not read if cu_seqlens_q is given
  int64_t kv_len = 0;    ///< keys of every sequence; not read if the keys are packed, or paged with
                         ///< kv_lens
  int64_t head_dim = 0;  ///< of q and k
  int64_t v_head_dim = 0;

  std::optional<double> scale = {};  ///< scale of q . k; head_dim^-0.5 if absent
  double softcap = 0.0;  ///< c > 0: score = c * tanh(scale * q . k / c); 0: score = scale * q . k
  bool causal = false;   ///< hides the keys after the query's position, like window_right = 0
  int64_t window_left = -1;   ///< visible keys before the query's position; -1: all
  int64_t window_right = -1;  ///< visible keys after it; -1: all

  /// [heads] score of one more key, whose value is 0; +inf and -inf are legal.
  std::span<const double> sink = {};
  /// [batch + 1] first row of each sequence in packed q, and the number of rows.
  std::span<const int32_t> cu_seqlens_q = {};
  /// [batch + 1] the same for packed k and v.
  std::span<const int32_t> cu_seqlens_kv = {};
  /// [batch] keys in use, at most those stored.
  std::span<const int32_t> kv_lens = {};
  /// [batch, pages] page that holds keys i * page_size and up; not read past the last key in use.
  std::span<const int32_t> page_table = {};
  int64_t page_size = 0;  ///< keys per page; 0 exactly if page_table is not given

  bool magnitudes = false;  ///< also fill the *_magnitude arrays of the result
};

/// "Per row" means [batch, heads, q_len], or [heads, total_q] if q is packed.
struct AttentionResult {
  std::vector<double> out;            ///< like q, with v_head_dim as the last dimension
  std::vector<double> lse;            ///< per row, natural log, sink excluded
  std::vector<double> lse_with_sink;  ///< per row, natural log, sink included
  std::vector<double> row_max;        ///< per row: largest visible score, -inf if there is none

  // For a-priori bounds on the error of a kernel: a perturbation of every score by at most d
  // changes out by at most (exp(2 d) - 1) * out_magnitude.
  std::vector<double> out_magnitude;    ///< like out: sum_j p_j * |v_j|
  std::vector<double> score_magnitude;  ///< per row: max_j |scale| * sum_c |q_c k_jc|, visible j
};

/// out[b,i,h,:] = sum_j p_j v[b,j,g,:],  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j)),
/// s_j = softcap(scale * q[b,i,h,:] . k[b,j,g,:]) over the visible keys j, g = h / (heads/kv_heads)
/// lse = ln sum_j exp(s_j),  lse_with_sink = ln (exp(sink[h]) + sum_j exp(s_j))
///
/// Shapes   q [batch, q_len, heads, head_dim], or packed [total_q, heads, head_dim];
///          k [batch, kv_len, kv_heads, head_dim], or packed [total_kv, kv_heads, head_dim], or
///          paged [num_pages, page_size, kv_heads, head_dim]; v like k with v_head_dim
/// Layout   contiguous. A list of keys per query (sparse attention) is a page table with
///          page_size = 1, batch = queries, q_len = 1 and kv_lens = number of listed keys
/// Units    scores, sink and lse are natural logarithms
/// Empty    a row without a visible key: out = 0, lse = -inf, lse_with_sink = sink (FlashMLA writes
///          lse = +inf there: convert). sink = +inf: out = 0; sink = -inf: as without a sink
/// NaN      of a query or of a visible key reaches out and lse; other keys are not read
/// Accuracy plain double sums: a sum of n terms errs by at most about n * 2^-53 * sum |terms|
/// Errors   InvalidArgument if heads % kv_heads != 0, an array does not have its shape, cu_seqlens
///          do not rise from 0 to the number of rows, a length exceeds what is stored, or a page
///          that is read does not exist
/// Thread   safe
/// Source   FlashAttention-2 and -3 (alignment, window, softcap, lse); DeepSeek-V4 (sink)
AttentionResult attention(const AttentionParams& params, std::span<const double> q,
                          std::span<const double> k, std::span<const double> v);

}  // namespace tilewright::reference
