// The decode operator: a plan, its loaded kernels, and launching them.
#include "tilewright/attention_decode.h"

#include "device/internal.h"
#include "ops/decode/bind.h"
#include "ops/decode/plan.h"
#include "ops/operator/operator.h"

namespace tilewright {

struct AttentionDecode::State : ops::LoadedPlan<ops::DecodePlanned> {
  using LoadedPlan::LoadedPlan;
};

AttentionDecode::AttentionDecode(const Device& device, const AttentionDecodeProblem& problem) {
  state_ = std::make_unique<State>(device, ops::make_decode_plan(opened(device).info(), problem));
}

AttentionDecode::~AttentionDecode() = default;
AttentionDecode::AttentionDecode(AttentionDecode&&) noexcept = default;
AttentionDecode& AttentionDecode::operator=(AttentionDecode&&) noexcept = default;

const AttentionDecodePlan& AttentionDecode::plan() const noexcept {
  return state_->plan();
}

void AttentionDecode::run(const AttentionDecodeArguments& arguments) const {
  const State& state = *state_;
  ops::check_decode_arguments(state.plan(), arguments);
  const device::Stream stream = state.stream(arguments.stream);
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_decode(state.device(), state.planned, arguments, i, state.entries[i], stream);
}

AttentionDecodePlan plan_attention_decode(const Device& device,
                                          const AttentionDecodeProblem& problem) {
  return ops::make_decode_plan(opened(device).info(), problem).plan;
}

}  // namespace tilewright
