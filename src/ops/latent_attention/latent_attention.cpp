// The latent attention operator: a plan, its loaded kernels, and launching them.
#include "tilewright/latent_attention.h"

#include "device/internal.h"
#include "ops/latent_attention/bind.h"
#include "ops/latent_attention/plan.h"
#include "ops/operator/operator.h"

namespace tilewright {

struct LatentAttention::State : ops::LoadedPlan<ops::LatentPlanned> {
  using LoadedPlan::LoadedPlan;
};

LatentAttention::LatentAttention(const Device& device, const LatentAttentionProblem& problem) {
  state_ = std::make_unique<State>(device, ops::make_latent_plan(opened(device).info(), problem));
}

LatentAttention::~LatentAttention() = default;
LatentAttention::LatentAttention(LatentAttention&&) noexcept = default;
LatentAttention& LatentAttention::operator=(LatentAttention&&) noexcept = default;

const LatentAttentionPlan& LatentAttention::plan() const noexcept {
  return state_->plan();
}

void LatentAttention::run(const LatentAttentionArguments& arguments) const {
  const State& state = *state_;
  ops::check_latent_arguments(state.plan(), arguments);
  const device::Stream stream = state.stream(arguments.stream);
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_latent(state.device(), state.planned, arguments, i, state.entries[i], stream);
}

LatentAttentionPlan plan_latent_attention(const Device& device,
                                          const LatentAttentionProblem& problem) {
  return ops::make_latent_plan(opened(device).info(), problem).plan;
}

}  // namespace tilewright
