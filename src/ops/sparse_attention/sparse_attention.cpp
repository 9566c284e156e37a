// The sparse attention operator: a plan, its loaded kernels, and launching them.
#include "tilewright/sparse_attention.h"

#include "device/internal.h"
#include "ops/operator/operator.h"
#include "ops/sparse_attention/bind.h"
#include "ops/sparse_attention/plan.h"

namespace tilewright {

struct SparseAttention::State : ops::LoadedPlan<ops::SparsePlanned> {
  using LoadedPlan::LoadedPlan;
};

SparseAttention::SparseAttention(const Device& device, const SparseAttentionProblem& problem) {
  state_ = std::make_unique<State>(device, ops::make_sparse_plan(opened(device).info(), problem));
}

SparseAttention::~SparseAttention() = default;
SparseAttention::SparseAttention(SparseAttention&&) noexcept = default;
SparseAttention& SparseAttention::operator=(SparseAttention&&) noexcept = default;

const SparseAttentionPlan& SparseAttention::plan() const noexcept {
  return state_->plan();
}

void SparseAttention::run(const SparseAttentionArguments& arguments) const {
  const State& state = *state_;
  ops::check_sparse_arguments(state.plan(), arguments);
  const auto stream = state.stream(arguments.stream);
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_sparse(state.planned, arguments, i, state.entries[i], stream);
}

SparseAttentionPlan plan_sparse_attention(const Device& device,
                                          const SparseAttentionProblem& problem) {
  return ops::make_sparse_plan(opened(device).info(), problem).plan;
}

}  // namespace tilewright
