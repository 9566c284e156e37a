#include "ops/sparse_attention/kernels.h"

#include "formats/kv_row.h"
#include "kernels/sparse_attention/few_heads/sm90_decode_few_heads.h"
#include "kernels/sparse_attention/sparse_naive.h"
#include "kernels/sparse_attention/wgmma/sm90_decode_wgmma.h"
#include "ops/operator/ceil_div.h"
#include "ops/sparse_attention/problem.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

std::string entry_name(const char* kernel, const SparseAttentionProblem& p) {
  return fmt::format("{}_{}", kernel, to_string(sparse_format(p)));
}

std::string no_obstacle(const SparseAttentionProblem&) {
  return {};
}

SparseKernelShape naive_shape(const SparseAttentionProblem& p) {
  const auto ctas = static_cast<int>(ceil_div(p.heads, kernels::kSparseNaiveHeads));
  return {.entry = entry_name("sparse_naive", p),
          .head_slots = ctas * kernels::kSparseNaiveHeads,
          .head_ctas = ctas,
          .ctas_per_sm = 2,
          .threads = kernels::kSparseNaiveThreads,
          .shared_bytes = kernels::kSparseNaiveSharedBytes};
}

// From counts, not measured: 1024 flops and as many loads from shared memory for a key and head.
SparseRates naive_rates(const SparseAttentionProblem&) {
  return {.block_us = 12, .piece_us = 4, .partial_us = 1, .launch_us = 4};
}

// Few heads: keys are rows of the small MMAs, heads their 8, 16 or 32 columns.
constexpr std::int64_t kFewHeads = 32;

int few_heads_slots(const SparseAttentionProblem& p) {
  return p.heads <= 8 ? 8 : p.heads <= 16 ? 16 : 32;
}

std::string few_heads_obstacle(const SparseAttentionProblem& p) {
  if (p.heads > kFewHeads) return fmt::format("is for at most {} heads", kFewHeads);
  return {};
}

template <KvFormat Format>
int few_heads_shared_bytes(int slots) {
  return static_cast<int>(slots == 8    ? sizeof(kernels::FewHeadsShared<Format, 8>)
                          : slots == 16 ? sizeof(kernels::FewHeadsShared<Format, 16>)
                                        : sizeof(kernels::FewHeadsShared<Format, 32>));
}

SparseKernelShape few_heads_shape(const SparseAttentionProblem& p) {
  const int slots = few_heads_slots(p);
  const KvFormat format = kv_format(sparse_format(p));
  SparseKernelShape shape = {
      .entry = fmt::format("{}_h{}", entry_name("sparse_few_heads", p), slots),
      .head_slots = slots,
      .ctas_per_sm = kernels::few_heads_residents(slots),
      .threads = kernels::few_heads_threads(slots)};
  shape.shared_bytes = format == KvFormat::kBf16  ? few_heads_shared_bytes<KvFormat::kBf16>(slots)
                       : format == KvFormat::kFp8 ? few_heads_shared_bytes<KvFormat::kFp8>(slots)
                                                  : few_heads_shared_bytes<KvFormat::kNvfp4>(slots);
  return shape;
}

// H200, fp8: 34.9 and 63.4 us for one and two queries of ten blocks a group at 8 heads, 40.0 and
// 74.2 at 16; one CTA of an SM, 39.9 and 74.3, at 32.
SparseRates few_heads_rates(const SparseAttentionProblem& p) {
  return {.block_us = few_heads_slots(p) == 8 ? 2.5 : 3.05,
          .piece_us = 3.5,
          .partial_us = 0.5 + 0.03 * few_heads_slots(p),
          .launch_us = 5.5};
}

SparseKernelShape wgmma_shape(const SparseAttentionProblem& p) {
  using Tile = kernels::SparseWgmmaTile;
  const int ctas = Tile::ctas_of_group(static_cast<int>(p.heads));
  return {.entry = entry_name(ctas == 2 ? "sparse_decode_wgmma_pair" : "sparse_decode_wgmma", p),
          .head_slots = ctas * Tile::kHeads,
          .group_ctas = ctas,
          .cluster = ctas,
          .threads = Tile::kThreads,
          .shared_bytes = Tile::shared_bytes()};
}

// H200, 64 heads: 35.5 us for one query of ten blocks a group, 62.5 for two, 115.8 for four, 586
// for one of 256 blocks; 128 heads: 94.4 for two queries of 18 blocks, 167 for four, 332 for eight.
SparseRates wgmma_rates(const SparseAttentionProblem&) {
  return {.block_us = 2.3, .piece_us = 3.7, .partial_us = 2.5, .launch_us = 8.5};
}

constexpr SparseKernel kKernels[] = {
    {"naive", no_obstacle, naive_shape, naive_rates},
    {"few_heads", few_heads_obstacle, few_heads_shape, few_heads_rates},
    {"wgmma", no_obstacle, wgmma_shape, wgmma_rates},
};

}  // namespace

std::span<const SparseKernel> sparse_kernels() noexcept {
  return kKernels;
}

const SparseKernel* find_sparse_kernel(const std::string& name) noexcept {
  const auto* const at = std::ranges::find(kKernels, name, &SparseKernel::name);
  return at == std::end(kKernels) ? nullptr : at;
}

int sparse_groups(const SparseKernelShape& shape, const device::DeviceInfo& device) noexcept {
  return std::max(1, device.num_sms * shape.ctas_per_sm / (shape.group_ctas * shape.head_ctas));
}

double sparse_cost_us(const SparseKernel& kernel, const device::DeviceInfo& device,
                      const SparseAttentionProblem& p) noexcept {
  constexpr double kBytesPerS = 4.2e12;
  const SparseRates rates = kernel.rates(p);
  const double groups = sparse_groups(kernel.shape(p), device);
  const auto queries = static_cast<double>(sparse_queries(p));
  const auto blocks = static_cast<double>(sparse_blocks_of_query(p));
  // Split no finer than into blocks.
  const double pieces = std::max(queries, std::min(groups, queries * blocks));
  const double shares = std::min(groups, std::max(1.0, queries * blocks));
  const double work = (queries * blocks * rates.block_us + pieces * rates.piece_us) / shares;
  return std::max(work, 1e6 * sparse_bytes(p) / kBytesPerS) + rates.launch_us;
}

}  // namespace tilewright::ops
