// The decode operator: a plan, its loaded kernels, and launching them.
#include "tilewright/attention_decode.h"

#include "ops/decode/bind.h"
#include "ops/decode/plan.h"
#include "ops/operator/planned_launch.h"

#include <utility>

namespace tilewright {

struct AttentionDecode::State {
  Device handle;  // keeps the device open
  ops::DecodePlanned planned;
  std::vector<device::Kernel> entries;  // one a launch
};

AttentionDecode::AttentionDecode(const Device& device, const AttentionDecodeProblem& problem) {
  ops::DecodePlanned planned = ops::make_decode_plan(device.internal().info(), problem);
  auto entries = ops::load_entries(device.internal(), planned.plan.launches);
  state_ = std::make_unique<State>(State{device, std::move(planned), std::move(entries)});
}

AttentionDecode::~AttentionDecode() = default;
AttentionDecode::AttentionDecode(AttentionDecode&&) noexcept = default;
AttentionDecode& AttentionDecode::operator=(AttentionDecode&&) noexcept = default;

const AttentionDecodePlan& AttentionDecode::plan() const noexcept {
  return state_->planned.plan;
}

void AttentionDecode::run(const AttentionDecodeArguments& arguments) const {
  const State& state = *state_;
  ops::check_decode_arguments(state.planned.plan, arguments);
  const device::Stream stream = ops::lent_stream(state.handle.internal(), arguments.stream);
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_decode(state.handle.internal(), state.planned, arguments, i, state.entries[i],
                       stream);
}

AttentionDecodePlan plan_attention_decode(const Device& device,
                                          const AttentionDecodeProblem& problem) {
  return ops::make_decode_plan(device.internal().info(), problem).plan;
}

}  // namespace tilewright
