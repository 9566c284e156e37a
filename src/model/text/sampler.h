// Choosing the next token from logits, on the host.
#pragma once

#include "model/model.h"

#include <cstdint>
#include <span>

namespace tilewright::model {

/// Errors   InvalidArgument unless temperature >= 0, top_k >= 0, 0 < top_p <= 1 and 0 <= min_p <= 1
void check_sampler(const SamplerOptions& options);

/// The sampler of one sequence, in float64: the tokens of tilewright/sample.h. A token depends on
/// options, sequence, position and logits alone, on every platform.
///
/// Thread   safe
class Sampler {
 public:
  /// `sequence` makes sequences with one seed differ.
  /// Errors   as check_sampler()
  explicit Sampler(const SamplerOptions& options, std::uint64_t sequence = 0);

  const SamplerOptions& options() const noexcept { return options_; }
  std::uint64_t sequence() const noexcept { return sequence_; }
  /// A token of softmax(logits / temperature), cut to top_k, min_p and top_p, for that position of
  /// the sequence. NaN counts as -inf.
  /// Errors   InvalidArgument if there are no logits, or none is a number above -inf
  std::int32_t draw(std::span<const double> logits, std::int64_t position) const;

 private:
  SamplerOptions options_;
  std::uint64_t sequence_;
};

}  // namespace tilewright::model
