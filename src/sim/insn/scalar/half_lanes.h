// Rows of 16-bit floats: widened to f32, computed, rounded back. Pairs (f16x2) are 64 halves in a
// row, two per lane.
#pragma once

#include "sim/insn/lanes.h"
#include "sim/insn/scalar/float_ops.h"

#include <bit>
#include <cstdint>
#include <limits>

#include <immintrin.h>

namespace tilewright::sim {

inline constexpr std::uint16_t kNanHalf = 0x7fff;  ///< of f16 and of bf16

namespace half {

/// f32 to the nearest bf16, NaN to the canonical one.
inline std::uint16_t to_bf16(float x) {
  const std::uint32_t word = floating::bits(x);
  const std::uint32_t rounded = word + 0x7fff + ((word >> 16) & 1);
  const bool is_nan = (word & 0x7fffffff) > 0x7f800000;
  return static_cast<std::uint16_t>(is_nan ? kNanHalf : rounded >> 16);
}
inline float from_bf16(std::uint16_t x) {
  return floating::from_bits(static_cast<std::uint32_t>(x) << 16);
}

struct F16 {
  static void widen(const std::uint16_t* from, float* to, int count) {
    for (int i = 0; i < count; i += 8) {
      const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(codes));
    }
  }
  /// Immediate rounding control of the host: 0 nearest even, 3 toward zero.
  template <int kMode = _MM_FROUND_TO_NEAREST_INT>
  static void narrow(const float* from, std::uint16_t* to, int count) {
    for (int i = 0; i < count; i += 8) {
      const __m256 values = _mm256_loadu_ps(from + i);
      const __m256 is_nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
      const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kNanF32)));
      const __m128i codes =
          _mm256_cvtps_ph(_mm256_blendv_ps(values, nan, is_nan), kMode | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), codes);
    }
  }
  static std::uint16_t flush(std::uint16_t x) {
    return static_cast<std::uint16_t>((x & 0x7c00) == 0 ? x & 0x8000 : x);
  }
  static constexpr std::uint16_t kOne = 0x3c00;
  static constexpr std::uint16_t kInfinity = 0x7c00;
};

struct Bf16 {
  static void widen(const std::uint16_t* from, float* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
  }
  static void narrow(const float* from, std::uint16_t* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
  }
  static std::uint16_t flush(std::uint16_t x) {
    return static_cast<std::uint16_t>((x & 0x7f80) == 0 ? x & 0x8000 : x);
  }
  static constexpr std::uint16_t kOne = 0x3f80;
  static constexpr std::uint16_t kInfinity = 0x7f80;
};

/// s + error cut to 16 significant bits, the last of which is set if anything was cut off (rounding
/// to odd). A later rounding to f16 or bf16 is then the only one that counts, and down to the
/// smallest bf16 the 16 bits fit a float. `error` is what is missing in s, exactly or by its sign.
/// Integers of one width throughout, so that it vectorises.
inline float to_odd(double s, double error) {
  constexpr std::uint64_t kCut = (std::uint64_t{1} << 37) - 1;
  const std::uint64_t is_inexact = error != 0 ? 1 : 0;
  const std::uint64_t word = floating::bits(s);
  const std::uint64_t opposes = ((word ^ floating::bits(error)) >> 63) & is_inexact;
  const std::uint64_t below = word - opposes;
  const std::uint64_t cut = (below & kCut) != 0 ? 1 : 0;
  return static_cast<float>(floating::from_bits((below & ~kCut) | (cut | is_inexact) << 37));
}

/// a * b + c with the error of the sum, for factors of at most 26 bits: exact in double.
inline float fma_to_odd(float a, float b, float c) {
  const double p = static_cast<double>(a) * static_cast<double>(b);
  const double q = static_cast<double>(c);
  const double s = p + q;
  const double t = s - p;
  const double error = (p - (s - t)) + (q - t);
  return to_odd(s, error == error ? error : 0.0);
}

}  // namespace half

/// op[0] = kOp(op[1], ...) in f32 on kCount halves per row; kOp sees and gives floats.
/// kFinish is applied to every code that results: flushing, .sat, .relu.
template <class Format, int kCount, auto kOp, auto kFinish>
Step half_lanes(Warp& warp, const Insn& insn, std::uint32_t active) {
  using Lane = std::conditional_t<kCount == kLanes, std::uint16_t, std::uint32_t>;
  using Loop = LoopOf<kOp>;
  constexpr std::size_t kSources = std::tuple_size_v<typename Loop::Sources>;
  alignas(64) float inputs[kSources][kCount];
  alignas(64) float values[kCount];
  alignas(64) std::uint16_t codes[kCount];
  for (std::size_t i = 0; i < kSources; ++i) {
    Format::widen(warp.row<std::uint16_t>(insn.op[i + 1]), inputs[i], kCount);
  }
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kSources == 1) values[i] = kOp(inputs[0][i]);
    if constexpr (kSources == 2) values[i] = kOp(inputs[0][i], inputs[1][i]);
    if constexpr (kSources == 3) values[i] = kOp(inputs[0][i], inputs[1][i], inputs[2][i]);
  }
  Format::narrow(values, codes, kCount);
  for (int i = 0; i < kCount; ++i) codes[i] = kFinish(codes[i]);
  Lane* const d = warp.row<Lane>(insn.op[0]);
  if (active == kAllLanes) {
    std::memcpy(d, codes, sizeof codes);
  } else {
    blend(d, reinterpret_cast<const Lane*>(codes), active);
  }
  return Step::kNext;
}

}  // namespace tilewright::sim
