// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <span>

namespace tilewright::model {

struct SamplerOptions {
  double temperature = 0;  ///< 0: the largest logit; the lowest token of equal ones
  std::int64_t top_k = 0;  ///< only so many of the likeliest tokens; 0: all
  double top_p = 1;        ///< of these the likeliest whose probabilities reach this sum
  std::uint64_t seed = 0;
};

/// The sampler of one sequence: the same seed and logits give the same tokens on every platform.
///
/// Thread   one call at a time
class Sampler {
 public:
  /// `sequence` makes sequences with one seed differ.
  /// Errors   InvalidArgument unless temperature >= 0, top_k >= 0 and 0 < top_p <= 1
  explicit Sampler(const SamplerOptions& options, std::uint64_t sequence = 0);

  /// A token of softmax(logits / temperature), cut to top_k, then to top_p. NaN counts as -inf.
  /// Errors   InvalidArgument if there are no logits, or none is a number above -inf
  std::int32_t next(std::span<const double> logits);

 private:
  SamplerOptions options_;
  std::uint64_t state_;
};

}  // namespace tilewright::model
