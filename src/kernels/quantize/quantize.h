// What the quantising kernels share: one set of parameters. Every kernel reads a matrix of bf16,
// fp16 or fp32 numbers once (NVFP4 with its own amax: once or twice) and writes codes and block
// scales, byte for byte as formats/block_scale.h defines them.
#pragma once

#include "formats/scale_choice.h"

#include <cstdint>

namespace tilewright::kernels {

/// Order of the codes inside a row.
enum class CodeOrder : std::int32_t {
  kPlain,    ///< element k at k
  kOperand,  ///< e4m3 only: inside each 64, byte p holds element operand_order(p) of
             ///< formats/packed_weight.h, as sm90_wide_e4m3
             ///< reads its activations
};

/// Order of one-byte scales.
enum class ScaleOrder : std::int32_t {
  kStrided,  ///< by scale_row_stride and scale_block_stride
  k128x4,    ///< tiles of 128 rows x 4 blocks (formats/scale_layout.h), padding zero
};

struct QuantizeParams {
  const void* in;  ///< rows of `cols` numbers, in_stride elements apart
  const std::int32_t*
      row_index;              ///< [rows] row r of the result is row row_index[r] of `in`, a row of
                              ///< zeros where negative; null: row r itself
  void* codes;                ///< [out_rows, out_cols], rows code_stride_bytes apart
  void* scales;               ///< fp32 or bytes
  const float* encode_scale;  ///< NVFP4: G on the device; null: encode_scale_value, or found
  float* tensor_scale;        ///< NVFP4: where 1 / G goes; null: nowhere
  float* partial_amax;        ///< NVFP4 that finds its amax: a word per CTA
  std::int64_t in_stride;     ///< elements
  std::int64_t code_stride_bytes;   ///< a multiple of 16 (8 for 4-bit codes)
  std::int64_t scale_row_stride;    ///< scales
  std::int64_t scale_block_stride;  ///< scales
  std::int32_t rows, cols;          ///< of numbers
  /// Of the result. Columns: whole blocks and a multiple of kQuantizeChunk (e4m3: of 128; operand
  /// order: of 64). What lies outside the numbers is zero codes; blocks wholly outside have scale
  /// 0.
  std::int32_t out_rows, out_cols;
  std::int32_t block_cols;     ///< FP8 rows: 32, 64 or 128
  std::int32_t is_in_aligned;  ///< `in` and its rows are 16-byte aligned: vector loads
  std::int32_t is_pow2;        ///< FP8: scales are ue8m0 bytes, the power of two above
  std::int32_t is_floor;       ///< ue8m0: the OCP rule, the power of two below
  float encode_scale_value;    ///< NVFP4: G
  float min_amax;              ///< a block's amax is raised to it
  ScaleOrder scale_order;
  CodeOrder code_order;
  ScaleChoice scale_choice;  ///< NVFP4
};

inline constexpr int kQuantizeThreads = 256;  ///< of a CTA, but for the kernel per token
inline constexpr int kQuantizeChunk = 16;     ///< neighbouring elements of a thread

/// Smallest amax of the FP8 formats of formats/block_format.h: no scale of 0.
inline constexpr float kFp8MinAmax = 1e-4f;

}  // namespace tilewright::kernels
