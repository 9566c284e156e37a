// Contract of the FP8 quantiser of weights: e4m3 codes with a scale per 128 x 128 block, fp32
// (format fp8_128x128) or ue8m0 (fp8_128x128_ue8m0).
//
//   quantize_fp8_tile_{bf16,f16,f32}    a CTA of kQuantizeThreads per block
//
// out_rows and out_cols are multiples of 128; a scale's row is a block of rows. code_order applies.
#pragma once

#include "kernels/quantize/quantize.h"

namespace tilewright::kernels {

inline constexpr int kFp8TileExtent = 128;

/// Grid: x blocks along the columns, y along the rows.
constexpr std::int64_t fp8_tiles(std::int64_t extent) {
  return extent / kFp8TileExtent;
}

}  // namespace tilewright::kernels
