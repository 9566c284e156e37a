// Preparing e4m3 operands of attention: addresses and launches.
#include "ops/attention/prepare.h"

#include "ops/operator/argument_checks.h"
#include "ops/operator/planned_launch.h"

#include <utility>

namespace tilewright {

struct AttentionPrepare::State {
  Device handle;  // keeps the device open
  AttentionPreparePlan plan;
  std::vector<device::Kernel> entries;  // one a launch
  kernels::K8PrepareParams numbers;     // without addresses
};

namespace {

constexpr ops::ArgumentChecks kChecks("attention prepare");

void clear(const device::Device& device, const device::Stream& stream, const void* address,
           std::size_t words) {
  if (words == 0 || address == nullptr) return;
  const device::CurrentContext current = device.make_current();
  const auto at = reinterpret_cast<device::abi::CUdeviceptr>(address);
  device.check(device.cu().memset_d32_async(at, 0, words, stream.handle()), "cuMemsetD32Async");
}

}  // namespace

AttentionPrepare::AttentionPrepare(const Device& device, const AttentionPrepareProblem& problem) {
  AttentionPreparePlan plan = ops::make_attention_prepare_plan(device.internal().info(), problem);
  auto entries = ops::load_entries(device.internal(), plan.launches);
  const auto numbers = ops::attention_prepare_numbers(plan);
  state_ = std::make_unique<State>(State{device, std::move(plan), std::move(entries), numbers});
}

AttentionPrepare::~AttentionPrepare() = default;
AttentionPrepare::AttentionPrepare(AttentionPrepare&&) noexcept = default;
AttentionPrepare& AttentionPrepare::operator=(AttentionPrepare&&) noexcept = default;

const AttentionPreparePlan& AttentionPrepare::plan() const noexcept {
  return state_->plan;
}

void AttentionPrepare::run(const AttentionPrepareArguments& a) const {
  const State& state = *state_;
  if (state.entries.empty()) return;
  kernels::K8PrepareParams params = state.numbers;
  ops::bind_attention_prepare(state.plan, a, params);
  const device::Device& device = state.handle.internal();
  const device::Stream stream = ops::lent_stream(device, a.stream);
  clear(device, stream, a.workspace, state.plan.workspace_bytes / 4);
  clear(device, stream, a.v_descale_max, state.plan.num_v_descale_max);
  for (std::size_t i = 0; i < state.entries.size(); ++i) {
    const AttentionLaunch& launch = state.plan.launches[i];
    state.entries[i].launch({.grid = {launch.grid[0]},
                             .block = {launch.block[0]},
                             .dynamic_shared_bytes = launch.shared_bytes,
                             .is_dependent_launch = i > 0},
                            params, stream);
  }
}

AttentionPreparePlan plan_attention_prepare(const Device& device,
                                            const AttentionPrepareProblem& problem) {
  return ops::make_attention_prepare_plan(device.internal().info(), problem);
}

void ops::bind_attention_prepare(const AttentionPreparePlan& plan,
                                 const AttentionPrepareArguments& a,
                                 kernels::K8PrepareParams& params) {
  const AttentionPrepareProblem& p = plan.problem;
  constexpr std::size_t kRow = 16, kWord = 4, kWorkspace = 256;
  const auto need = [](const char* field, const void* address, std::size_t alignment,
                       bool is_needed) {
    if (is_needed) kChecks.address(field, address, alignment);
  };
  const bool has_q = p.total_q > 0, has_kv = p.total_kv > 0;
  const bool has_rope = p.rope != RotaryPairs::kNone;
  need("q", a.q, kRow, has_q);
  need("q8", a.q8, kRow, has_q);
  need("k", a.k, kRow, has_kv);
  need("k8", a.k8, kRow, has_kv);
  need("v", a.v, kRow, has_kv);
  need("v8", a.v8, kRow, plan.v8_bytes > 0);
  need("q_descale", a.q_descale, kWord, has_q);
  need("k_descale", a.k_descale, kWord, has_kv);
  need("v_descale", a.v_descale, kWord, has_kv);
  need("v_descale_max", a.v_descale_max, kWord, has_kv && plan.num_v_descale_max > 0);
  need("cu_q", a.cu_q, kWord, p.is_packed);
  need("cu_kv", a.cu_kv, kWord, p.is_packed);
  need("rope", a.rope, kRow, has_rope);
  need("q_positions", a.q_positions, kWord, has_rope && p.has_positions && has_q);
  need("k_positions", a.k_positions, kWord, has_rope && p.has_positions && has_kv);
  need("workspace", a.workspace, kWorkspace, plan.workspace_bytes > 0);
  const auto bind = [&](int i, const void* in, void* out, float* descale) {
    kernels::K8Operand& o = params.operands[i];
    o.in = in;
    o.out = static_cast<std::uint8_t*>(out);
    o.descale = descale;
    const std::size_t words = plan.workspace_bytes / 4 / 3;
    o.amax = words == 0
                 ? nullptr
                 : static_cast<std::uint32_t*>(a.workspace) + static_cast<std::size_t>(i) * words;
    if (!p.is_packed) return;
    o.cu = i == 0 ? a.cu_q : a.cu_kv;
    o.other_cu = a.cu_kv;
  };
  bind(0, a.q, a.q8, a.q_descale);
  bind(1, a.k, a.k8, a.k_descale);
  bind(2, a.v, a.v8, a.v_descale);
  if (plan.num_v_descale_max > 0) params.operands[2].descale_ref = a.v_descale_max;
  params.rope = a.rope;
  if (!p.has_positions) return;
  params.operands[0].positions = a.q_positions;
  params.operands[1].positions = a.k_positions;
}

}  // namespace tilewright
