#include "ops/sparse_attention/plan.h"

#include "base/error.h"
#include "kernels/sparse_attention/sparse_schedule.h"
#include "ops/operator/ceil_div.h"
#include "ops/sparse_attention/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr std::size_t kWorkspaceAlignment = 256;
// With so many whole queries for each group, a schedule has nothing to even out.
constexpr std::int64_t kManyQueriesPerGroup = 32;

std::string obstacle(const SparseKernel& kernel, const device::DeviceInfo& device,
                     const SparseAttentionProblem& p) {
  if (device.compute_capability != 90)
    return fmt::format("exists for compute capability 9.0; the device has {}",
                       device.compute_capability / 10.0);
  return kernel.obstacle(p);
}

std::string possible_names() {
  std::string text = "auto";
  for (const SparseKernel& kernel : sparse_kernels()) text += fmt::format(", {}", kernel.name);
  return text;
}

// Fills in candidates and kernel.
const SparseKernel& choose(const device::DeviceInfo& device, SparseAttentionPlan& plan) {
  const SparseAttentionProblem& p = plan.problem;
  require(p.kernel == "auto" || find_sparse_kernel(p.kernel) != nullptr,
          ErrorKind::kInvalidArgument, "sparse attention: kernel = {}; expected one of {}",
          p.kernel, possible_names());
  const SparseKernel* chosen = nullptr;
  double best = std::numeric_limits<double>::infinity();
  std::string reasons;
  for (const SparseKernel& kernel : sparse_kernels()) {
    SparseAttentionCandidate c = {.name = kernel.name, .reason = obstacle(kernel, device, p)};
    c.is_possible = c.reason.empty();
    if (c.is_possible) {
      c.cost_us = sparse_cost_us(kernel, device, p);
      if ((p.kernel == "auto" || p.kernel == c.name) && c.cost_us < best) {
        best = c.cost_us;
        chosen = &kernel;
      }
    } else {
      reasons += fmt::format("\n  {} {}", c.name, c.reason);
    }
    plan.candidates.push_back(std::move(c));
  }
  require(chosen != nullptr, ErrorKind::kUnsupported, "sparse attention: {} do it on {}:{}",
          p.kernel == "auto" ? "no kernel can" : "kernel " + p.kernel + " cannot", device.name,
          reasons);
  plan.kernel = chosen->name;
  for (SparseAttentionCandidate& c : plan.candidates) {
    if (!c.is_possible || c.name == plan.kernel) continue;
    c.reason = p.kernel != "auto"
                   ? "was not asked for"
                   : fmt::format("is expected to take {:.2f} times as long", c.cost_us / best);
  }
  return *chosen;
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

SparseWorkspace lay_out(const SparseAttentionPlan& plan) {
  SparseWorkspace w;
  if (!plan.has_schedule) return w;
  const SparseAttentionProblem& p = plan.problem;
  const auto add = [&w](std::int64_t count, std::size_t bytes) {
    const std::size_t at = w.total;
    const std::size_t size = static_cast<std::size_t>(count) * bytes;
    w.total += (size + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    return at;
  };
  const std::int64_t rows = kernels::sparse_partial_slots(plan.groups) * p.heads;
  w.work =
      add(kernels::sparse_max_pieces(sparse_queries(p), plan.groups), sizeof(kernels::SparseWork));
  w.work_begin = add(plan.groups + 1, 4);
  w.merges = add(plan.groups, sizeof(kernels::SparseMerge));
  w.partial_out = add(rows * kKvDims, 4);
  w.partial_lse = add(rows, 4);
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

}  // namespace

SparsePlanned make_sparse_plan(const device::DeviceInfo& device,
                               const SparseAttentionProblem& problem) {
  SparsePlanned planned;
  SparseAttentionPlan& plan = planned.plan;
  plan.problem = complete_sparse_problem(problem);
  const SparseAttentionProblem& p = plan.problem;
  const SparseKernel& kernel = choose(device, plan);
  const SparseKernelShape shape = kernel.shape(p);
  const SparseRates rates = kernel.rates(p);
  plan.head_slots = shape.head_slots;
  plan.flops = sparse_flops(p);
  plan.bytes = sparse_bytes(p);
  const std::int64_t queries = sparse_queries(p);
  if (queries == 0) return planned;
  planned.piece_cost = schedule_cost(rates.piece_us, rates);
  planned.partial_cost = schedule_cost(rates.partial_us, rates);
  planned.combine_cost = schedule_cost(kSparseCombineUs, rates);
  const int all_groups = std::min(sparse_groups(shape, device), kernels::kSparseScheduleMaxGroups);
  plan.has_schedule = wants_schedule(planned, all_groups);
  const std::int64_t shares = plan.has_schedule ? queries * sparse_blocks_of_query(p) : queries;
  plan.groups = static_cast<int>(std::min<std::int64_t>(all_groups, shares));
  planned.workspace = lay_out(plan);
  plan.workspace_bytes = planned.workspace.total;
  add_launches(shape, plan);
  return planned;
}

}  // namespace tilewright::ops
