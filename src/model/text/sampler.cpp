#include "model/text/sampler.h"

#include "base/error.h"
#include "reference/model/sample.h"

#include <cmath>

namespace tilewright::model {

void check_sampler(const SamplerOptions& options) {
  constexpr ErrorKind kBadSampler = ErrorKind::kInvalidArgument;
  require(options.temperature >= 0 && std::isfinite(options.temperature), kBadSampler,
          "sampler: temperature = {}; expected a number of at least 0 (0 takes the likeliest)",
          options.temperature);
  require(options.top_p > 0 && options.top_p <= 1, kBadSampler,
          "sampler: top_p = {}; expected a number above 0 and at most 1 (1 keeps every token)",
          options.top_p);
  require(options.min_p >= 0 && options.min_p <= 1, kBadSampler,
          "sampler: min_p = {}; expected a number from 0 (keeps every token) to 1", options.min_p);
  require(options.top_k >= 0, kBadSampler,
          "sampler: top_k = {}; expected a number of tokens, or 0 for all", options.top_k);
}

Sampler::Sampler(const SamplerOptions& options, std::uint64_t sequence)
    : options_(options), sequence_(sequence) {
  check_sampler(options);
}

std::int32_t Sampler::draw(std::span<const double> logits, std::int64_t position) const {
  const reference::SampleOptions options = {.temperature = options_.temperature,
                                            .top_k = options_.top_k,
                                            .top_p = options_.top_p,
                                            .min_p = options_.min_p};
  return reference::sample(logits, options, {options_.seed, sequence_, position});
}

}  // namespace tilewright::model
