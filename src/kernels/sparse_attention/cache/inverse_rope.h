// Contract of the inverse rotation of attention's output, alone or with its quantisation to FP8.
#pragma once

#include "kernels/quantize/quantize.h"

#include <cstdint>

namespace tilewright::kernels {

/// out[t,h,448:512] rotated by -positions[t] (pairs (2i, 2i+1), fp32, rounded to bf16), in place.
/// A position < 0 leaves the row as it is; one beyond the table makes the rotated part NaN.
///
/// With codes: the rotated row, rounded to bf16, as e4m3 with a scale for each 128 columns of
/// [tokens, heads * 512], the bytes of format fp8_1x128 or fp8_1x128_ue8m0; out is not written.
struct InverseRopeParams {
  std::uint16_t* out;                      ///< bf16 [tokens, heads, 512], 16-byte aligned rows
  const std::int32_t* positions;           ///< [tokens]
  const float* rope;                       ///< [num_positions, 64]: 32 cosines, 32 sines
  std::uint8_t* codes;                     ///< [tokens, heads * 512]
  void* scales;                            ///< fp32, or ue8m0 bytes with is_pow2
  std::int64_t token_stride, head_stride;  ///< of out, elements; multiples of 8
  std::int64_t code_stride;                ///< bytes; a multiple of 16
  std::int64_t scale_token_stride, scale_block_stride;  ///< scales
  std::int32_t tokens, heads, num_positions;
  std::int32_t is_pow2;
  CodeOrder code_order;
};

inline constexpr int kInverseRopeThreads = 256;
/// Rows (token, head), fewer than 2^31 in all, of a CTA: entry inverse_rope has four lanes for
/// each, inverse_rope_fp8 a warp.
inline constexpr int kInverseRopeRows = kInverseRopeThreads / 4;
inline constexpr int kInverseRopeFp8Rows = kInverseRopeThreads / 32;

}  // namespace tilewright::kernels
