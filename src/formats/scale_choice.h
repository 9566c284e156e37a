// The block scales between which an NVFP4 quantiser chooses.
#pragma once

#include <cstdint>

namespace tilewright {

/// Which block scales an NVFP4 quantiser takes; the other formats know kNearest alone.
enum class ScaleChoice : std::int32_t {
  kNearest,  ///< the ue4m3 nearest to the ideal scale, which puts amax on 6
  /// Tries amax on 6 and on 4 (stretch = 1.5) and keeps what has the smaller squared error, 6 on a
  /// tie. A stretched scale above 448 saturates, so that blocks near the tensor's amax keep 6.
  /// Source: Cook et al., "Four Over Six"; Transformer Engine. The latter computes amax / 6 * G in
  /// this mode and sums errors in fp32; here the scale for 6 is the same as without the option and
  /// sums are fp64, so that the option never makes a block worse.
  kFourOverSix,
  /// Only {1, 1.25, 1.5} * 2^e, whose products with every e2m1 number are exact in e4m3: the
  /// nearer of the two around the ideal scale, the larger on a tie. A GEMM with FP8 activations
  /// then rounds no weight.
  kExactNearest,
  kExactBest,  ///< the same, of the two the one with the smaller squared error, the larger on a tie
};

constexpr bool is_exact(ScaleChoice choice) {
  return choice == ScaleChoice::kExactNearest || choice == ScaleChoice::kExactBest;
}

/// The largest scale that a choice can take, 448 or 384, as a ue4m3 code.
constexpr std::uint32_t top_scale_code(ScaleChoice choice) {
  return is_exact(choice) ? 0x7c : 0x7e;
}

/// The ue4m3 codes of {1, 1.25, 1.5} * 2^e, and 0: the largest not above `code`, and the one after
/// an exact code.
constexpr std::uint32_t exact_scale_at_most(std::uint32_t code) {
  if (code < 8) return code < 6 ? code : 6;  // subnormal: n * 2^-9
  const std::uint32_t mantissa = code & 7;
  return (code & ~7u) + (mantissa < 4 ? mantissa & 2 : 4);
}
constexpr std::uint32_t exact_scale_after(std::uint32_t code) {
  if (code >= top_scale_code(ScaleChoice::kExactBest)) return code;
  if (code < 6) return code + 1;
  return (code & 7) == 6 ? 8 : code + ((code & 7) == 4 ? 4 : 2);
}

}  // namespace tilewright
