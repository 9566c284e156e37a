#include "ops/sparse_attention/kernels.h"

#include "formats/kv_row.h"
#include "kernels/sparse_attention/few_heads/decode_few_heads.h"
#include "kernels/sparse_attention/latent/sm90_latent.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"
#include "kernels/sparse_attention/pair/union_lists.h"
#include "kernels/sparse_attention/sparse_naive.h"
#include "kernels/sparse_attention/wgmma/sm90_decode_wgmma.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/sparse_attention/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

std::string entry_name(const char* kernel, const SparseAttentionProblem& p) {
  return fmt::format("{}_{}{}", kernel, to_string(sparse_format(p)), is_mla(p) ? "_mla" : "");
}

std::string no_obstacle(const SparseAttentionProblem&) {
  return {};
}

// Of kernels that know DeepSeek-V4's rows alone.
std::string rows_obstacle(const SparseAttentionProblem& p) {
  return is_mla(p) ? "is for rows of 512, DeepSeek-V4's" : "";
}

bool is_blackwell(const device::DeviceInfo& device) {
  return capability_obstacle(100, device).empty();
}

// Of HBM, reading rows here and there: measured on an H200, and the same share of a B200's peak.
double gathered_bytes_per_s(const device::DeviceInfo& device) {
  return is_blackwell(device) ? 7.0e12 : 4.2e12;
}

SparseKernelShape naive_shape(const SparseAttentionProblem& p) {
  const auto ctas = static_cast<int>(ceil_div(p.heads, kernels::kSparseNaiveHeads));
  return {.entry = entry_name("sparse_naive", p),
          .head_slots = ctas * kernels::kSparseNaiveHeads,
          .head_ctas = ctas,
          .ctas_per_sm = 2,
          .threads = kernels::kSparseNaiveThreads,
          .shared_bytes = kernels::sparse_naive_shared_bytes(sparse_row_format(p))};
}

// From counts, not measured: 1024 flops and as many loads from shared memory for a key and head.
SparseRates naive_rates(const device::DeviceInfo&, const SparseAttentionProblem&) {
  return {.block_us = 12, .piece_us = 4, .partial_us = 1, .launch_us = 4};
}

// Few heads: keys are rows of the small MMAs, heads their 8, 16 or 32 columns.
constexpr std::int64_t kFewHeads = 32;

int few_heads_slots(const SparseAttentionProblem& p) {
  return p.heads <= 8 ? 8 : p.heads <= 16 ? 16 : 32;
}

std::string few_heads_obstacle(const SparseAttentionProblem& p) {
  if (p.heads > kFewHeads) return fmt::format("is for at most {} heads", kFewHeads);
  return rows_obstacle(p);
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
//
// Blackwell, not measured: the same cycles of the same instructions, at 1.85 instead of 1.55 GHz.
SparseRates few_heads_rates(const device::DeviceInfo& device, const SparseAttentionProblem& p) {
  const double clock = is_blackwell(device) ? 1.55 / 1.85 : 1;
  return {.block_us = (few_heads_slots(p) == 8 ? 2.5 : 3.05) * clock,
          .piece_us = 3.5 * clock,
          .partial_us = 0.5 + 0.03 * few_heads_slots(p),
          .launch_us = 5.5};
}

// On an H200 the launch of a merge costs 2 to 5 us also where nothing is to be merged; where each
// query has many parts, it is the faster merge by up to 3 us, but with records of 576. With more
// than two queries of those for a pair of CTAs it is as fast or 3 % faster, with lengths of queries
// 12 us. Other formats were not timed (docs/notes/2026-11-28-sparse-code-at-hand.md).
SparseMergeRange merging_range(const SparseAttentionProblem& p, int ctas) {
  const KvFormat format = sparse_row_format(p);
  const bool is_fp8 = format == KvFormat::kFp8 || format == KvFormat::kFp8Mla;
  const bool is_full = p.window.lengths == SparseLengths::kFull &&
                       (p.compressed.topk == 0 || p.compressed.lengths == SparseLengths::kFull);
  if (!is_fp8 || !is_full) return {};
  constexpr double kAnyNumber = std::numeric_limits<double>::infinity();
  if (!is_mla(p)) return {.from = 0.4, .to = kAnyNumber};
  return {.from = 0, .to = ctas == 1 ? kAnyNumber : 2};
}

SparseKernelShape wgmma_shape(const SparseAttentionProblem& p) {
  using Tile = kernels::SparseWgmmaTile;
  const int ctas = Tile::ctas_of_group(static_cast<int>(p.heads));
  return {.entry = entry_name(ctas == 2 ? "sparse_decode_wgmma_pair" : "sparse_decode_wgmma", p),
          .head_slots = ctas * Tile::kHeads,
          .group_ctas = ctas,
          .cluster = ctas,
          .threads = Tile::kThreads,
          .shared_bytes = Tile::shared_bytes(sparse_row_format(p)),
          .takes_wgmma = true,
          .merging = merging_range(p, ctas)};
}

// H200, 64 heads: 35.5 us for one query of ten blocks a group, 62.5 for two, 115.8 for four, 586
// for one of 256 blocks; 128 heads: 94.4 for two queries of 18 blocks, 167 for four, 332 for eight.
//
// Rows of 576: 128 heads, 179 and 342 us for 62 and 124 blocks of records a group, 64 heads 116 for
// 31; bf16 rows, 128 and 64 heads, 4033 for 2016 and 2195 for 1024.
SparseRates wgmma_rates(const device::DeviceInfo&, const SparseAttentionProblem& p) {
  const bool is_fp8 = sparse_format(p) == NumberFormat::kFp8;
  const double of_mla = p.heads > 64 ? (is_fp8 ? 2.6 : 1.95) : (is_fp8 ? 3.3 : 2.1);
  return {
      .block_us = is_mla(p) ? of_mla : 2.3, .piece_us = 3.7, .partial_us = 2.5, .launch_us = 8.5};
}

// The kernel takes each query for a sequence of its own, whose number says where all it has lies.
bool is_even(const Strides& s, const SparseAttentionProblem& p) {
  return p.batch == 1 || s.batch == p.q_len * s.row;
}

std::string latent_obstacle(const SparseAttentionProblem& p) {
  if (!is_mla(p) || sparse_format(p) != NumberFormat::kBf16) return "is for bf16 rows of 576";
  if (p.heads % kernels::kLatentTileRows != 0)
    return fmt::format("is for multiples of {} heads", kernels::kLatentTileRows);
  if (p.window.topk == 0 || p.compressed.topk > 0) return "takes one list, the window's";
  if (p.window.lengths == SparseLengths::kPerBatch && p.q_len > 1)
    return "takes a length of each query, and there is one of each sequence";
  const bool is_even_lse = !p.has_lse && !p.has_max_logits ? true : is_even(p.lse_strides, p);
  if (!is_even(p.q_strides, p) || !is_even(p.out_strides, p) || !is_even_lse)
    return "takes queries of all sequences at equal distances";
  return {};
}

SparseKernelShape latent_shape(const SparseAttentionProblem& p) {
  using Tile = kernels::LatentTile;
  const auto ctas = static_cast<int>(ceil_div(p.heads, kernels::kLatentTileRows));
  return {.entry = "latent_lists_bf16_v512_qv",
          .head_slots = ctas * kernels::kLatentTileRows,
          .group_ctas = ctas,
          .threads = Tile::threads(),
          .shared_bytes = Tile::shared_bytes(kKvDims, true, true),
          .takes_latent = true};
}

// An H100 takes 0.85 to 0.89 of the time of "wgmma", also where the bytes of rows bound both here.
SparseRates latent_rates(const device::DeviceInfo& device, const SparseAttentionProblem& p) {
  const SparseRates other = wgmma_rates(device, p);
  return {.block_us = other.block_us * 0.87,
          .piece_us = other.piece_us,
          .partial_us = other.partial_us,
          .launch_us = other.launch_us - 0.1};
}

SparseKernelShape pair_shape(const SparseAttentionProblem& p) {
  using Tile = kernels::SparsePairTile;
  return {.entry = entry_name("sparse_decode_pair", p),
          .head_slots = 2 * Tile::kRows,
          .group_ctas = 2,
          .cluster = 2,
          .threads = Tile::kThreads,
          .shared_bytes = Tile::shared_bytes(kv_dims(sparse_row_format(p))),
          .takes_pairs = true};
}

// By counts, not measured: 1152 cycles of a pair for a block at 1.85 GHz, two thirds of the time;
// rows of 576 take 64 cycles more.
SparseRates pair_rates(const device::DeviceInfo&, const SparseAttentionProblem& p) {
  return {.block_us = is_mla(p) ? 0.985 : 0.93, .piece_us = 3, .partial_us = 1.5, .launch_us = 6};
}

// Neighbouring queries share what their lists have in common: as many as fill the rows of the pair,
// and no more than the next power of two of what there are.
int queries_of_cta(const SparseAttentionProblem& p) {
  int queries = p.heads > 32 ? 1 : p.heads > 16 ? 2 : p.heads > 8 ? 4 : 8;
  while (queries > 1 && queries >= p.q_len) queries /= 2;
  return queries;
}

std::string pair_tiles_obstacle(const SparseAttentionProblem& p) {
  using kernels::kSparseUnionMaxEntries, kernels::SparsePairTile;
  if (p.heads > SparsePairTile::kRows)
    return fmt::format("is for at most {} heads", SparsePairTile::kRows);
  if (p.q_len < 2) return "takes several queries of a sequence at a time, and there is one";
  const int queries = 2 * queries_of_cta(p);
  if (queries * std::max(p.window.topk, p.compressed.topk) > kSparseUnionMaxEntries)
    return fmt::format("unites lists of {} queries with at most {} entries in all", queries,
                       kSparseUnionMaxEntries);
  return {};
}

std::string pair_tiles_reservation(const SparseAttentionProblem& p) {
  if (queries_of_cta(p) == 1 && p.heads > kFewHeads) return {};
  return "pays if neighbouring queries share most entries, which a plan cannot know";
}

SparseKernelShape pair_tiles_shape(const SparseAttentionProblem& p) {
  SparseKernelShape shape = pair_shape(p);
  shape.queries = 2 * queries_of_cta(p);
  shape.head_slots = kernels::SparsePairTile::kRows * 2 / shape.queries;
  return shape;
}

SparseRates pair_tiles_rates(const device::DeviceInfo& device, const SparseAttentionProblem& p) {
  SparseRates rates = pair_rates(device, p);
  rates.launch_us += 3;  // the union
  return rates;
}

constexpr SparseKernel kKernels[] = {
    {"naive", 0, no_obstacle, naive_shape, naive_rates},
    {"few_heads", 0, few_heads_obstacle, few_heads_shape, few_heads_rates},
    {"wgmma", 90, no_obstacle, wgmma_shape, wgmma_rates},
    {"latent", 90, latent_obstacle, latent_shape, latent_rates},
    {"pair", 100, no_obstacle, pair_shape, pair_rates},
    {"pair_tiles", 100, pair_tiles_obstacle, pair_tiles_shape, pair_tiles_rates,
     pair_tiles_reservation},
};

}  // namespace

std::span<const SparseKernel> sparse_kernels() noexcept {
  return kKernels;
}

std::string sparse_obstacle(const SparseKernel& kernel, const device::DeviceInfo& device,
                            const SparseAttentionProblem& p) {
  const std::string on_hopper = capability_obstacle(90, device);
  const std::string on_blackwell = capability_obstacle(100, device);
  const bool is_possible = kernel.capability == 90    ? on_hopper.empty()
                           : kernel.capability == 100 ? on_blackwell.empty()
                                                      : on_hopper.empty() || on_blackwell.empty();
  if (!is_possible) return kernel.capability == 90 ? on_hopper : on_blackwell;
  return kernel.obstacle(p);
}

const SparseKernel* find_sparse_kernel(const std::string& name) noexcept {
  const auto* const at = std::ranges::find(kKernels, name, &SparseKernel::name);
  return at == std::end(kKernels) ? nullptr : at;
}

std::int64_t sparse_walks(const SparseAttentionProblem& p,
                          const SparseKernelShape& shape) noexcept {
  return p.batch * ceil_div(p.q_len, shape.queries);
}

int sparse_groups(const SparseKernelShape& shape, const device::DeviceInfo& device) noexcept {
  return std::max(1, device.num_sms * shape.ctas_per_sm / (shape.group_ctas * shape.head_ctas));
}

double sparse_cost_us(const SparseKernel& kernel, const device::DeviceInfo& device,
                      const SparseAttentionProblem& p) noexcept {
  const SparseRates rates = kernel.rates(device, p);
  const SparseKernelShape shape = kernel.shape(p);
  const double groups = sparse_groups(shape, device);
  const auto queries = static_cast<double>(sparse_walks(p, shape));
  const double growth = 1 + kSparseUnionGrowth * (shape.queries - 1);
  const double blocks = static_cast<double>(sparse_blocks_of_query(p)) * growth;
  // Split no finer than into blocks.
  const double pieces = std::max(queries, std::min(groups, queries * blocks));
  const double shares = std::min(groups, std::max(1.0, queries * blocks));
  const double work = (queries * blocks * rates.block_us + pieces * rates.piece_us) / shares;
  const double bytes = sparse_bytes(p) * growth / shape.queries;
  return std::max(work, 1e6 * bytes / gathered_bytes_per_s(device)) + rates.launch_us;
}

}  // namespace tilewright::ops
