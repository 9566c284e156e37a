// targets: sm_90a sm_100f
//
// Activations to FP8: a pass over memory that finds each block's largest magnitude and quantises.
//
//   quantize_fp8_block   thread = 16 neighbours;  2, 4 or 8 lanes = a block of 32, 64 or 128
//     load 2 x 16 B | amax of pairs | shuffles | scale, its reciprocal | 16 quotients | store 16 B
//   quantize_fp8_token   CTA = row; a thread holds its first two chunks of 16, reads others again
//     load .. amax | shuffles, shared memory | scale | quotients | store
//
// Limit: memory. bf16 to e4m3 moves 2 + 1 + 4/128 bytes an element, 3.03; fp32 5.03: at the 4.3
// TB/s of a copy 0.70 and 1.17 ps an element, 7168 x 8192 bf16 in 41 us. Of instructions an element
// has 1 to unpack, 0.5 for the amax, 5 for a quotient rounded as a division is, 0.75 to convert and
// pack, about 9 in all where 29.6 T lane-instructions a second allow 20.
// Operand order costs a 4 x 4 transposition of words among four lanes, 0.75 instructions an
// element, so that stores stay 16 bytes wide.
// Measured: see docs/04-kernels.md, "Quantise".
// Sources: the official DeepSeek-V4 inference code (rules); Markstein's theorem (the quotient).
#include "kernels/quantize/activation_fp8.h"
#include "kernels/quantize/quantize_rows.h"
#include "ptx/grid_dependency.h"
#include "tile/cta_max.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Four lanes' 64 bytes, or this lane's 16.
__device__ void store_codes(const QuantizeParams& params, std::int32_t row, std::int32_t col,
                            uint4 codes, bool is_stored) {
  if (params.code_order == CodeOrder::kOperand) codes = tile::transpose_in_quad(codes);
  if (!is_stored) return;
  auto* const to = static_cast<unsigned char*>(params.codes) + row * params.code_stride_bytes + col;
  *reinterpret_cast<uint4*>(to) = codes;
}

// Blocks that begin outside the numbers have a scale of 0.
__device__ void store_scale(const QuantizeParams& params, std::int32_t row, std::int32_t block,
                            std::int32_t num_blocks, const tile::Fp8Scale& scale) {
  const bool is_inside = row < params.rows && block * params.block_cols < params.cols;
  const std::uint32_t stored = is_inside ? scale.stored : 0;
  const std::int64_t at = tile::scale_index(params, row, block, num_blocks);
  if (params.is_pow2 != 0) {
    static_cast<unsigned char*>(params.scales)[at] = static_cast<unsigned char>(stored);
  } else {
    static_cast<std::uint32_t*>(params.scales)[at] = stored;
  }
}

template <class Load>
__device__ void quantize_blocks(const QuantizeParams& params) {
  const auto chunks_per_row = static_cast<std::uint32_t>(params.out_cols / kQuantizeChunk);
  const std::uint32_t idx = blockIdx.x * kQuantizeThreads + threadIdx.x;
  const auto row = static_cast<std::int32_t>(idx / chunks_per_row);
  const auto col = static_cast<std::int32_t>(idx % chunks_per_row) * kQuantizeChunk;
  const bool is_inside = row < params.out_rows;
  tile::Chunk<Load> chunk;
  ptx::griddepcontrol_wait();
  tile::load_chunk(chunk, params, row, col);
  ptx::griddepcontrol_launch_dependents();
  std::uint32_t amax = chunk.amax_bits();
  for (int lanes = params.block_cols / kQuantizeChunk / 2; lanes > 0; lanes /= 2)
    amax = max(amax, __shfl_xor_sync(~0u, amax, lanes));
  const tile::Fp8Scale scale(params, amax);
  const uint4 codes = tile::fp8_codes(chunk, scale, params.code_order == CodeOrder::kOperand);
  store_codes(params, row, col, codes, is_inside);
  if (is_inside && col % params.block_cols == 0)
    store_scale(params, row, col / params.block_cols, params.out_cols / params.block_cols, scale);
}

template <class Load>
__device__ void quantize_token(const QuantizeParams& params) {
  constexpr int kHeld = 2;
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  const auto step = static_cast<std::int32_t>(blockDim.x * kQuantizeChunk);
  const auto begin = static_cast<std::int32_t>(threadIdx.x * kQuantizeChunk);
  tile::Chunk<Load> held[kHeld];
  ptx::griddepcontrol_wait();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) tile::load_chunk(held[i], params, row, begin + i * step);
  std::uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) amax = max(amax, held[i].amax_bits());
  for (std::int32_t col = begin + kHeld * step; col < params.cols; col += step) {
    tile::Chunk<Load> chunk;
    tile::load_chunk(chunk, params, row, col);
    amax = max(amax, chunk.amax_bits());
  }
  ptx::griddepcontrol_launch_dependents();
  const tile::Fp8Scale scale(params, tile::max_of_cta<kFp8TokenMaxThreads>(amax));
  const bool is_operand = params.code_order == CodeOrder::kOperand;
  // Whole warps: four lanes exchange words, and rows are whole blocks of four lanes.
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const std::int32_t warp_begin = begin - lane * kQuantizeChunk;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const std::int32_t col = begin + i * step;
    if (warp_begin + i * step >= params.out_cols) break;
    store_codes(params, row, col, tile::fp8_codes(held[i], scale, is_operand),
                col < params.out_cols);
  }
  for (std::int32_t i = kHeld; warp_begin + i * step < params.out_cols; ++i) {
    const std::int32_t col = begin + i * step;
    tile::Chunk<Load> chunk;
    tile::load_chunk(chunk, params, row, col);
    store_codes(params, row, col, tile::fp8_codes(chunk, scale, is_operand), col < params.out_cols);
  }
  if (threadIdx.x == 0) store_scale(params, row, 0, 1, scale);
}

}  // namespace
#define TILEWRIGHT_ENTRIES(NAME, LOAD)                                                \
  TILEWRIGHT_KERNEL(quantize_fp8_block_##NAME, QuantizeParams,                        \
                    __launch_bounds__(kQuantizeThreads), quantize_blocks<tile::LOAD>) \
  TILEWRIGHT_KERNEL(quantize_fp8_token_##NAME, QuantizeParams,                        \
                    __launch_bounds__(kFp8TokenMaxThreads), quantize_token<tile::LOAD>)
TILEWRIGHT_ENTRIES(bf16, LoadBf16)
TILEWRIGHT_ENTRIES(f16, LoadF16)
TILEWRIGHT_ENTRIES(f32, LoadF32)

}  // namespace tilewright::kernels
