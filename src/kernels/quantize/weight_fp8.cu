// targets: sm_90a sm_100f
//
// Weights to FP8 with a scale per 128 x 128 block: a CTA holds a block in registers.
//
//   thread = 16 columns of the rows r, r + 32, r + 64, r + 96; 8 lanes = 128 columns
//     load 4 x 16 numbers | amax: pairs, warp, shared memory | scale | quotients | 4 stores of 16 B
//
// Limit: memory, 3 bytes an element from bf16: 0.70 ps at 4.3 TB/s, 7168 x 7168 in 36 us. Between a
// block's loads and its stores a CTA waits once; 4 or more CTAs on an SM cover that.
// Measured: see docs/04-kernels.md, "Quantise".
// Sources: DeepGEMM (rule); see formats/block_format.h.
#include "kernels/quantize/quantize_rows.h"
#include "kernels/quantize/weight_fp8.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kLanesPerRow = kFp8TileExtent / kQuantizeChunk;
constexpr int kRowStep = kQuantizeThreads / kLanesPerRow;
constexpr int kChunks = kFp8TileExtent / kRowStep;

__device__ std::uint32_t max_of_cta(std::uint32_t x) {
  __shared__ std::uint32_t of_warps[kQuantizeThreads / 32];
  x = __reduce_max_sync(~0u, x);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  return __reduce_max_sync(~0u, of_warps[threadIdx.x % (kQuantizeThreads / 32)]);
}

__device__ void store_scale(const QuantizeParams& params, const tile::Fp8Scale& scale) {
  if (threadIdx.x != 0) return;
  const std::int64_t at =
      blockIdx.y * params.scale_row_stride + blockIdx.x * params.scale_block_stride;
  const bool is_inside = blockIdx.y * kFp8TileExtent < static_cast<std::uint32_t>(params.rows) &&
                         blockIdx.x * kFp8TileExtent < static_cast<std::uint32_t>(params.cols);
  const std::uint32_t stored = is_inside ? scale.stored : 0;
  if (params.is_pow2 != 0) {
    static_cast<unsigned char*>(params.scales)[at] = static_cast<unsigned char>(stored);
  } else {
    static_cast<std::uint32_t*>(params.scales)[at] = stored;
  }
}

template <class Load>
__device__ void quantize_fp8_tile(const QuantizeParams& params) {
  const auto col = static_cast<std::int32_t>(blockIdx.x * kFp8TileExtent +
                                             threadIdx.x % kLanesPerRow * kQuantizeChunk);
  const auto row =
      static_cast<std::int32_t>(blockIdx.y * kFp8TileExtent + threadIdx.x / kLanesPerRow);
  tile::Chunk<Load> chunks[kChunks];
  ptx::griddepcontrol_wait();
#pragma unroll
  for (int i = 0; i < kChunks; ++i) tile::load_chunk(chunks[i], params, row + i * kRowStep, col);
  ptx::griddepcontrol_launch_dependents();
  std::uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) amax = max(amax, chunks[i].amax_bits());
  const tile::Fp8Scale scale(params, max_of_cta(amax));
  const bool is_operand = params.code_order == CodeOrder::kOperand;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    uint4 codes = tile::fp8_codes(chunks[i], scale, is_operand);
    if (is_operand) codes = tile::transpose_in_quad(codes);
    auto* const to = static_cast<unsigned char*>(params.codes) +
                     (row + i * kRowStep) * params.code_stride_bytes + col;
    *reinterpret_cast<uint4*>(to) = codes;
  }
  store_scale(params, scale);
}

}  // namespace
#define TILEWRIGHT_ENTRY(NAME, LOAD)                                                               \
  TILEWRIGHT_KERNEL(quantize_fp8_tile_##NAME, QuantizeParams, __launch_bounds__(kQuantizeThreads), \
                    quantize_fp8_tile<tile::LOAD>)
TILEWRIGHT_ENTRY(bf16, LoadBf16)
TILEWRIGHT_ENTRY(f16, LoadF16)
TILEWRIGHT_ENTRY(f32, LoadF32)

}  // namespace tilewright::kernels
