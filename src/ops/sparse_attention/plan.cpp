#include "ops/sparse_attention/plan.h"

#include "kernels/sparse_attention/pair/union_lists.h"
#include "kernels/sparse_attention/sparse_schedule.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/choose.h"
#include "ops/operator/operator.h"
#include "ops/operator/workspace.h"
#include "ops/sparse_attention/problem.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

// With so many whole queries for each group, a schedule has nothing to even out.
constexpr std::int64_t kManyQueriesPerGroup = 32;

const SparseKernel& choose_kernel(const device::DeviceInfo& device, SparseAttentionPlan& plan) {
  const SparseAttentionProblem& p = plan.problem;
  const Request request = {"sparse attention", p.kernel, device.name,
                           fmt::format("{} heads", p.heads),
                           "Take a Hopper or Blackwell device (sim:h200, sim:b200)."};
  return sparse_kernels()[choose(plan, request, sparse_kernels(), [&](const SparseKernel& kernel) {
    Option option = make_option(kernel.name, sparse_obstacle(kernel, device, p),
                                [&] { return sparse_cost_us(kernel, device, p); });
    if (option.obstacle.empty() && kernel.reservation != nullptr)
      option.reservation = kernel.reservation(p);
    return option;
  })];
}

// In quarters of a block, as the schedule counts.
std::int32_t schedule_cost(double us, const SparseRates& rates) {
  const double quarters = us / rates.block_us * kernels::kSparseBlockCost;
  return std::clamp(static_cast<std::int32_t>(std::lround(quarters)), 1, 1000);
}

bool wants_schedule(const SparsePlanned& planned, int all_groups) {
  const SparseAttentionProblem& p = planned.plan.problem;
  const std::int64_t queries = sparse_walks(p, planned.shape);
  const double line = planned.shape.queries * static_cast<double>(queries) *
                      (planned.piece_cost + static_cast<double>(kernels::kSparseBlockCost) *
                                                static_cast<double>(sparse_blocks_of_query(p)));
  return !p.has_max_logits && queries <= kernels::kSparseScheduleMaxQueries &&
         queries < kManyQueriesPerGroup * all_groups && line < 2e9;
}

SparseWorkspace carve_workspace(const SparsePlanned& planned) {
  const SparseAttentionPlan& plan = planned.plan;
  const SparseKernelShape& shape = planned.shape;
  SparseWorkspace w;
  const SparseAttentionProblem& p = plan.problem;
  Carver carver;
  if (shape.queries > 1) {
    const std::int64_t tiles = sparse_walks(p, shape);
    for (int i = 0; i < 2; ++i) {
      const std::int64_t entries = tiles * shape.queries * (i == 0 ? p.window : p.compressed).topk;
      w.unions[i].indices = carver.carve(entries, 4);
      w.unions[i].masks = carver.carve(entries, 2);
      w.unions[i].lengths = carver.carve(tiles, 4);
    }
  }
  if (plan.has_schedule) {
    const std::int64_t rows = kernels::sparse_partial_slots(plan.groups) * p.heads * shape.queries;
    w.work = carver.carve(kernels::sparse_max_pieces(sparse_walks(p, shape), plan.groups),
                          sizeof(kernels::SparseWork));
    w.work_begin = carver.carve(plan.groups + 1, 4);
    w.merges = carver.carve(plan.groups, sizeof(kernels::SparseMerge));
    if (planned.merges_parts) {
      w.merge_of_slot =
          carver.carve(kernels::sparse_partial_slots(plan.groups), sizeof(kernels::SparseMerge));
      w.counters = carver.carve(std::int64_t{plan.groups} * kernels::kSparseCountersOfGroup,
                                sizeof(std::uint64_t));
    }
    w.partial_out = carver.carve(rows * kKvDims, 4);
    w.partial_lse = carver.carve(rows, 4);
  }
  w.total = carver.total();
  return w;
}

std::uint32_t narrow_count(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}

void add_launches(SparsePlanned& planned) {
  SparseAttentionPlan& plan = planned.plan;
  const SparseKernelShape& shape = planned.shape;
  const SparseAttentionProblem& p = plan.problem;
  const std::uint32_t groups = narrow_count(plan.groups);
  const std::int64_t topk = std::max(p.window.topk, p.compressed.topk);
  if (shape.queries > 1)
    plan.launches.push_back(
        {"unite",
         "sparse_union_lists",
         {narrow_count(sparse_walks(p, shape)), 2, 1},
         {kernels::kSparseUnionThreads, 1, 1},
         1,
         narrow_count(kernels::sparse_union_shared_bytes(shape.queries * topk))});
  if (plan.has_schedule)
    plan.launches.push_back(
        {"schedule", "sparse_schedule", {1, 1, 1}, {kernels::kSparseScheduleThreads, 1, 1}});
  plan.launches.push_back(
      {"attend",
       shape.entry,
       {groups * narrow_count(shape.group_ctas), narrow_count(shape.head_ctas), 1},
       {narrow_count(shape.threads), 1, 1},
       narrow_count(shape.cluster),
       narrow_count(shape.shared_bytes)});
  if (plan.has_schedule && !planned.merges_parts)
    plan.launches.push_back(
        {"combine",
         shape.queries > 1 ? "sparse_combine_tiles" : "sparse_combine",
         {groups, ctas_for(p.heads * shape.queries, kernels::kSparseCombineHeads), 1},
         {kernels::kSparseCombineThreads, 1, 1}});
}

// Of a problem with queries: everything but the choice.
void add_work(const device::DeviceInfo& device, const SparseKernel& kernel,
              SparsePlanned& planned) {
  SparseAttentionPlan& plan = planned.plan;
  const SparseAttentionProblem& p = plan.problem;
  const SparseKernelShape& shape = planned.shape = kernel.shape(p);
  const SparseRates rates = kernel.rates(device, p);
  planned.piece_cost = schedule_cost(rates.piece_us, rates);
  planned.partial_cost = schedule_cost(rates.partial_us, rates);
  planned.combine_cost = schedule_cost(kSparseCombineUs, rates);
  const int all_groups = std::min(sparse_groups(shape, device), kernels::kSparseScheduleMaxGroups);
  plan.has_schedule = wants_schedule(planned, all_groups);
  const std::int64_t queries = sparse_walks(p, shape);
  const std::int64_t blocks = sparse_blocks_of_query(p) * shape.queries;
  const std::int64_t shares = plan.has_schedule ? queries * blocks : queries;
  plan.groups = static_cast<int>(std::min<std::int64_t>(all_groups, shares));
  const double queries_of_group = static_cast<double>(queries) / std::max(plan.groups, 1);
  planned.merges_parts = plan.has_schedule && queries_of_group >= shape.merging.from &&
                         queries_of_group <= shape.merging.to;
  planned.workspace = carve_workspace(planned);
  plan.workspace_bytes = planned.workspace.total;
  add_launches(planned);
}

}  // namespace

SparsePlanned make_sparse_plan(const device::DeviceInfo& device,
                               const SparseAttentionProblem& problem) {
  SparsePlanned planned;
  SparseAttentionPlan& plan = planned.plan;
  plan.problem = complete(problem);
  const SparseKernel& kernel = choose_kernel(device, plan);
  plan.head_slots = kernel.shape(plan.problem).head_slots;
  plan.flops = sparse_flops(plan.problem);
  plan.bytes = sparse_bytes(plan.problem);
  plan.assumption = "full lists";
  if (sparse_queries(plan.problem) > 0) add_work(device, kernel, planned);
  plan.notes = sparse_notes(plan);
  return planned;
}

}  // namespace tilewright::ops
