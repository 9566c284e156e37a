#include "ops/sparse_attention/problem.h"

#include "kernels/sparse_attention/decode.h"
#include "ops/operator/arguments.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxTopk = std::int64_t{1} << 20;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 50;
constexpr std::int64_t kVectorElems = 8;  // 16 bytes of bf16

constexpr ArgumentChecks kChecks("sparse attention");

void complete_list(const char* name, SparseList& list) {
  kChecks.check(list.topk >= 0 && list.topk <= kMaxTopk, "{}.topk = {}; expected 0 (none) to {}",
                name, list.topk, kMaxTopk);
  if (list.topk == 0) return;
  list.cache = complete(list.cache);
  if (list.index_stride == 0) list.index_stride = list.topk;
  kChecks.check(list.index_stride >= list.topk && list.index_stride <= kMaxStride,
                "{}.index_stride = {}; expected at least topk = {}: lists may not overlap", name,
                list.index_stride, list.topk);
}

// Contiguous [batch, q_len, heads, width] if all are 0.
void complete_strides(const char* name, const SparseAttentionProblem& p, std::int64_t width,
                      std::int64_t granule, Strides& s) {
  if (s.batch == 0 && s.row == 0 && s.head == 0)
    s = {p.q_len * p.heads * width, p.heads * width, width};
  for (const std::int64_t stride : {s.batch, s.row, s.head}) {
    kChecks.check(stride >= 0 && stride <= kMaxStride && stride % granule == 0,
                  "{}_strides = {}, {}, {}; expected multiples of {} from 0 on{}", name, s.batch,
                  s.row, s.head, granule, granule > 1 ? ": rows are read in 16 bytes" : "");
  }
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

double sparse_flops(const SparseAttentionProblem& p) noexcept {
  return entries(p) * static_cast<double>(p.heads) * 4 * kKvDims;
}

double sparse_bytes(const SparseAttentionProblem& p) noexcept {
  const double rows = entries(p) * static_cast<double>(kv_row_bytes(sparse_format(p)));
  return rows + static_cast<double>(sparse_queries(p) * p.heads) * kKvDims * 4;
}

}  // namespace tilewright::ops

namespace tilewright {

SparseAttentionProblem complete(const SparseAttentionProblem& problem) {
  SparseAttentionProblem p = problem;
  ops::kChecks.range("batch", p.batch, 0, ops::kMaxInt32);
  ops::kChecks.range("q_len", p.q_len, 0, ops::kMaxInt32);
  ops::kChecks.check(p.q_len == 0 || p.batch <= ops::kMaxInt32 / p.q_len,
                     "batch = {} times q_len = {} queries; expected fewer than 2^31", p.batch,
                     p.q_len);
  ops::kChecks.range("heads", p.heads, 1, kernels::kSparseMaxHeads);
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(kKvDims));
  const std::string fault = ops::score_factors_fault(p.scale, "512^-0.5", 0);
  ops::kChecks.check(fault.empty(), "{}", fault);
  ops::complete_list("window", p.window);
  ops::complete_list("compressed", p.compressed);
  ops::kChecks.check(p.window.topk > 0 || p.compressed.topk > 0,
                     "window.topk and compressed.topk are 0; expected at least one list");
  ops::kChecks.check(
      p.window.topk == 0 || p.compressed.topk == 0 ||
          p.window.cache.format == p.compressed.cache.format,
      "the window cache is {}, the compressed one {}; expected one format. Rewrite one of them.",
      to_string(p.window.cache.format), to_string(p.compressed.cache.format));
  ops::complete_strides("q", p, kKvDims, ops::kVectorElems, p.q_strides);
  ops::complete_strides("out", p, kKvDims, ops::kVectorElems, p.out_strides);
  ops::complete_strides("lse", p, 1, 1, p.lse_strides);
  return p;
}

SparseAttentionProblem sparse_prefill_problem(std::int64_t tokens, std::int64_t heads,
                                              std::int64_t num_rows, std::int64_t topk) {
  return {
      .batch = 1,
      .q_len = tokens,
      .heads = heads,
      .window = {.cache = {.format = NumberFormat::kBf16, .page_size = 1, .num_pages = num_rows},
                 .topk = topk}};
}

}  // namespace tilewright
