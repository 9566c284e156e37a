// Float64 reference of rotary position embedding with interleaved pairs, and of YaRN frequencies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// f[i] = theta^(-2 i / rotary_dim), i < rotary_dim / 2, in radians per position.
/// Errors   InvalidArgument if rotary_dim is odd or negative, or theta is not > 1
std::vector<double> rope_frequencies(int64_t rotary_dim, double theta);

/// Context extension of YaRN. The defaults are those of DeepSeek-V4 (theta 160000, rotary_dim 64).
struct YarnParams {
  double factor = 16;               ///< by how much the context grows
  double original_max_pos = 65536;  ///< context length of the unextended model
  double beta_fast = 32;            ///< turns over that context from which f stays as it is
  double beta_slow = 1;             ///< turns up to which f is divided by factor
};

/// f[i] = plain[i] * (1 - ramp_i) + plain[i] / factor * ramp_i
/// plain = rope_frequencies(rotary_dim, theta),  ramp_i = clamp((i - low) / (high - low), 0, 1),
/// low = max(floor(pair(beta_fast)), 0),  high = min(ceil(pair(beta_slow)), rotary_dim - 1),
/// pair(n) = rotary_dim * ln(original_max_pos / (2 pi n)) / (2 ln theta), the index of the pair
/// that makes n turns over the original context. For low = high the ramp is a step after that pair.
/// No amplitude factor: DeepSeek-V4 rotates with unit magnitude.
/// Errors   as rope_frequencies(); also if a parameter is not > 0, or low > high
/// Source   YaRN, arXiv 2309.00071; DeepSeek-V4 reference model
std::vector<double> yarn_frequencies(int64_t rotary_dim, double theta, const YarnParams& yarn = {});

enum class RopeDirection { kForward, kInverse };

struct RopeParams {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;  ///< the LAST rotary_dim elements of a head are rotated; even
  RopeDirection direction = RopeDirection::kForward;
};

/// Rotates element pairs (2i, 2i+1) of the rotated part by a = +-positions[t] * frequencies[i]:
/// out[2i] = x[2i] cos a - x[2i+1] sin a,  out[2i+1] = x[2i] sin a + x[2i+1] cos a
/// Shapes   x, out [tokens, heads, head_dim]; positions [tokens]; frequencies [rotary_dim / 2]
/// Layout   contiguous; the first head_dim - rotary_dim elements of a head are copied
/// Units    frequencies in radians per position; inverse is the rotation by -a
/// Accuracy the angle is rounded once, to 2^-53 * |a|: 1e-10 rad at position 1e6
/// Errors   InvalidArgument if an array does not have its shape or rotary_dim is odd or > head_dim
/// Thread   safe
/// Source   RoFormer, arXiv 2104.09864, with the pairing of DeepSeek-V4 and GPT-J
std::vector<double> rope(const RopeParams& params, std::span<const double> x,
                         std::span<const int32_t> positions, std::span<const double> frequencies);

}  // namespace tilewright::reference
