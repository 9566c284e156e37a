// Angles of rotary positions.
#include "tilewright/cache_writer.h"

#include "formats/kv_page.h"
#include "ops/operator/arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tilewright {

namespace {

constexpr int kPairs = kKvRopeDims / 2;
constexpr ops::ArgumentChecks kTableChecks("rope_table");

// The pair, not a whole number, that makes `turns` turns over the original context.
double pair_of(double turns, const RopeOptions& o) {
  return kKvRopeDims * std::log(o.original_positions / (2 * std::numbers::pi * turns)) /
         (2 * std::log(o.theta));
}

// 0: the pair turns as it does without YaRN, 1: `factor` times slower.
double ramp(int pair, const RopeOptions& o) {
  const double low = std::max(std::floor(pair_of(o.beta_fast, o)), 0.0);
  const double high = std::min(std::ceil(pair_of(o.beta_slow, o)), double{kKvRopeDims - 1});
  kTableChecks.check(low <= high,
                     "beta_fast = {} and beta_slow = {} give pairs {} to {}; expected the "
                     "fast ones first",
                     o.beta_fast, o.beta_slow, low, high);
  if (low == high) return pair > low ? 1 : 0;
  return std::clamp((pair - low) / (high - low), 0.0, 1.0);
}

std::array<double, kPairs> frequencies(const RopeOptions& o) {
  kTableChecks.check(o.theta > 1, "theta = {}; expected more than 1", o.theta);
  kTableChecks.check(
      !o.has_yarn ||
          (o.factor > 0 && o.original_positions > 0 && o.beta_fast > 0 && o.beta_slow > 0),
      "factor = {}, original_positions = {}, beta_fast = {}, beta_slow = {}; expected "
      "all above 0",
      o.factor, o.original_positions, o.beta_fast, o.beta_slow);
  std::array<double, kPairs> f = {};
  for (int i = 0; i < kPairs; ++i) {
    const double plain = std::pow(o.theta, -2.0 * i / kKvRopeDims);
    const double slow = o.has_yarn ? ramp(i, o) : 0;
    f[static_cast<std::size_t>(i)] = plain * (1 - slow) + plain / o.factor * slow;
  }
  return f;
}

}  // namespace

std::vector<float> rope_table(const RopeOptions& options, std::int64_t positions,
                              std::int64_t first) {
  kTableChecks.range("positions", positions, 0);
  kTableChecks.range("first", first, 0);
  const std::array<double, kPairs> f = frequencies(options);
  std::vector<float> table(static_cast<std::size_t>(positions) * kKvRopeDims);
  for (std::int64_t p = 0; p < positions; ++p) {
    float* const row = table.data() + p * kKvRopeDims;
    for (int i = 0; i < kPairs; ++i) {
      const double angle = static_cast<double>(first + p) * f[static_cast<std::size_t>(i)];
      row[i] = static_cast<float>(std::cos(angle));
      row[kPairs + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace tilewright
