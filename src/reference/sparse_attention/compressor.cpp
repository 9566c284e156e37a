#include "reference/sparse_attention/compressor.h"

#include "reference/model/rms_norm.h"
#include "reference/rotation/rope.h"
#include "reference/round.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

}  // namespace

CompressorState::CompressorState(const CompressorParams& params, int64_t spare, int64_t first)
    : params_(params) {
  require_at_least("compressor", "ratio", params.ratio, 1);
  require_at_least("compressor", "dim", params.dim, 1);
  require_at_least("compressor", "spare", spare, 0);
  window_ = params.ratio * (params.overlap ? 2 : 1);
  require_at_least("compressor", "first", first, 0);
  ring_ = window_ + spare;
  reset();
  num_tokens_ = most_tokens_ = first;
}

void CompressorState::reset() {
  num_tokens_ = most_tokens_ = 0;
  values_.assign(ring_ * params_.width(), 0);
  scores_.assign(ring_ * params_.width(), kNoScore);
}

void CompressorState::take_back(int64_t tokens) {
  const int64_t least = std::max<int64_t>(0, most_tokens_ - (ring_ - window_));
  require(tokens >= 0 && num_tokens_ - tokens >= least, ErrorKind::kInvalidArgument,
          "compressor: take_back({}) of {} tokens; expected 0 to {}", tokens, num_tokens_,
          num_tokens_ - least);
  num_tokens_ -= tokens;
}

std::vector<double> CompressorState::push(std::span<const double> values,
                                          std::span<const double> gates,
                                          std::span<const double> ape) {
  const int64_t width = params_.width();
  require_shape("compressor", "values", values.size(), "[width]", {width});
  require_shape("compressor", "gates", gates.size(), "[width]", {width});
  require_shape("compressor", "ape", ape.size(), "[ratio, width]", {params_.ratio, width});
  const int64_t row = num_tokens_ % ring_, phase = num_tokens_ % params_.ratio;
  for (int64_t c = 0; c < width; ++c) {
    values_[row * width + c] = values[c];
    scores_[row * width + c] = gates[c] + ape[phase * width + c];
  }
  most_tokens_ = std::max(most_tokens_, ++num_tokens_);
  return num_tokens_ % params_.ratio == 0 ? pool() : std::vector<double>();
}

std::vector<double> CompressorState::pool() const {
  const int64_t width = params_.width();
  // Position p lies in row p mod ring_. There is no token before position 0.
  const int64_t first = num_tokens_ - window_;
  std::vector<double> entry;
  for (int64_t c = 0; c < params_.dim; ++c) {
    std::vector<double> v, s;
    for (int64_t slot = 0; slot < window_; ++slot) {
      const bool is_own = slot >= window_ - params_.ratio;
      const int64_t channel = params_.overlap && is_own ? c + params_.dim : c;
      const int64_t at = std::max<int64_t>(first + slot, 0) % ring_ * width + channel;
      v.push_back(values_[at]);
      s.push_back(first + slot < 0 ? kNoScore : scores_[at]);
    }
    const double max = *std::max_element(s.begin(), s.end());
    double sum = 0, weighted = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      const double e = s[i] == kNoScore ? 0 : std::exp(s[i] - max);
      sum += e;
      weighted += e * v[i];
    }
    entry.push_back(weighted / sum);
  }
  return entry;
}

std::vector<double> compressor_pool(const CompressorParams& params, std::span<const double> values,
                                    std::span<const double> gates, std::span<const double> ape) {
  const int64_t width = params.width();
  const int64_t tokens = static_cast<int64_t>(values.size()) / std::max<int64_t>(width, 1);
  require_shape("compressor", "values", values.size(), "[tokens, width]", {tokens, width});
  require_shape("compressor", "gates", gates.size(), "[tokens, width]", {tokens, width});
  CompressorState state(params);
  std::vector<double> entries;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto entry =
        state.push(values.subspan(t * width, width), gates.subspan(t * width, width), ape);
    entries.insert(entries.end(), entry.begin(), entry.end());
  }
  return entries;
}

std::vector<double> compressor_finish(const CompressorFinishParams& p,
                                      std::span<const double> pooled,
                                      std::span<const double> norm_weight,
                                      std::span<const double> frequencies) {
  require_at_least("compressor", "dim", p.dim, 1);
  const int64_t entries = static_cast<int64_t>(pooled.size()) / p.dim;
  std::vector<double> rows(pooled.begin(), pooled.end());
  if (p.round_bf16) round_to_bf16(rows);
  rows = rms_norm({entries, p.dim, p.eps}, rows, norm_weight);
  if (p.round_bf16) round_to_bf16(rows);
  std::vector<int32_t> positions;
  for (int64_t j = 0; j < entries; ++j)
    positions.push_back(static_cast<int32_t>((p.first_entry + j) * p.ratio));
  const auto rotary_dim = static_cast<int64_t>(2 * frequencies.size());
  rows = rope({.tokens = entries, .heads = 1, .head_dim = p.dim, .rotary_dim = rotary_dim}, rows,
              positions, frequencies);
  if (p.round_bf16) round_to_bf16(rows);
  return rows;
}

}  // namespace tilewright::reference
