// The sparse attention operator: a plan, its loaded kernels, and launching them.
#include "tilewright/sparse_attention.h"

#include "ops/operator/planned_launch.h"
#include "ops/sparse_attention/bind.h"
#include "ops/sparse_attention/plan.h"

#include <utility>

namespace tilewright {

struct SparseAttention::State {
  Device handle;  // keeps the device open
  ops::SparsePlanned planned;
  std::vector<device::Kernel> entries;  // one a launch
};

SparseAttention::SparseAttention(const Device& device, const SparseAttentionProblem& problem) {
  ops::SparsePlanned planned = ops::make_sparse_plan(device.internal().info(), problem);
  auto entries = ops::load_entries(device.internal(), planned.plan.launches);
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
  const auto stream = ops::lent_stream(state.handle.internal(), arguments.stream);
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_sparse(state.planned, arguments, i, state.entries[i], stream);
}

SparseAttentionPlan plan_sparse_attention(const Device& device,
                                          const SparseAttentionProblem& problem) {
  return ops::make_sparse_plan(device.internal().info(), problem).plan;
}

}  // namespace tilewright
