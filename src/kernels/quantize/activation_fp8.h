// Contract of the FP8 quantisers of activations: e4m3 codes with a scale per 1 x 128 block (also
// 1 x 64, 1 x 32) or per row.
//
//   quantize_fp8_block_{bf16,f16,f32}   formats fp8_1x128, fp8_1x128_ue8m0, fp8_64_pow2,
//   mxfp8(_ceil) quantize_fp8_token_{bf16,f16,f32}   the same rules with one block as wide as the
//   row
//
// Launched plainly or as a dependent launch: nothing is read or written before griddepcontrol.wait.
// A block that holds a NaN or an infinity gets a NaN scale and zero codes; others are not touched.
//
// A typical call, W4A8 activations: block_cols = 128, is_pow2 = 0, min_amax = kFp8MinAmax,
// out_cols = cols rounded up to 128, code_order = kOperand, scales fp32 with
// scale_row_stride = 1, scale_block_stride = out_rows (one K block's scales are neighbours).
#pragma once

#include "kernels/quantize/quantize.h"

namespace tilewright::kernels {

/// Grid of quantize_fp8_block_*, in CTAs of kQuantizeThreads. out_cols a multiple of 32, of 64 in
/// operand order, and of block_cols. At most 2^31 - 1 chunks.
constexpr std::uint32_t fp8_block_ctas(std::int64_t out_rows, std::int64_t out_cols) {
  const std::int64_t chunks = out_rows * (out_cols / kQuantizeChunk);
  return static_cast<std::uint32_t>((chunks + kQuantizeThreads - 1) / kQuantizeThreads);
}

inline constexpr int kFp8TokenMaxThreads = 512;

/// Threads of a CTA of quantize_fp8_token_*; the grid is out_rows CTAs. out_cols a multiple of 64.
constexpr std::uint32_t fp8_token_threads(std::int64_t out_cols) {
  const std::int64_t chunks = out_cols / kQuantizeChunk;
  const std::int64_t warps = ((chunks > 128 ? (chunks + 1) / 2 : chunks) + 31) / 32;
  const std::int64_t most = kFp8TokenMaxThreads / 32;
  return static_cast<std::uint32_t>(32 * (warps < 1 ? 1 : warps > most ? most : warps));
}

}  // namespace tilewright::kernels
