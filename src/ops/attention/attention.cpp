// The attention operator: a plan, its loaded kernels, and launching them.
#include "tilewright/attention.h"

#include "device/internal.h"
#include "kernels/attention/forward/widened/operands.h"
#include "ops/attention/bind.h"
#include "ops/attention/fp8.h"
#include "ops/attention/padding.h"
#include "ops/attention/plan.h"
#include "ops/attention/problem.h"
#include "ops/operator/operator.h"
#include "ops/operator/workspace.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace tilewright {

namespace {

// `launch` with the arguments that the kernel of the plan takes.
template <class Launch>
void launch_over_pages(const AttentionPlan& plan, const ops::AttentionKernel& kernel,
                       const ops::AttentionNumbers& numbers, const Launch& launch) {
  const kernels::AttentionFp8Params& params = numbers.params;
  const kernels::AttentionPagedParams paged = {params, numbers.pages};
  const auto scales = [](const kernels::Fp8Scales& of) -> kernels::CacheScales {
    return {of.values, of.batch_stride, of.head_stride};
  };
  if (ops::attention_kv_dtype(plan.problem) != DType::kF8_E4M3) {
    launch(paged);
  } else if (kernel.capability == 90 && ops::attention_widens(plan.problem)) {
    launch(
        kernels::AttentionWidenedParams{paged, scales(params.k_scales), scales(params.v_scales)});
  } else {
    launch(kernels::AttentionPagedFp8Params{paged, params, numbers.page_divisor});
  }
}

}  // namespace

namespace ops {

// Operands of 16 bits as e4m3 ones in the workspace, and attention of those.
struct PreparedAttention {
  AttentionPrepare prepare;
  Attention attention;
  Fp8Workspace at;

  PreparedAttention(const Device& device, const AttentionProblem& problem, AttentionFp8 kind)
      : prepare(device, fp8_prepare_problem(kind, problem)),
        attention(device, fp8_problem(kind, problem)),
        at(fp8_workspace(prepare.plan(), attention.plan())) {}
  void run(const AttentionArguments& arguments) const;
};

}  // namespace ops

struct Attention::State {
  Device handle;  // keeps the device open
  AttentionPlan plan;
  const ops::AttentionKernel& kernel;
  std::vector<device::Kernel> entries;             // one a launch
  ops::AttentionNumbers numbers;                   // without addresses
  std::optional<ops::PreparedAttention> prepared;  // then there are no entries here

  const device::Device& device() const { return opened(handle); }
};

void ops::PreparedAttention::run(const AttentionArguments& a) const {
  auto* const begin = static_cast<std::byte*>(a.workspace);
  const auto words = [&](std::size_t offset) { return ops::part_of<float>(begin, offset); };
  prepare.run({.q = a.q,
               .k = a.k,
               .v = a.v,
               .q8 = begin + at.q8,
               .k8 = begin + at.k8,
               .v8 = begin + at.v8,
               .q_descale = words(at.q_descale),
               .k_descale = words(at.k_descale),
               .v_descale = words(at.v_descale),
               .v_descale_max = words(at.v_descale_max),
               .cu_q = a.cu_q,
               .cu_kv = a.cu_kv,
               .workspace = begin + at.prepare,
               .stream = a.stream});
  AttentionArguments inner = a;
  inner.q = begin + at.q8;
  inner.k = begin + at.k8;
  inner.v = begin + at.v8;
  inner.workspace = begin + at.attention;
  inner.q_descale = words(at.q_descale);
  inner.k_descale = words(at.k_descale);
  inner.v_descale = words(at.v_descale);
  inner.v_descale_max = words(at.v_descale_max);
  attention.run(inner);
}

Attention::Attention(const Device& device, const AttentionProblem& problem) {
  AttentionPlan plan = ops::make_attention_plan(opened(device).info(), problem);
  const ops::AttentionKernel& kernel = ops::find_attention_kernel(plan.kernel);
  if (kernel.prepares(plan.problem)) {
    ops::PreparedAttention prepared(device, plan.problem, kernel.fp8);
    state_ = std::make_unique<State>(
        State{device, std::move(plan), kernel, {}, {}, std::move(prepared)});
    return;
  }
  auto entries = ops::load_entries(opened(device), plan.launches);
  const auto numbers = ops::attention_numbers(plan, kernel, opened(device).info());
  state_ = std::make_unique<State>(
      State{device, std::move(plan), kernel, std::move(entries), numbers, std::nullopt});
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
  if (state.prepared) return state.prepared->run(arguments);
  const device::Device& device = state.device();
  const device::Stream stream = ops::lent_stream(device, arguments.stream);
  ops::AttentionNumbers numbers = state.numbers;
  ops::bind_attention(device, state.plan, state.kernel, arguments, numbers);
  const kernels::AttentionFp8Params& params = numbers.params;
  ops::clear_words(device, stream, params.next_tile, ops::attention_counters(state.kernel));
  if (state.kernel.has_pages) {
    return launch_over_pages(state.plan, state.kernel, numbers, [&](const auto& paged) {
      state.entries[0].launch_bytes(ops::plain_launch(state.plan.launches[0]), &paged, sizeof paged,
                                    stream);
    });
  }
  const std::size_t params_bytes =
      state.kernel.computes_in_e4m3() ? sizeof params : sizeof(kernels::AttentionParams);
  const std::size_t trimming = ops::trims(state.kernel, state.plan.problem) ? 1 : 0;
  const std::size_t attending = state.entries.size() - trimming;
  for (std::size_t i = 0; i < attending; ++i)
    state.entries[i].launch_bytes(ops::plain_launch(state.plan.launches[i]), &params, params_bytes,
                                  stream);
  if (trimming == 0) return;
  const auto trim = ops::trim_params(state.plan, state.kernel, arguments);
  state.entries[attending].launch_bytes(ops::plain_launch(state.plan.launches[attending]), &trim,
                                        sizeof trim, stream);
}

AttentionPlan plan_attention(const Device& device, const AttentionProblem& problem) {
  return ops::make_attention_plan(opened(device).info(), problem);
}

}  // namespace tilewright
