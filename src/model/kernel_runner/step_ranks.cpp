// What the ranks of a step exchange. docs/06-deepseek-v4.md has the scheme and the order of sums.
#include "model/kernel_runner/step.h"

namespace tilewright::model {

namespace {

std::vector<std::int64_t> times(std::vector<std::int64_t> counts, std::int64_t factor) {
  for (std::int64_t& count : counts) count *= factor;
  return counts;
}

}  // namespace

// So that nothing is exchanged but sums, which connections make themselves. The draft layer's
// tokens are known to their own rank alone.
bool KernelStep::keeps_all_streams(const ModelArrays& model) const {
  return ranks_.divides_experts() && step_tokens_.of_experts() <= kMostKeptTokens &&
         model.drafts.empty();
}

// Those of all ranks stand behind those of this one.
const std::int32_t* KernelStep::ids_of_experts(const Call& call) const {
  return call.context.ids() + (ranks_.divides_experts() ? tokens_ : 0);
}

const std::uint16_t* KernelStep::own_rows(const Activations& at) const noexcept {
  return at.normed.get() + first_own_ * config_.hidden;
}

std::size_t KernelStep::result_bytes(std::int64_t rows) const noexcept {
  return static_cast<std::size_t>(rows * config_.hidden * bits_per_elem(numbers_.sub_layer) / 8);
}

void* KernelStep::attention_result(const Call& call) const {
  return keeps_all_streams_ ? call.at().parts.get() + result_bytes(first_own_)
                            : call.at().result.get();
}

void* KernelStep::experts_result(const Call& call) const {
  if (keeps_all_streams_) return call.at().parts.get() + result_bytes(stream_tokens_);
  return ranks_.divides_experts() ? call.at().partial.get() : call.at().result.get();
}

void* KernelStep::shared_result(const Call& call) const {
  return keeps_all_streams_ ? call.at().parts.get() + result_bytes(2 * stream_tokens_ + first_own_)
                            : call.at().result.get() + result_bytes(tokens_);
}

void KernelStep::gather_experts_input(const Call& call) const {
  if (!ranks_.divides_experts() || keeps_all_streams_) return;
  const void* const rows = call.at().normed.get();
  void* const gathered = call.at().gathered.get();
  if (ranks_.rows != nullptr)
    ranks_.rows->gather(rows, gathered, times(step_tokens_.of_ranks, config_.hidden), DType::kBF16,
                        call.stream());
  else
    ranks_.comm->all_gather(rows, gathered, times(step_tokens_.of_ranks, 2 * config_.hidden),
                            call.stream());
}

void KernelStep::scatter_experts_result(const Call& call) const {
  if (!ranks_.divides_experts() || keeps_all_streams_) return;
  const void* const partial = call.at().partial.get();
  void* const result = call.at().result.get();
  const std::vector<std::int64_t> counts = times(step_tokens_.of_ranks, config_.hidden);
  if (ranks_.rows != nullptr)
    ranks_.rows->scatter(partial, result, counts, numbers_.sub_layer, call.stream());
  else
    ranks_.comm->reduce_scatter(partial, result, counts, numbers_.sub_layer, call.stream());
}

bool KernelStep::connections_sum_ranks() const {
  return ranks_.sum != nullptr && connections_[kOneResult].sums_ranks();
}

bool KernelStep::has_sums_of_ranks() const noexcept {
  return ranks_.divides_heads() || keeps_all_streams_;
}

// By the connection that comes next, if it can. `results`: 2 with that of the shared expert, which
// stands behind the other: one exchange.
void KernelStep::add_up_ranks(Call& call, void* parts, std::int64_t results) const {
  if (!has_sums_of_ranks()) return;
  // Whoever looks at the results wants their sum.
  call.has_results_of_ranks = call.tap() == nullptr && connections_sum_ranks();
  call.results = call.has_results_of_ranks ? parts : call.at().result.get();
  if (call.has_results_of_ranks) return;
  const std::int64_t count = results * stream_tokens_ * config_.hidden;
  if (ranks_.sum != nullptr)
    ranks_.sum->run(parts, call.at().result.get(), count, numbers_.sub_layer, call.stream());
  else
    ranks_.comm->all_reduce(parts, call.at().result.get(), count, numbers_.sub_layer,
                            call.stream());
}

}  // namespace tilewright::model
