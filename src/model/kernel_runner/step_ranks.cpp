// What the ranks of a step exchange. docs/06-deepseek-v4.md has the scheme and the order of sums.
#include "model/kernel_runner/step.h"

namespace tilewright::model {

namespace {

std::vector<std::int64_t> times(std::vector<std::int64_t> counts, std::int64_t factor) {
  for (std::int64_t& count : counts) count *= factor;
  return counts;
}

}  // namespace

void* KernelStep::shared_result(const Call& call) const {
  return call.at().result.get() + tokens_ * config_.hidden * bits_per_elem(numbers_.sub_layer) / 8;
}

// Layers routed by a table need the tokens themselves.
void KernelStep::gather_ids(const Call& call) const {
  if (!ranks_.divides_experts() || config_.hash_layers == 0) return;
  ranks_.comm->all_gather(call.context.ids(), call.at().gathered_ids.get(),
                          times(step_tokens_.of_ranks, sizeof(std::int32_t)), call.stream());
}

void KernelStep::gather_experts_input(const Call& call) const {
  if (!ranks_.divides_experts()) return;
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
  if (!ranks_.divides_experts()) return;
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

// By the connection that comes next, if it can. `results`: 2 with that of the
// shared expert, which stands behind the other: one exchange.
void KernelStep::add_up_ranks(Call& call, std::int64_t results) const {
  if (!ranks_.divides_heads()) return;
  // Whoever looks at the results wants their sum.
  call.has_results_of_ranks = call.tap() == nullptr && connections_sum_ranks();
  if (call.has_results_of_ranks) return;
  void* const result = call.at().result.get();
  const std::int64_t count = results * tokens_ * config_.hidden;
  if (ranks_.sum != nullptr)
    ranks_.sum->run(result, count, numbers_.sub_layer, call.stream());
  else
    ranks_.comm->all_reduce(result, result, count, numbers_.sub_layer, call.stream());
}

}  // namespace tilewright::model
