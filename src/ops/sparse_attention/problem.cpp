#include "ops/sparse_attention/problem.h"

#include "formats/kv_row.h"
#include "kernels/sparse_attention/decode.h"
#include "ops/cache/kv_cache.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxTopk = std::int64_t{1} << 20;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 50;
constexpr std::int64_t kVectorElems = 8;  // 16 bytes of bf16

void complete_list(ProblemChecks& all, const char* name, std::int64_t head_dim, SparseList& list) {
  ProblemChecks checks(all, name);
  const bool has_topk = bool(checks.range("topk", list.topk, 0, kMaxTopk));
  if (list.topk == 0) return;
  ProblemChecks of_cache(checks, "cache");
  list.cache = complete_layout(of_cache, list.cache, head_dim);
  if (list.index_stride == 0) list.index_stride = list.topk;
  if (has_topk)
    checks.expect(list.index_stride >= list.topk && list.index_stride <= kMaxStride, "index_stride",
                  list.index_stride, "at least topk = {}: lists may not overlap", list.topk);
}

// [batch, q_len, heads, width] without gaps if all are 0.
void complete_strides(ProblemChecks& checks, const char* field, const SparseAttentionProblem& p,
                      std::int64_t width, std::int64_t granule, Strides& s) {
  if (s.batch == 0 && s.row == 0 && s.head == 0) {
    if (checks.is_fine()) s = {p.q_len * p.heads * width, p.heads * width, width};
    return;
  }
  const auto is_right = [&](std::int64_t stride) {
    return stride >= 0 && stride <= kMaxStride && stride % granule == 0;
  };
  checks.expect(is_right(s.batch) && is_right(s.row) && is_right(s.head), field,
                fmt::format("{}, {}, {}", s.batch, s.row, s.head), "multiples of {} from 0 on{}",
                granule, granule > 1 ? ": rows are read in 16 bytes" : "");
}

double entries(const SparseAttentionProblem& p) noexcept {
  return static_cast<double>(sparse_queries(p)) *
         static_cast<double>(p.window.topk + p.compressed.topk);
}

}  // namespace

std::int64_t sparse_blocks_of_query(const SparseAttentionProblem& p) noexcept {
  const auto blocks = [](std::int64_t topk) {
    return (topk + kernels::kSparseBlockKeys - 1) / kernels::kSparseBlockKeys;
  };
  return blocks(p.window.topk) + blocks(p.compressed.topk);
}

NumberFormat sparse_format(const SparseAttentionProblem& p) noexcept {
  return p.window.topk > 0 ? p.window.cache.format : p.compressed.cache.format;
}

KvFormat sparse_row_format(const SparseAttentionProblem& p) noexcept {
  return kv_format(sparse_format(p), p.head_dim);
}

double sparse_flops(const SparseAttentionProblem& p) noexcept {
  return entries(p) * static_cast<double>(p.heads) * 2 * static_cast<double>(p.head_dim + kKvDims);
}

double sparse_bytes(const SparseAttentionProblem& p) noexcept {
  const double rows = entries(p) * static_cast<double>(kv_row_bytes(sparse_row_format(p)));
  return rows + static_cast<double>(sparse_queries(p) * p.heads) * 2 *
                    static_cast<double>(p.head_dim + kKvDims);
}

}  // namespace tilewright::ops

namespace tilewright {

SparseAttentionProblem complete(const SparseAttentionProblem& problem) {
  ops::ProblemChecks checks("sparse attention");
  SparseAttentionProblem p = problem;
  if (ops::all_held({checks.range("batch", p.batch, 0, ops::kMaxInt32),
                     checks.range("q_len", p.q_len, 0, ops::kMaxInt32)}))
    checks.expect(p.q_len == 0 || p.batch <= ops::kMaxInt32 / p.q_len, "batch", p.batch,
                  "fewer than 2^31 queries, with q_len = {}", p.q_len);
  checks.range("heads", p.heads, 1, kernels::kSparseMaxHeads);
  checks.expect(p.head_dim == kKvDims || p.head_dim == kKvMlaDims, "head_dim", p.head_dim,
                "512 (DeepSeek-V4) or 576 (V3 and V3.2)");
  checks.scores(p.scale, p.head_dim == kKvMlaDims ? "576^-0.5" : "512^-0.5", 0);
  ops::complete_list(checks, "window", p.head_dim, p.window);
  ops::complete_list(checks, "compressed", p.head_dim, p.compressed);
  const bool has_window = p.window.topk != 0, has_compressed = p.compressed.topk != 0;
  checks.expect(has_window || has_compressed, "window.topk", p.window.topk,
                "at least one list; compressed.topk is 0 as well");
  checks
      .expect(!has_window || !has_compressed || p.window.cache.format == p.compressed.cache.format,
              "window.cache.format", p.window.cache.format,
              "the format of the compressed cache, {}", to_string(p.compressed.cache.format))
      .remedy("Rewrite one of them.");
  ops::complete_strides(checks, "q_strides", p, p.head_dim, ops::kVectorElems, p.q_strides);
  ops::complete_strides(checks, "out_strides", p, kKvDims, ops::kVectorElems, p.out_strides);
  ops::complete_strides(checks, "lse_strides", p, 1, 1, p.lse_strides);
  checks.finish();
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  return p;
}

SparseAttentionProblem sparse_prefill_problem(std::int64_t tokens, std::int64_t heads,
                                              std::int64_t num_rows, std::int64_t topk,
                                              std::int64_t head_dim) {
  return {
      .batch = 1,
      .q_len = tokens,
      .heads = heads,
      .window = {.cache = {.format = NumberFormat::kBf16, .page_size = 1, .num_pages = num_rows},
                 .topk = topk},
      .head_dim = head_dim};
}

}  // namespace tilewright
