// The attention operator: a plan, its loaded kernels, and launching them.
#include "tilewright/attention.h"

#include "device/kernel_registry.h"
#include "ops/attention_bind.h"
#include "ops/attention_plan.h"

#include <utility>

namespace tilewright {

struct Attention::State {
  Device handle;  // keeps the device open
  AttentionPlan plan;
  const ops::AttentionKernel& kernel;
  std::vector<device::Kernel> entries;  // one a launch
  kernels::AttentionParams numbers;     // without addresses

  const device::Device& device() const { return handle.internal(); }
};

namespace {

device::Dim3 to_dim(const std::array<std::uint32_t, 3>& dims) {
  return {dims[0], dims[1], dims[2]};
}

std::vector<device::Kernel> load_entries(const device::Device& device, const AttentionPlan& plan) {
  constexpr std::uint32_t kSharedBytesWithoutAsking = 48 * 1024;
  std::vector<device::Kernel> entries;
  for (const AttentionLaunch& launch : plan.launches) {
    entries.push_back(device::load_kernel(device, launch.entry));
    if (launch.shared_bytes > kSharedBytesWithoutAsking)
      entries.back().allow_dynamic_shared_bytes(launch.shared_bytes);
  }
  return entries;
}

}  // namespace

Attention::Attention(const Device& device, const AttentionProblem& problem) {
  AttentionPlan plan = ops::make_attention_plan(device.internal().info(), problem);
  const ops::AttentionKernel& kernel = ops::find_attention_kernel(plan.kernel);
  auto entries = load_entries(device.internal(), plan);
  const auto numbers = ops::attention_numbers(plan, kernel, device.internal().info());
  state_ =
      std::make_unique<State>(State{device, std::move(plan), kernel, std::move(entries), numbers});
}

Attention::~Attention() = default;
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;

const AttentionPlan& Attention::plan() const noexcept {
  return state_->plan;
}

void Attention::run(const AttentionArguments& arguments) const {
  const State& state = *state_;
  ops::check_attention_arguments(state.plan, arguments);
  if (state.plan.launches.empty()) return;
  const device::Device& device = state.device();
  const auto stream =
      device::Stream::lent(device, reinterpret_cast<device::abi::CUstream>(arguments.stream));
  kernels::AttentionParams params = state.numbers;
  ops::bind_attention(device, state.plan, state.kernel, arguments, params);
  if (params.next_tile != nullptr) {
    const device::CurrentContext current = device.make_current();
    const auto address = reinterpret_cast<device::abi::CUdeviceptr>(params.next_tile);
    device.check(device.cu().memset_d32_async(address, 0, 1, stream.handle()), "cuMemsetD32Async");
  }
  for (std::size_t i = 0; i < state.entries.size(); ++i) {
    const AttentionLaunch& launch = state.plan.launches[i];
    state.entries[i].launch({.grid = to_dim(launch.grid),
                             .block = to_dim(launch.block),
                             .dynamic_shared_bytes = launch.shared_bytes},
                            params, stream);
  }
}

AttentionPlan plan_attention(const Device& device, const AttentionProblem& problem) {
  return ops::make_attention_plan(device.internal().info(), problem);
}

}  // namespace tilewright
