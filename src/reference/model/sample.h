// Float64 reference of sampling, and of the random bits that it takes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Philox4x32-10.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

struct SampleOptions {
  double temperature = 0;
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1, min_p = 0;
};

/// What a token is drawn with: everything that its noise depends on, but the token.
struct SampleSeed {
  std::uint64_t seed = 0, sequence = 0;
  std::int64_t position = 0;
};

/// The tokens that may be drawn, the likeliest first; of temperature 0 one.
///
/// Definition   tilewright/sample.h. NaN counts as -inf
/// Errors       InvalidArgument if there are no logits, or none is finite, or one is +inf
std::vector<std::int32_t> sample_candidates(std::span<const double> logits,
                                            const SampleOptions& options);
/// The token that is drawn. Errors   as sample_candidates()
std::int32_t sample(std::span<const double> logits, const SampleOptions& options,
                    const SampleSeed& seed);
/// ln softmax(logits)[token]
double sample_log_prob(std::span<const double> logits, std::int32_t token);

}  // namespace tilewright::reference
