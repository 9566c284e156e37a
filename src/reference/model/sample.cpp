#include "reference/model/sample.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tilewright::reference {

namespace {

constexpr double kNoLogit = std::numeric_limits<double>::infinity();

double key_of(double logit) {
  return std::isnan(logit) ? -kNoLogit : logit;
}

std::uint32_t low_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
std::uint32_t high_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

// The lowest of the best tokens.
std::int32_t best_of(std::span<const double> logits) {
  std::int32_t best = -1;
  double largest = -kNoLogit;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(key_of(logits[i]) > largest)) continue;
    largest = logits[i];
    best = static_cast<std::int32_t>(i);
  }
  require(best >= 0 && std::isfinite(largest), ErrorKind::kInvalidArgument,
          "sampler: none of {} logits is finite, or the largest is infinite; expected numbers. The "
          "model's arithmetic went wrong: compare its stages with --trace",
          logits.size());
  return best;
}

double gumbel(std::int32_t token, const SampleSeed& seed) {
  const auto id = static_cast<std::uint32_t>(token);
  const auto bits = philox({id / 4, static_cast<std::uint32_t>(seed.position),
                            low_word(seed.sequence), high_word(seed.sequence)},
                           {low_word(seed.seed), high_word(seed.seed)});
  const double v = (bits[id % 4] + 0.5) * 0x1p-32;
  return -std::log(-std::log1p(-v));
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kFactor0 = 0xd2511f53, kFactor1 = 0xcd9e8d57;
  constexpr std::uint32_t kStep0 = 0x9e3779b9, kStep1 = 0xbb67ae85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = kFactor0 * counter[0], b = kFactor1 * counter[2];
    counter = {high_word(b) ^ counter[1] ^ key[0], low_word(b), high_word(a) ^ counter[3] ^ key[1],
               low_word(a)};
    key = {key[0] + kStep0, key[1] + kStep1};
  }
  return counter;
}

std::vector<std::int32_t> sample_candidates(std::span<const double> logits,
                                            const SampleOptions& options) {
  const std::int32_t best = best_of(logits);
  if (options.temperature == 0) return {best};
  const auto logit = [&](std::int32_t token) {
    return key_of(logits[static_cast<std::size_t>(token)]);
  };
  const double largest = logit(best);
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](std::int32_t token) { return logit(token) == -kNoLogit; });
  std::ranges::stable_sort(order,
                           [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (options.top_k > 0)
    order.resize(std::min(order.size(), static_cast<std::size_t>(options.top_k)));
  const auto weight = [&](std::int32_t token) {
    return std::exp((logit(token) - largest) / options.temperature);
  };
  std::erase_if(order, [&](std::int32_t token) { return weight(token) < options.min_p; });
  double sum = 0;
  for (const std::int32_t token : order) sum += weight(token);
  std::size_t kept = 0;
  double kept_sum = 0;
  while (kept < order.size() && (kept == 0 || kept_sum < options.top_p * sum))
    kept_sum += weight(order[kept++]);
  if (options.top_p < 1) order.resize(kept);
  return order;
}

std::int32_t sample(std::span<const double> logits, const SampleOptions& options,
                    const SampleSeed& seed) {
  const std::vector<std::int32_t> candidates = sample_candidates(logits, options);
  if (candidates.size() == 1) return candidates[0];
  std::int32_t best = -1;
  double best_score = -kNoLogit;
  for (const std::int32_t token : candidates) {
    const double z = logits[static_cast<std::size_t>(token)];
    const double score = z / options.temperature + gumbel(token, seed);
    // As if the lower token had come first.
    if (best >= 0 && (score < best_score || (score == best_score && token > best))) continue;
    best = token;
    best_score = score;
  }
  return best;
}

double sample_log_prob(std::span<const double> logits, std::int32_t token) {
  const double largest = logits[static_cast<std::size_t>(best_of(logits))];
  double sum = 0;
  for (const double z : logits) sum += std::exp(key_of(z) - largest);
  return logits[static_cast<std::size_t>(token)] - largest - std::log(sum);
}

}  // namespace tilewright::reference
