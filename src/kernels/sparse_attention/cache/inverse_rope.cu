// targets: sm_90a sm_100f
//
// Attention's values carry the rotation of their keys: it is taken out of the sum at the query's
// position.
//
//   inverse_rope      4 lanes = the 64 rotated numbers of a (token, head)
//                     load 32 B | rotate | store
//   inverse_rope_fp8  warp = a row of 512, lane = 16 neighbours, 8 lanes = a block of 128
//                     load 32 B | lanes 28..31 rotate, bf16 | amax, 3 shuffles | 16 quotients
//                     | 16 B of codes
//
// Limit: memory. Alone 256 bytes of a row's 1024, with FP8 1024 read and 528 written: 256 tokens of
// 64 heads are 4.2 MB (1 us) and 25.4 MB (5.9 us at 4.3 TB/s); after attention they are in L2.
// Measured on an H200: 2.5 and 10.7 us; 4096 tokens 93 and 76 % of a copy; docs/06-deepseek-v4.md.
// Source: the official DeepSeek-V4 inference code; the quantiser is that of kernels/quantize.
#include "kernels/sparse_attention/cache/inverse_rope.h"
#include "kernels/sparse_attention/cache_row.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Sixteen rotated numbers of a row, `part` of four.
__device__ tile::RowChunk unrotate(const InverseRopeParams& params, const tile::RowChunk& chunk,
                                   std::int32_t position, int part) {
  if (position < 0) return chunk;
  float x[tile::kRowElems];
  if (position < params.num_positions) {
    tile::to_f32(x, chunk);
    const float* const angles = params.rope + std::int64_t{position} * kKvRopeDims;
    tile::rotate_pairs(x, angles, part * (tile::kRowElems / 2), -1);
  } else {
#pragma unroll
    for (float& value : x) value = __uint_as_float(0x7fc00000u);
  }
  return tile::to_bf16(x);
}

__device__ void rotate_back(const InverseRopeParams& params, std::int32_t row, int part) {
  if (row >= params.tokens * params.heads) return;
  const std::int32_t token = row / params.heads, head = row - token * params.heads;
  const std::int32_t position = params.positions[token];
  if (position < 0) return;
  std::uint16_t* const at = params.out + token * params.token_stride + head * params.head_stride +
                            kKvPlainDims + part * tile::kRowElems;
  tile::store_row_chunk(at, unrotate(params, tile::load_row_chunk(at), position, part));
}

__device__ void rotate_and_quantize(const InverseRopeParams& params, std::int32_t row, int lane) {
  if (row >= params.tokens * params.heads) return;
  const std::int32_t token = row / params.heads, head = row - token * params.heads;
  tile::RowChunk chunk = tile::load_row_chunk(params.out + token * params.token_stride +
                                              head * params.head_stride + lane * tile::kRowElems);
  if (lane >= tile::kRopeLane)
    chunk = unrotate(params, chunk, params.positions[token], lane - tile::kRopeLane);
  std::uint32_t amax = chunk.amax_bits();
#pragma unroll
  for (int lanes = 4; lanes > 0; lanes /= 2) amax = max(amax, __shfl_xor_sync(~0u, amax, lanes));
  QuantizeParams rule = {};
  rule.is_pow2 = params.is_pow2;
  rule.min_amax = kFp8MinAmax;
  const tile::Fp8Scale scale(rule, amax);
  const bool is_operand = params.code_order == CodeOrder::kOperand;
  uint4 codes = tile::fp8_codes(chunk, scale, is_operand);
  if (is_operand) codes = tile::transpose_in_quad(codes);
  std::uint8_t* const to = params.codes + token * params.code_stride + head * kKvDims;
  reinterpret_cast<uint4*>(to)[lane] = codes;
  if (lane % 8 != 0) return;
  const std::int32_t block = head * 4 + lane / 8;
  const std::int64_t at = token * params.scale_token_stride + block * params.scale_block_stride;
  if (params.is_pow2 != 0) {
    static_cast<std::uint8_t*>(params.scales)[at] = static_cast<std::uint8_t>(scale.stored);
  } else {
    static_cast<std::uint32_t*>(params.scales)[at] = scale.stored;
  }
}

__device__ void rotate_rows(const InverseRopeParams& params) {
  const auto row = static_cast<std::int32_t>(blockIdx.x * kInverseRopeRows + threadIdx.x / 4);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  rotate_back(params, row, static_cast<int>(threadIdx.x % 4));
}

__device__ void rotate_and_quantize_rows(const InverseRopeParams& params) {
  const auto row = static_cast<std::int32_t>(blockIdx.x * kInverseRopeFp8Rows + threadIdx.x / 32);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  rotate_and_quantize(params, row, static_cast<int>(threadIdx.x % 32));
}

}  // namespace

TILEWRIGHT_KERNEL(inverse_rope, InverseRopeParams, __launch_bounds__(kInverseRopeThreads),
                  rotate_rows)
TILEWRIGHT_KERNEL(inverse_rope_fp8, InverseRopeParams, __launch_bounds__(kInverseRopeThreads),
                  rotate_and_quantize_rows)

}  // namespace tilewright::kernels
