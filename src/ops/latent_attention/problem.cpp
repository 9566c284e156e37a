#include "ops/latent_attention/problem.h"

#include "kernels/sparse_attention/latent/latent.h"
#include "ops/operator/cache_checks.h"

#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

using Problem = LatentAttentionProblem;

constexpr std::int64_t kMaxBatch = 65535;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 30;  // of a sequence, all heads
constexpr std::int64_t kMaxStride = std::int64_t{1} << 38;
constexpr StrideRule kRowStrides = {8, kMaxStride, "from 0 to 2^38: rows are 16-byte aligned"};
constexpr StrideRule kLseStrides = {1, kMaxStride, "from 0 to 2^38"};

void check_numbers(ProblemChecks& checks, const Problem& p) {
  checks.expect(p.dtype == DType::kBF16 || p.dtype == DType::kF16, "dtype", p.dtype, "BF16 or F16")
      .remedy("Convert first.");
  checks.range("batch", p.batch, 0, kMaxBatch).remedy("Run parts of the batch.");
  if (all_held({checks.range("heads", p.heads, 1, kMaxCacheHeads).remedy("Run parts of the heads."),
                checks.range("kv_heads", p.kv_heads, 1, kMaxCacheHeads)
                    .remedy("Run parts of the heads."),
                checks.range("q_len", p.q_len, 0, kMaxRows).remedy("Run parts of the queries.")})) {
    check_head_groups(checks, p.heads, p.kv_heads);
    checks
        .expect(p.q_len <= kMaxRows / p.heads, "q_len", p.q_len,
                "at most 2^30 rows of a sequence, with heads = {}", p.heads)
        .remedy("Run parts of the queries.");
  }
  checks
      .expect(p.value_dim == 256 || p.value_dim == 512, "value_dim", p.value_dim,
              "256 or 512, beside keys of {}", kernels::kLatentKeyDims)
      .remedy("Pad with zeros.");
  checks.scores(p.scale, p.has_qv ? "(64 + value_dim)^-0.5" : "64^-0.5", 0);
}

void complete_room(ProblemChecks& checks, Problem& p) {
  if (p.page_size == 0) return check_no_pages(checks, p);
  const bool is_part = p.page_size == 8 || p.page_size == 16 || p.page_size == 32;
  const bool is_right =
      is_part || (p.page_size > 0 && p.page_size % kernels::kSparseBlockKeys == 0);
  checks
      .expect(is_right && p.page_size <= kMaxCacheKeys, "page_size", p.page_size,
              "8, 16, 32 or a multiple of 64: keys come 64 at a time")
      .remedy("0 stands for no pages.");
  complete_pages(checks, p, is_right, kMaxStride);
}

void complete_all_strides(ProblemChecks& checks, Problem& p) {
  constexpr std::int64_t kKeyDims = kernels::kLatentKeyDims;
  const std::int64_t slots = p.page_size > 0 ? p.page_size : p.max_len;
  const Strides lse = checks.is_fine() ? Strides{p.heads * p.q_len, 1, p.q_len} : Strides{};
  const Strides q = without_gaps(checks, p.q_len, p.heads, kKeyDims);
  const Strides qv = without_gaps(checks, p.q_len, p.heads, p.value_dim);
  const Strides k = without_gaps(checks, slots, p.kv_heads, kKeyDims);
  const Strides v = without_gaps(checks, slots, p.kv_heads, p.value_dim);
  complete_strides(checks, "q_strides", kRowStrides, q, p.q_strides);
  complete_strides(checks, "qv_strides", kRowStrides, qv, p.qv_strides);
  complete_strides(checks, "out_strides", kRowStrides, qv, p.out_strides);
  complete_strides(checks, "lse_strides", kLseStrides, lse, p.lse_strides);
  complete_strides(checks, "k_strides", kRowStrides, k, p.k_strides);
  complete_strides(checks, "v_strides", kRowStrides, v, p.v_strides);
}

}  // namespace

std::int64_t latent_capacity(const Problem& p) noexcept {
  return p.page_size > 0 ? p.max_pages * p.page_size : p.max_len;
}

std::int64_t latent_rows(const Problem& p) noexcept {
  return p.heads / p.kv_heads * p.q_len;
}

Work latent_work(const Problem& p) noexcept {
  const auto keys = static_cast<double>(latent_capacity(p));
  const auto queries = static_cast<double>(p.batch * p.q_len * p.heads);
  const auto values = static_cast<double>(p.value_dim);
  const double of_key = kernels::kLatentKeyDims + values * (p.has_qv ? 2 : 1);
  const double hidden = p.causal ? std::min(keys, static_cast<double>(p.q_len - 1) / 2) : 0;
  const double of_query = kernels::kLatentKeyDims + values * (p.has_qv ? 2 : 1);
  return {2 * queries * (keys - hidden) * of_key,
          2 * (queries * of_query + static_cast<double>(p.batch * p.kv_heads) * keys *
                                        (kernels::kLatentKeyDims + values))};
}

}  // namespace tilewright::ops

namespace tilewright {

LatentAttentionProblem complete(const LatentAttentionProblem& problem) {
  ops::ProblemChecks checks("latent attention");
  LatentAttentionProblem p = problem;
  ops::check_numbers(checks, p);
  ops::complete_room(checks, p);
  ops::complete_all_strides(checks, p);
  checks.finish();
  if (!p.scale)
    p.scale = 1 / std::sqrt(static_cast<double>(kernels::kLatentKeyDims) +
                            (p.has_qv ? static_cast<double>(p.value_dim) : 0));
  return p;
}

LatentAttentionProblem mla_decode_problem(std::int64_t batch, std::int64_t q_len,
                                          std::int64_t heads, std::int64_t num_pages,
                                          std::int64_t max_pages, std::int64_t page_size) {
  constexpr std::int64_t kDims = 576;
  const Strides q = {q_len * heads * kDims, heads * kDims, kDims};
  const Strides rows = {page_size * kDims, kDims, kDims};
  return {.batch = batch,
          .q_len = q_len,
          .heads = heads,
          .page_size = page_size,
          .num_pages = num_pages,
          .max_pages = max_pages,
          .q_strides = q,
          .qv_strides = q,
          .k_strides = rows,
          .v_strides = rows};
}

}  // namespace tilewright
