// The sparse attention operator: a plan, its loaded kernels, and launching them.
#include "tilewright/sparse_attention.h"

#include "device/kernel_registry.h"
#include "ops/sparse_attention_bind.h"
#include "ops/sparse_attention_plan.h"
#include "ops/sparse_attention_problem.h"

#include <utility>

namespace tilewright {

struct SparseAttention::State {
  Device handle;  // keeps the device open
  ops::SparsePlanned planned;
  std::vector<device::Kernel> entries;  // one a launch
};

struct SparseLists::State {
  Device handle;
  SparseListProblem problem;
  device::Kernel kernel;
};

namespace {

std::vector<device::Kernel> load_entries(const device::Device& device,
                                         const SparseAttentionPlan& plan) {
  constexpr std::uint32_t kSharedBytesWithoutAsking = 48 * 1024;
  std::vector<device::Kernel> entries;
  for (const SparseAttentionLaunch& launch : plan.launches) {
    entries.push_back(device::load_kernel(device, launch.entry));
    if (launch.shared_bytes > kSharedBytesWithoutAsking)
      entries.back().allow_dynamic_shared_bytes(launch.shared_bytes);
  }
  return entries;
}

device::Stream lent_stream(const device::Device& device, void* stream) {
  return device::Stream::lent(device, reinterpret_cast<device::abi::CUstream>(stream));
}

}  // namespace

SparseAttention::SparseAttention(const Device& device, const SparseAttentionProblem& problem) {
  ops::SparsePlanned planned = ops::make_sparse_plan(device.internal().info(), problem);
  auto entries = load_entries(device.internal(), planned.plan);
  state_ = std::make_unique<State>(State{device, std::move(planned), std::move(entries)});
}

SparseAttention::~SparseAttention() = default;
SparseAttention::SparseAttention(SparseAttention&&) noexcept = default;
SparseAttention& SparseAttention::operator=(SparseAttention&&) noexcept = default;

const SparseAttentionPlan& SparseAttention::plan() const noexcept {
  return state_->planned.plan;
}

void SparseAttention::run(const SparseAttentionArguments& arguments) const {
  const State& state = *state_;
  ops::check_sparse_arguments(state.planned.plan, arguments);
  const auto stream = lent_stream(state.handle.internal(), arguments.stream);
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_sparse(state.planned, arguments, i, state.entries[i], stream);
}

SparseAttentionPlan plan_sparse_attention(const Device& device,
                                          const SparseAttentionProblem& problem) {
  return ops::make_sparse_plan(device.internal().info(), problem).plan;
}

SparseLists::SparseLists(const Device& device, const SparseListProblem& problem)
    : state_(
          std::make_unique<State>(State{device, ops::complete_list_problem(problem),
                                        device::load_kernel(device.internal(), "sparse_lists")})) {}

SparseLists::~SparseLists() = default;
SparseLists::SparseLists(SparseLists&&) noexcept = default;
SparseLists& SparseLists::operator=(SparseLists&&) noexcept = default;

const SparseListProblem& SparseLists::problem() const noexcept {
  return state_->problem;
}

void SparseLists::run(const SparseListOutputs& outputs) const {
  const SparseListProblem& p = state_->problem;
  const std::int64_t queries = p.batch * p.q_len;
  if (queries == 0) return;
  const kernels::SparseListParams params = ops::bind_sparse_lists(p, outputs);
  constexpr std::int64_t kQueries = kernels::kSparseListQueries;
  state_->kernel.launch({.grid = {static_cast<std::uint32_t>((queries + kQueries - 1) / kQueries)},
                         .block = {kernels::kSparseListThreads},
                         .is_dependent_launch = true},
                        params, lent_stream(state_->handle.internal(), outputs.stream));
}

}  // namespace tilewright
