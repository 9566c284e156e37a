#include "model/text/sampler.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace tilewright::model {
namespace {

// splitmix64 (public domain, Vigna): the standard library's distributions differ by platform.
std::uint64_t next_bits(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double key(double logit) {
  return std::isnan(logit) ? -std::numeric_limits<double>::infinity() : logit;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options, std::uint64_t sequence)
    : options_(options), state_(options.seed) {
  require(options.temperature >= 0 && std::isfinite(options.temperature),
          ErrorKind::kInvalidArgument,
          "sampler: temperature = {}; expected a number of at least 0 (0 takes the likeliest)",
          options.temperature);
  require(options.top_p > 0 && options.top_p <= 1, ErrorKind::kInvalidArgument,
          "sampler: top_p = {}; expected a number above 0 and at most 1 (1 keeps every token)",
          options.top_p);
  require(options.top_k >= 0, ErrorKind::kInvalidArgument,
          "sampler: top_k = {}; expected a number of tokens, or 0 for all", options.top_k);
  state_ ^= sequence * 0xd1342543de82ef95;
  next_bits(state_);
}

std::int32_t Sampler::next(std::span<const double> logits) {
  double max = -std::numeric_limits<double>::infinity();
  std::int32_t best = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > max)) continue;  // NaN is not
    max = logits[i];
    best = static_cast<std::int32_t>(i);
  }
  require(best >= 0 && std::isfinite(max), ErrorKind::kInvalidArgument,
          "sampler: none of {} logits is finite, or the largest is infinite; expected numbers. The "
          "model's arithmetic went wrong: compare its stages with --trace",
          logits.size());
  if (options_.temperature == 0) return best;
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto is_before = [&](std::int32_t a, std::int32_t b) {
    return key(logits[static_cast<std::size_t>(a)]) > key(logits[static_cast<std::size_t>(b)]);
  };
  std::stable_sort(order.begin(), order.end(), is_before);
  if (options_.top_k > 0)
    order.resize(std::min(order.size(), static_cast<std::size_t>(options_.top_k)));
  std::vector<double> weights;
  double sum = 0;
  for (const std::int32_t token : order) {
    const double z = key(logits[static_cast<std::size_t>(token)]);
    weights.push_back(std::exp((z - max) / options_.temperature));
    sum += weights.back();
  }
  std::size_t kept = 0;
  double kept_sum = 0;
  while (kept < weights.size() && (kept == 0 || kept_sum < options_.top_p * sum))
    kept_sum += weights[kept++];
  double left = kept_sum * static_cast<double>(next_bits(state_) >> 11) * 0x1p-53;
  for (std::size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[kept - 1];
}

}  // namespace tilewright::model
