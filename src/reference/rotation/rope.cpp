#include "reference/rotation/rope.h"

#include "base/error.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright::reference {
namespace {

void check_rotary_dim(int64_t rotary_dim) {
  require(rotary_dim >= 0 && rotary_dim % 2 == 0, kInvalid,
          "rope: rotary_dim = {}; expected an even number >= 0. Elements are rotated in pairs.",
          rotary_dim);
}

void check_yarn(const YarnParams& yarn) {
  require(yarn.factor > 0 && yarn.original_max_pos > 0 && yarn.beta_fast > 0 && yarn.beta_slow > 0,
          kInvalid,
          "rope: YaRN factor = {}, original_max_pos = {}, beta_fast = {}, beta_slow = {}; expected "
          "values > 0. Take them from the model's configuration.",
          yarn.factor, yarn.original_max_pos, yarn.beta_fast, yarn.beta_slow);
}

// Index, not rounded, of the pair that makes `turns` turns over the original context.
double pair_with_turns(double turns, int64_t rotary_dim, double theta, const YarnParams& yarn) {
  return static_cast<double>(rotary_dim) *
         std::log(yarn.original_max_pos / (2 * std::numbers::pi * turns)) / (2 * std::log(theta));
}

}  // namespace

std::vector<double> rope_frequencies(int64_t rotary_dim, double theta) {
  check_rotary_dim(rotary_dim);
  require(theta > 1, kInvalid,
          "rope: theta = {}; expected a value > 1. Usual values are 1e4 and above.", theta);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    frequencies.push_back(
        std::pow(theta, -2 * static_cast<double>(i) / static_cast<double>(rotary_dim)));
  }
  return frequencies;
}

std::vector<double> yarn_frequencies(int64_t rotary_dim, double theta, const YarnParams& yarn) {
  check_yarn(yarn);
  std::vector<double> frequencies = rope_frequencies(rotary_dim, theta);
  const double last = static_cast<double>(rotary_dim - 1);
  const double low =
      std::max(std::floor(pair_with_turns(yarn.beta_fast, rotary_dim, theta, yarn)), 0.0);
  const double high =
      std::min(std::ceil(pair_with_turns(yarn.beta_slow, rotary_dim, theta, yarn)), last);
  require(
      low <= high, kInvalid,
      "rope: YaRN ramp from pair {} to pair {}; expected a rising ramp. Correct beta_fast = {}, "
      "beta_slow = {} or original_max_pos = {} for theta = {}.",
      low, high, yarn.beta_fast, yarn.beta_slow, yarn.original_max_pos, theta);
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const double distance = static_cast<double>(i) - low;
    const double ramp =
        low == high ? (distance > 0 ? 1.0 : 0.0) : std::clamp(distance / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] * (1 - ramp) + frequencies[i] / yarn.factor * ramp;
  }
  return frequencies;
}

std::vector<double> rope(const RopeParams& p, std::span<const double> x,
                         std::span<const int32_t> positions, std::span<const double> frequencies) {
  check_rotary_dim(p.rotary_dim);
  require_shape("rope", "x", x.size(), "[tokens, heads, head_dim]",
                {p.tokens, p.heads, p.head_dim});
  require_shape("rope", "positions", positions.size(), "[tokens]", {p.tokens});
  require_shape("rope", "frequencies", frequencies.size(), "[rotary_dim / 2]", {p.rotary_dim / 2});
  require(p.rotary_dim <= p.head_dim, kInvalid,
          "rope: rotary_dim = {} and head_dim = {}; expected rotary_dim <= head_dim. Rotate whole "
          "heads with rotary_dim = head_dim.",
          p.rotary_dim, p.head_dim);
  const double sign = p.direction == RopeDirection::kForward ? 1 : -1;
  std::vector<double> out(x.begin(), x.end());
  for (int64_t row = 0; row < p.tokens * p.heads; ++row) {
    const double position = positions[row / p.heads];
    for (int64_t i = 0; i < p.rotary_dim / 2; ++i) {
      const double angle = sign * position * frequencies[i];
      const int64_t even = row * p.head_dim + (p.head_dim - p.rotary_dim) + 2 * i;
      out[even] = x[even] * std::cos(angle) - x[even + 1] * std::sin(angle);
      out[even + 1] = x[even] * std::sin(angle) + x[even + 1] * std::cos(angle);
    }
  }
  return out;
}

}  // namespace tilewright::reference
