#include "ops/latent_attention/plan.h"

#include "kernels/sparse_attention/latent/latent_naive.h"
#include "kernels/sparse_attention/latent/sm90_latent.h"
#include "kernels/sparse_attention/pair/sm100_latent_pair.h"
#include "kernels/sparse_attention/sparse_schedule.h"
#include "ops/latent_attention/problem.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/choose.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"
#include "ops/operator/workspace.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

using Problem = LatentAttentionProblem;

constexpr const char* kName = "latent attention";

// What kernels on tensor cores take, in microseconds of a group: for 64 keys, for each tile or part
// of one, and for results of a part through memory; and the merge, if there is any.
struct LatentRates {
  double block_us, piece_us, partial_us;
};
constexpr double kCombineUs = 3;
// Scalar, from counts: a key of a row is 64 + 2 * 512 products in a warp, and a sum over its lanes.
constexpr double kNaiveKeyUs = 0.06;
// With so many whole tiles for each group, a schedule has nothing to even out.
constexpr std::int64_t kManyTilesPerGroup = 32;

// Groups for each tile from which on the merge takes each apart by its dims.
constexpr std::int64_t kFewTilesParts = 4;

struct LatentKernel {
  const char* name;
  int capability;  // 90: Hopper alone; 100: Blackwell alone; 0: both chips
  LatentRates rates;
};
// wgmma: rows of 576 and 128 heads take 1.8 to 2.0 on an H100. pair: not measured; HBM's 1341
// cycles for a block at 1.85 GHz, three quarters of what it could.
constexpr LatentKernel kKernels[] = {
    {"naive", 0, {}}, {"wgmma", 90, {1.75, 4, 3}}, {"pair", 100, {0.97, 3, 1.5}}};

bool is_naive(const LatentKernel& kernel) {
  return kernel.capability == 0;
}

std::string obstacle(const LatentKernel& kernel, const device::DeviceInfo& device) {
  return is_naive(kernel) ? chip_obstacle(device) : capability_obstacle(kernel.capability, device);
}

std::int64_t blocks_of(const Problem& p) {
  return ceil_div(latent_capacity(p), kernels::kSparseBlockKeys);
}

// CTAs of a tile: those of a pair, or as many as have rows, up to four, which ask the second cache
// for the same keys.
int ctas_of_tile(const LatentKernel& kernel, const Problem& p) {
  if (kernel.capability == 100) return kernels::LatentPairTile::kCtas;
  const std::int64_t parts =
      ceil_div(std::max<std::int64_t>(latent_rows(p), 1), kernels::kLatentTileRows);
  return parts > 2 ? 4 : static_cast<int>(parts);
}

double cost_us(const LatentKernel& kernel, const device::DeviceInfo& device, const Problem& p) {
  const auto keys = static_cast<double>(latent_capacity(p));
  const double sms = std::max(device.num_sms, 1);
  if (is_naive(kernel)) {
    const auto rows = static_cast<double>(p.batch * p.q_len * p.heads);
    return std::ceil(rows / (4 * sms)) * keys / kernels::kLatentNaiveWarps * kNaiveKeyUs + 4;
  }
  const int ctas = ctas_of_tile(kernel, p);
  const double groups = std::max(1.0, std::floor(sms / ctas));
  const auto tiles = static_cast<double>(p.batch * p.kv_heads *
                                         ceil_div(latent_rows(p), ctas * kernels::kLatentTileRows));
  const auto blocks = static_cast<double>(blocks_of(p));
  const double shares = std::min(groups, std::max(1.0, tiles * blocks));
  const double pieces = std::max(tiles, shares);
  const LatentRates& rates = kernel.rates;
  return (tiles * blocks * rates.block_us + pieces * rates.piece_us) / shares + 8;
}

const LatentKernel& choose_kernel(const device::DeviceInfo& device, LatentAttentionPlan& plan) {
  const Problem& p = plan.problem;
  const Request request = {kName, p.kernel, device.name, fmt::format("values of {}", p.value_dim),
                           "Take a Hopper or Blackwell device (sim:h200, sim:b200)."};
  return kKernels[choose(plan, request, kKernels, [&](const LatentKernel& kernel) {
    return make_option(kernel.name, obstacle(kernel, device),
                       [&] { return cost_us(kernel, device, p); });
  })];
}

// In quarters of a block, as the schedule counts.
std::int32_t schedule_cost(double us, const LatentRates& rates) {
  return static_cast<std::int32_t>(us / rates.block_us * kernels::kSparseBlockCost + 0.5);
}

std::int64_t walks(const LatentAttentionPlan& plan) {
  return plan.problem.batch * plan.problem.kv_heads * plan.tiles;
}

bool wants_schedule(const LatentPlanned& planned, int all_groups) {
  const std::int64_t tiles = walks(planned.plan);
  const double line =
      static_cast<double>(tiles) *
      (planned.piece_cost + static_cast<double>(kernels::kSparseBlockCost) *
                                static_cast<double>(blocks_of(planned.plan.problem)));
  return tiles <= kernels::kSparseScheduleMaxQueries && tiles < kManyTilesPerGroup * all_groups &&
         line < 2e9;
}

LatentWorkspace carve_workspace(const LatentAttentionPlan& plan) {
  LatentWorkspace w;
  if (!plan.has_schedule) return w;
  Carver carver;
  const std::int64_t rows = kernels::sparse_partial_slots(plan.groups) * plan.tile_rows;
  w.work = carver.carve(kernels::sparse_max_pieces(walks(plan), plan.groups),
                        sizeof(kernels::SparseWork));
  w.work_begin = carver.carve(plan.groups + 1, 4);
  w.merges = carver.carve(plan.groups, sizeof(kernels::SparseMerge));
  w.partial_out = carver.carve(rows * plan.problem.value_dim, 4);
  w.partial_lse = carver.carve(rows, 4);
  w.total = carver.total();
  return w;
}

std::uint32_t narrow_count(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}

std::string form_name(const Problem& p) {
  return fmt::format("{}_v{}", type_word(p.dtype), p.value_dim);
}

void add_naive(LatentAttentionPlan& plan) {
  const Problem& p = plan.problem;
  plan.launches.push_back({"attend",
                           "latent_naive_" + form_name(p),
                           {narrow_count(p.q_len * p.heads), narrow_count(p.batch), 1},
                           {kernels::kLatentNaiveThreads, 1, 1}});
}

// Of a few tiles each has so many parts that its rows are worth more warps.
Launch combine_launch(const LatentAttentionPlan& plan) {
  const std::int64_t tiles = walks(plan);
  const bool is_few = tiles * kFewTilesParts <= plan.groups;
  const std::int64_t warps =
      is_few ? plan.tile_rows * plan.problem.value_dim / 128 : plan.tile_rows;
  return {"combine",
          fmt::format("latent_combine_{}{}", is_few ? "few_" : "", form_name(plan.problem)),
          {narrow_count(is_few ? tiles : plan.groups),
           ctas_for(warps, kernels::kSparseCombineHeads), 1},
          {kernels::kSparseCombineThreads, 1, 1}};
}

Launch wgmma_launch(const LatentPlanned& planned) {
  using Tile = kernels::LatentTile;
  const Problem& p = planned.plan.problem;
  return {"attend",
          fmt::format("latent_{}{}{}", planned.cluster == 2 ? "pair_" : "", form_name(p),
                      p.has_qv ? "_qv" : ""),
          {narrow_count(std::int64_t{planned.plan.groups} * planned.ctas), 1, 1},
          {Tile::threads(), 1, 1},
          narrow_count(planned.cluster),
          narrow_count(Tile::shared_bytes(static_cast<int>(p.value_dim), p.has_qv))};
}

Launch pair_launch(const LatentPlanned& planned) {
  using Tile = kernels::LatentPairTile;
  return {"attend",
          fmt::format("latent_tensor_pair_{}{}", form_name(planned.plan.problem),
                      planned.plan.problem.has_qv ? "_qv" : ""),
          {narrow_count(std::int64_t{planned.plan.groups} * Tile::kCtas), 1, 1},
          {Tile::kThreads, 1, 1},
          Tile::kCtas,
          narrow_count(Tile::shared_bytes())};
}

void add_launches(LatentPlanned& planned) {
  LatentAttentionPlan& plan = planned.plan;
  if (plan.has_schedule)
    plan.launches.push_back(
        {"schedule", "sparse_schedule", {1, 1, 1}, {kernels::kSparseScheduleThreads, 1, 1}});
  plan.launches.push_back(planned.has_maps ? wgmma_launch(planned) : pair_launch(planned));
  if (plan.has_schedule) plan.launches.push_back(combine_launch(plan));
}

// Of a problem with queries: everything but the choice.
void add_work(const device::DeviceInfo& device, const LatentKernel& kernel,
              LatentPlanned& planned) {
  LatentAttentionPlan& plan = planned.plan;
  const Problem& p = plan.problem;
  const LatentRates& rates = kernel.rates;
  planned.piece_cost = schedule_cost(rates.piece_us, rates);
  planned.partial_cost = schedule_cost(rates.partial_us, rates);
  planned.combine_cost = schedule_cost(kCombineUs, rates);
  planned.has_maps = kernel.capability == 90;
  planned.ctas = ctas_of_tile(kernel, p);
  planned.cluster = planned.ctas > 1 && device.has_clusters ? 2 : 1;
  plan.tile_rows = planned.ctas * kernels::kLatentTileRows;
  plan.tiles = static_cast<int>(ceil_div(latent_rows(p), plan.tile_rows));
  const int all_groups =
      std::clamp(device.num_sms / planned.ctas, 1, kernels::kSparseScheduleMaxGroups);
  plan.has_schedule = wants_schedule(planned, all_groups);
  const std::int64_t tiles = walks(plan);
  const std::int64_t shares =
      plan.has_schedule ? tiles * std::max<std::int64_t>(blocks_of(p), 1) : tiles;
  plan.groups = static_cast<int>(std::min<std::int64_t>(all_groups, shares));
  planned.workspace = carve_workspace(plan);
  plan.workspace_bytes = planned.workspace.total;
  add_launches(planned);
}

std::vector<PlanNote> latent_notes(const LatentAttentionPlan& plan) {
  const Problem& p = plan.problem;
  const std::string room = p.page_size == 0 ? fmt::format("{} keys", p.max_len)
                                            : fmt::format("{} pages of {} keys, {} a sequence",
                                                          p.num_pages, p.page_size, p.max_pages);
  std::string kernel = plan.kernel;
  if (plan.tile_rows > 0)
    kernel += fmt::format(": {} rows of a KV head in tiles of {}", latent_rows(p), plan.tile_rows);
  std::vector<PlanNote> notes = {
      {"latent", fmt::format("batch {}, q_len {}, heads {}/{}, keys of 64, values of {}{}, {}; "
                             "{}{}{}",
                             p.batch, p.q_len, p.heads, p.kv_heads, p.value_dim,
                             p.has_qv ? " that make scores" : "", type_word(p.dtype), room,
                             p.causal ? "" : ", not causal", p.has_sink ? ", sinks" : "")},
      {"kernel", kernel}};
  if (plan.launches.empty()) notes.push_back({"launches", "none: there are no queries"});
  return notes;
}

void check_size(const Problem& p) {
  const double tiles = static_cast<double>(p.batch) * static_cast<double>(p.kv_heads) *
                       std::ceil(static_cast<double>(latent_rows(p)) / kernels::kLatentTileRows);
  if (tiles < 0x1p30) return;
  refuse(ErrorKind::kUnsupported, kName,
         {{"batch", fmt::format("{}", p.batch),
           fmt::format("fewer than 2^30 tiles of 64 rows; kv_heads = {} and q_len = {} make {:.3g}",
                       p.kv_heads, p.q_len, tiles),
           "Run parts of the batch."}});
}

}  // namespace

LatentPlanned make_latent_plan(const device::DeviceInfo& device, const Problem& problem) {
  LatentPlanned planned;
  LatentAttentionPlan& plan = planned.plan;
  plan.problem = complete(problem);
  const Problem& p = plan.problem;
  check_size(p);
  const LatentKernel& kernel = choose_kernel(device, plan);
  const Work work = latent_work(p);
  plan.flops = work.flops;
  plan.bytes = work.bytes;
  plan.assumption = "full caches";
  if (p.batch > 0 && p.q_len > 0) {
    if (is_naive(kernel))
      add_naive(plan);
    else
      add_work(device, kernel, planned);
  }
  plan.notes = latent_notes(plan);
  return planned;
}

}  // namespace tilewright::ops
