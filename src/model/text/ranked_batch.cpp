#include "model/text/ranked_batch.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tilewright::model {

namespace {

void tell(Told& told, const BatchOptions& options) {
  told.add(options.sequences);
  told.add(options.step_tokens);
  told.add(options.prefill_chunk);
  told.add(options.has_draft);
}

void tell(Told& told, const BatchRequest& request) {
  const SamplerOptions& sampler = request.sampler;
  told.add(request.prompt);
  told.add(request.max_tokens);
  for (const double number : {sampler.temperature, sampler.top_p, sampler.min_p}) told.add(number);
  told.add(sampler.top_k);
  told.add(sampler.seed);
  told.add(request.sampler_sequence);
  told.add(request.ends);
}

}  // namespace

RankedBatch::RankedBatch(Runner& runner, const BatchOptions& options,
                         std::unique_ptr<Agreement> ranks)
    : engine_(runner, options), ranks_(std::move(ranks)) {
  tell(told_, options);
  const RunnerLimits limits = runner.limits();
  for (const std::int64_t limit :
       {limits.max_tokens, limits.cache_tokens, limits.step_tokens, limits.groups})
    told_.add(limit);
}

std::int64_t RankedBatch::add(BatchRequest request) {
  Told told = told_;
  tell(told, request);
  const std::int64_t number = engine_.add(std::move(request));
  told_ = told;
  requests_ = number + 1;
  return number;
}

bool RankedBatch::cancel(std::int64_t request) {
  if (!ranks_) return engine_.cancel(request);
  if (!engine_.has(request) || std::ranges::count(cancelled_, request) > 0) return false;
  cancelled_.push_back(request);
  return true;
}

std::vector<BatchEvent> RankedBatch::step() {
  if (!ranks_) return engine_.step();
  const std::vector<std::int64_t> cancelled = ranks_->meet(requests_, told_, cancelled_);
  try {
    return step_of_all(cancelled);
  } catch (const std::exception& error) {
    ranks_->tell_failure(error.what());
    throw;
  }
}

std::vector<BatchEvent> RankedBatch::step_of_all(std::span<const std::int64_t> cancelled) {
  std::vector<BatchEvent> events;
  for (const std::int64_t request : cancelled)
    if (engine_.cancel(request) && std::ranges::count(cancelled_, request) == 0)
      events.push_back({.request = request, .finish = FinishReason::kCancelled});
  cancelled_.clear();
  if (engine_.is_idle()) return events;
  for (BatchEvent& event : engine_.step()) {
    told_.add(event.tokens);
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace tilewright::model
