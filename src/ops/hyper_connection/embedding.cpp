// The embedding into the streams: checks and launch.
#include "tilewright/hyper_connection.h"

#include "device/internal.h"
#include "kernels/model/hyper_connection.h"
#include "ops/hyper_connection/checks.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/type_word.h"

namespace tilewright {

namespace {

constexpr const char* kEmbedName = "hyper-embedding";
constexpr ops::ArgumentChecks kEmbedChecks(kEmbedName);

HyperEmbeddingPlan make_plan(const device::DeviceInfo& device, const HyperEmbeddingProblem& p) {
  ops::ProblemChecks checks(kEmbedName);
  ops::check_sizes(checks, p.tokens, p.hidden);
  ops::check_float(checks, "stream_dtype", p.stream_dtype);
  checks.range("vocab", p.vocab, 1);
  checks.finish();
  HyperEmbeddingPlan plan;
  plan.problem = p;
  plan.launches = {
      ops::planned_launch("embed", "hyper_embed",
                          {.grid = {ops::ctas_for(p.hidden, 4 * kernels::kHyperEmbedThreads),
                                    static_cast<std::uint32_t>(p.tokens)},
                           .block = {kernels::kHyperEmbedThreads},
                           .is_dependent_launch = true})};
  ops::require_built(kEmbedName, device, plan.launches);
  if (p.tokens == 0) plan.launches.clear();
  plan.bytes = static_cast<double>(p.tokens) * static_cast<double>(p.hidden) *
               (ops::elem_bytes(DType::kBF16) + 4 * ops::elem_bytes(p.stream_dtype));
  plan.notes = {{"embedding", fmt::format("{} tokens of {} into 4 streams of {} in {}", p.tokens,
                                          p.vocab, p.hidden, ops::type_word(p.stream_dtype))}};
  return plan;
}

}  // namespace

struct HyperEmbedding::State : ops::LoadedPlan<HyperEmbeddingPlan> {
  using LoadedPlan::LoadedPlan;
};

HyperEmbedding::HyperEmbedding(const Device& device, const HyperEmbeddingProblem& problem)
    : state_(std::make_unique<State>(device, make_plan(opened(device).info(), problem))) {}

HyperEmbedding::~HyperEmbedding() = default;
HyperEmbedding::HyperEmbedding(HyperEmbedding&&) noexcept = default;
HyperEmbedding& HyperEmbedding::operator=(HyperEmbedding&&) noexcept = default;

const HyperEmbeddingPlan& HyperEmbedding::plan() const noexcept {
  return state_->plan();
}

HyperEmbeddingPlan plan_hyper_embedding(const Device& device,
                                        const HyperEmbeddingProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

void HyperEmbedding::run(const HyperEmbeddingArguments& a) const {
  const HyperEmbeddingProblem& p = plan().problem;
  if (p.tokens == 0) return;
  kEmbedChecks.address("table", a.table, 16);
  kEmbedChecks.address("ids", a.ids, 4);
  kEmbedChecks.address("streams", a.streams, 16);
  const kernels::HyperEmbedParams params = {.table = static_cast<const std::uint16_t*>(a.table),
                                            .ids = a.ids,
                                            .streams = a.streams,
                                            .tokens = static_cast<std::int32_t>(p.tokens),
                                            .hidden = static_cast<std::int32_t>(p.hidden),
                                            .vocab = static_cast<std::int32_t>(p.vocab),
                                            .is_f32 = p.stream_dtype == DType::kF32};
  state_->entries[0].launch(ops::dependent_launch(plan().launches[0]), params,
                            state_->stream(a.stream));
}

}  // namespace tilewright
