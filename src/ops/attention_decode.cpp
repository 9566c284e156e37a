// The decode operator: a plan, its loaded kernels, and launching them.
#include "tilewright/attention_decode.h"

#include "device/kernel_registry.h"
#include "ops/attention_decode_bind.h"
#include "ops/attention_decode_plan.h"

#include <utility>

namespace tilewright {

struct AttentionDecode::State {
  Device handle;  // keeps the device open
  ops::DecodePlanned planned;
  std::vector<device::Kernel> entries;  // one a launch
};

namespace {

std::vector<device::Kernel> load_decode_entries(const device::Device& device,
                                                const AttentionDecodePlan& plan) {
  constexpr std::uint32_t kSharedBytesWithoutAsking = 48 * 1024;
  std::vector<device::Kernel> entries;
  for (const AttentionDecodeLaunch& launch : plan.launches) {
    entries.push_back(device::load_kernel(device, launch.entry));
    if (launch.shared_bytes > kSharedBytesWithoutAsking)
      entries.back().allow_dynamic_shared_bytes(launch.shared_bytes);
  }
  return entries;
}

}  // namespace

AttentionDecode::AttentionDecode(const Device& device, const AttentionDecodeProblem& problem) {
  ops::DecodePlanned planned = ops::make_decode_plan(device.internal().info(), problem);
  auto entries = load_decode_entries(device.internal(), planned.plan);
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
  const auto stream = device::Stream::lent(
      state.handle.internal(), reinterpret_cast<device::abi::CUstream>(arguments.stream));
  for (std::size_t i = 0; i < state.entries.size(); ++i)
    ops::launch_decode(state.planned, arguments, i, state.entries[i], stream);
}

AttentionDecodePlan plan_attention_decode(const Device& device,
                                          const AttentionDecodeProblem& problem) {
  return ops::make_decode_plan(device.internal().info(), problem).plan;
}

}  // namespace tilewright
