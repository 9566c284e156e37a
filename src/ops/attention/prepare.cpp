// Preparing e4m3 operands of attention: addresses and launches.
#include "ops/attention/prepare.h"

#include "device/internal.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"
#include "ops/operator/rotary_checks.h"

namespace tilewright {

struct AttentionPrepare::State : ops::LoadedPlan<AttentionPreparePlan> {
  kernels::K8PrepareParams numbers = ops::attention_prepare_numbers(plan());  // without addresses

  using LoadedPlan::LoadedPlan;
};

namespace {

constexpr ops::ArgumentChecks kChecks("attention prepare");

}  // namespace

AttentionPrepare::AttentionPrepare(const Device& device, const AttentionPrepareProblem& problem)
    : state_(std::make_unique<State>(
          device, ops::make_attention_prepare_plan(opened(device).info(), problem))) {}

AttentionPrepare::~AttentionPrepare() = default;
AttentionPrepare::AttentionPrepare(AttentionPrepare&&) noexcept = default;
AttentionPrepare& AttentionPrepare::operator=(AttentionPrepare&&) noexcept = default;

const AttentionPreparePlan& AttentionPrepare::plan() const noexcept {
  return state_->plan();
}

void AttentionPrepare::run(const AttentionPrepareArguments& a) const {
  const State& state = *state_;
  if (state.entries.empty()) return;
  kernels::K8PrepareParams params = state.numbers;
  ops::bind_attention_prepare(state.plan(), a, params);
  const device::Device& device = state.device();
  const device::Stream stream = state.stream(a.stream);
  ops::clear_words(device, stream, a.workspace, state.plan().workspace_bytes / 4);
  ops::clear_words(device, stream, a.v_descale_max, state.plan().num_v_descale_max);
  for (std::size_t i = 0; i < state.entries.size(); ++i) {
    const Launch& launch = state.plan().launches[i];
    state.entries[i].launch(i > 0 ? ops::dependent_launch(launch) : ops::plain_launch(launch),
                            params, stream);
  }
}

AttentionPreparePlan plan_attention_prepare(const Device& device,
                                            const AttentionPrepareProblem& problem) {
  return ops::make_attention_prepare_plan(opened(device).info(), problem);
}

void ops::bind_attention_prepare(const AttentionPreparePlan& plan,
                                 const AttentionPrepareArguments& a,
                                 kernels::K8PrepareParams& params) {
  const AttentionPrepareProblem& p = plan.problem;
  const bool has_q = p.total_q > 0, has_kv = p.total_kv > 0;
  const bool has_rope = p.rope != RotaryPairs::kNone;
  kChecks.address_if(has_q, "q", a.q, kRowAlignment);
  kChecks.address_if(has_q, "q8", a.q8, kRowAlignment);
  kChecks.address_if(has_kv, "k", a.k, kRowAlignment);
  kChecks.address_if(has_kv, "k8", a.k8, kRowAlignment);
  kChecks.address_if(has_kv, "v", a.v, kRowAlignment);
  kChecks.address_if(plan.v8_bytes > 0, "v8", a.v8, kRowAlignment);
  kChecks.address_if(has_q, "q_descale", a.q_descale, kWordAlignment);
  kChecks.address_if(has_kv, "k_descale", a.k_descale, kWordAlignment);
  kChecks.address_if(has_kv, "v_descale", a.v_descale, kWordAlignment);
  kChecks.address_if(has_kv && plan.num_v_descale_max > 0, "v_descale_max", a.v_descale_max,
                     kWordAlignment);
  kChecks.address_if(p.is_packed, "cu_q", a.cu_q, kWordAlignment);
  kChecks.address_if(p.is_packed, "cu_kv", a.cu_kv, kWordAlignment);
  if (has_rope) {
    ops::check_one_table(kChecks, a.rope, kRowAlignment);
    ops::check_planned_positions(kChecks, a.rope, p.rope_positions);
  }
  kChecks.address_if(has_rope && p.has_positions && has_q, "q_positions", a.q_positions,
                     kWordAlignment);
  kChecks.address_if(has_rope && p.has_positions && has_kv, "k_positions", a.k_positions,
                     kWordAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
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
  params.rope = a.rope.angles;
  if (!p.has_positions) return;
  params.operands[0].positions = a.q_positions;
  params.operands[1].positions = a.k_positions;
}

}  // namespace tilewright
