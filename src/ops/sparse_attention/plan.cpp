#include "ops/sparse_attention/plan.h"

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

std::string obstacle(const SparseKernel& kernel, const device::DeviceInfo& device,
                     const SparseAttentionProblem& p) {
  std::string of_device = capability_obstacle(90, device);
  return of_device.empty() ? kernel.obstacle(p) : of_device;
}

const SparseKernel& choose_kernel(const device::DeviceInfo& device, SparseAttentionPlan& plan) {
  const SparseAttentionProblem& p = plan.problem;
  const Request request = {"sparse attention", p.kernel, device.name,
                           fmt::format("{} heads", p.heads), "Take a Hopper device (sim:h200)."};
  return sparse_kernels()[choose(plan, request, sparse_kernels(), [&](const SparseKernel& kernel) {
    return make_option(kernel.name, obstacle(kernel, device, p),
                       [&] { return sparse_cost_us(kernel, device, p); });
  })];
}

// In quarters of a block, as the schedule counts.
std::int32_t schedule_cost(double us, const SparseRates& rates) {
  const double quarters = us / rates.block_us * kernels::kSparseBlockCost;
  return std::clamp(static_cast<std::int32_t>(std::lround(quarters)), 1, 1000);
}

bool wants_schedule(const SparsePlanned& planned, int all_groups) {
  const SparseAttentionProblem& p = planned.plan.problem;
  const std::int64_t queries = sparse_queries(p);
  const double line = static_cast<double>(queries) *
                      (planned.piece_cost + static_cast<double>(kernels::kSparseBlockCost) *
                                                static_cast<double>(sparse_blocks_of_query(p)));
  return !p.has_max_logits && queries <= kernels::kSparseScheduleMaxQueries &&
         queries < kManyQueriesPerGroup * all_groups && line < 2e9;
}

SparseWorkspace carve_workspace(const SparseAttentionPlan& plan) {
  SparseWorkspace w;
  if (!plan.has_schedule) return w;
  const SparseAttentionProblem& p = plan.problem;
  Carver carver;
  const std::int64_t rows = kernels::sparse_partial_slots(plan.groups) * p.heads;
  w.work = carver.carve(kernels::sparse_max_pieces(sparse_queries(p), plan.groups),
                        sizeof(kernels::SparseWork));
  w.work_begin = carver.carve(plan.groups + 1, 4);
  w.merges = carver.carve(plan.groups, sizeof(kernels::SparseMerge));
  w.partial_out = carver.carve(rows * kKvDims, 4);
  w.partial_lse = carver.carve(rows, 4);
  w.total = carver.total();
  return w;
}

void add_launches(const SparseKernelShape& shape, SparseAttentionPlan& plan) {
  const auto groups = static_cast<std::uint32_t>(plan.groups);
  if (plan.has_schedule)
    plan.launches.push_back(
        {"schedule", "sparse_schedule", {1, 1, 1}, {kernels::kSparseScheduleThreads, 1, 1}});
  const auto narrow = [](int x) { return static_cast<std::uint32_t>(x); };
  plan.launches.push_back({"attend",
                           shape.entry,
                           {groups * narrow(shape.group_ctas), narrow(shape.head_ctas), 1},
                           {narrow(shape.threads), 1, 1},
                           narrow(shape.cluster),
                           narrow(shape.shared_bytes)});
  if (plan.has_schedule)
    plan.launches.push_back(
        {"combine",
         "sparse_combine",
         {groups, ctas_for(plan.problem.heads, kernels::kSparseCombineHeads), 1},
         {kernels::kSparseCombineThreads, 1, 1}});
}

// Of a problem with queries: everything but the choice.
void add_work(const device::DeviceInfo& device, const SparseKernel& kernel,
              SparsePlanned& planned) {
  SparseAttentionPlan& plan = planned.plan;
  const SparseAttentionProblem& p = plan.problem;
  const SparseKernelShape shape = kernel.shape(p);
  const SparseRates rates = kernel.rates(p);
  planned.piece_cost = schedule_cost(rates.piece_us, rates);
  planned.partial_cost = schedule_cost(rates.partial_us, rates);
  planned.combine_cost = schedule_cost(kSparseCombineUs, rates);
  const int all_groups = std::min(sparse_groups(shape, device), kernels::kSparseScheduleMaxGroups);
  plan.has_schedule = wants_schedule(planned, all_groups);
  const std::int64_t queries = sparse_queries(p);
  const std::int64_t shares = plan.has_schedule ? queries * sparse_blocks_of_query(p) : queries;
  plan.groups = static_cast<int>(std::min<std::int64_t>(all_groups, shares));
  planned.workspace = carve_workspace(plan);
  plan.workspace_bytes = planned.workspace.total;
  add_launches(shape, plan);
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
