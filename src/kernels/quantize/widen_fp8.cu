// targets: sm_100f
//
// Limit: HBM, or L2 where the next kernel reads the rows at once: 3 bytes an element.
#include "kernels/quantize/quantize_rows.h"
#include "kernels/quantize/widen_fp8.h"
#include "ptx/convert_fp8.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

#include <cuda_bf16.h>

namespace tilewright::kernels {
namespace {

// Two codes of the lower or upper half of a word.
__device__ std::uint32_t widen(std::uint32_t word, bool is_upper, float scale) {
  const auto codes = static_cast<std::uint16_t>(is_upper ? word >> 16 : word);
  const std::uint32_t bits = ptx::cvt_rn_f16x2_e4m3x2(codes);
  const float2 pair = __half22float2(reinterpret_cast<const __half2&>(bits));
  const __nv_bfloat162 out = __floats2bfloat162_rn(pair.x * scale, pair.y * scale);
  return reinterpret_cast<const std::uint32_t&>(out);
}

__device__ void widen_rows(const WidenFp8Params& params) {
  const std::int64_t index = std::int64_t{blockIdx.x} * kWidenFp8Threads + threadIdx.x;
  const auto row = static_cast<std::int32_t>(index / params.pieces);
  const auto column = static_cast<std::int32_t>(index % params.pieces) * 16;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  // Four lanes have a block of 64, all of it in one row.
  uint4 words = make_uint4(0, 0, 0, 0);
  if (row < params.rows)
    words = *reinterpret_cast<const uint4*>(params.codes + row * params.code_stride_bytes + column);
  words = tile::transpose_in_quad(words);
  if (row >= params.rows || column >= params.columns) return;
  const float scale =
      params.scales[row * params.scale_row_stride + column / 128 * params.scale_block_stride];
  auto* const to =
      reinterpret_cast<uint4*>(params.out + std::int64_t{row} * params.columns + column);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool is_upper = half != 0;
    to[half] = make_uint4(widen(words.x, is_upper, scale), widen(words.y, is_upper, scale),
                          widen(words.z, is_upper, scale), widen(words.w, is_upper, scale));
  }
}

}  // namespace
TILEWRIGHT_KERNEL(widen_fp8, WidenFp8Params, __launch_bounds__(kWidenFp8Threads), widen_rows)

}  // namespace tilewright::kernels
