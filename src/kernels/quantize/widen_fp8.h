// Contract of what makes rows of e4m3 with scales into bf16, for kernels that read no e4m3.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// out[i, c] = bf16(code(i, c) * scales[i * scale_row_stride + c / 128 * scale_block_stride]),
/// rounded once: exact if the scale is a power of two. Codes in operand order
/// (formats/packed_weight.h), rows of whole blocks of 64. A NaN of a scale goes to all of its
/// elements.
///
/// Entry widen_fp8; a thread for 16 columns, ceil(rows * pieces / kWidenFp8Threads) CTAs.
struct WidenFp8Params {
  const std::uint8_t* codes;  ///< rows 16-byte aligned
  const float* scales;
  std::uint16_t* out;  ///< bf16 [rows, columns], contiguous, 16-byte aligned
  std::int64_t code_stride_bytes;
  std::int64_t scale_row_stride, scale_block_stride;  ///< elements
  std::int32_t rows, columns;                         ///< columns a multiple of 16
  std::int32_t pieces;                                ///< of a row: columns / 16, rounded up to 4
};

inline constexpr int kWidenFp8Threads = 128;

}  // namespace tilewright::kernels
