// targets: sm_90a
//
// Weights and activations to NVFP4 and MXFP4.
//
//   quantize_nvfp4, quantize_mxfp4      thread = 16 neighbours: an NVFP4 block, or half of an MXFP4
//     load 2 x 16 B | amax of pairs | (shuffle) | scale, factor | 16 codes | store 8 B and a byte
//   quantize_nvfp4_amax                 as many CTAs as fit, each with its share of the chunks
//     all chunks: amax, the first kHeld stay in registers | CTA's amax to memory | grid barrier |
//     every CTA: the largest of all, G | held chunks, then the others read again: blocks as above
//
// The amax of the tensor is a maximum, so it does not depend on the order: results are the same in
// every run. Its barrier is that of cooperative groups, whose memory the driver provides and
// clears.
//
// Limit: memory. From bf16 an element moves 2 + 0.5 + 1/16 bytes, 2.56 (MXFP4 2.53), 0.60 ps at the
// 4.3 TB/s of a copy, 7168 x 7168 in 31 us; with the amax up to 4.56 bytes, less what registers (40
// MB of bf16 on the device) and the 50 MB of L2 keep: 8 to 16 MB stay in registers, which leaves
// 2.56 for small tensors. Instructions: about 14 an element, 10 of them for e2m1, of the 17 that
// 29.6 T lane-instructions a second allow: near both limits. Four over six and the better exact
// scale sum squared errors in fp64, 12 instructions of a half-rate unit an element: about half that
// speed. Measured: see docs/04-kernels.md, "Quantise".
// Sources: Transformer Engine and FlashInfer (NVFP4), OCP MX 1.0 (MXFP4), see
// formats/block_format.h.
#include "kernels/quantize/fp4.h"
#include "ptx/grid_dependency.h"
#include "tile/quantize_fp4.h"

#include <cooperative_groups.h>

namespace tilewright::kernels {
namespace {

using tile::Chunk;
using tile::Fp4Block;

// A chunk of the result: 16 columns of a row. Outside of it: row >= out_rows.
struct Place {
  std::int32_t row, col;

  __device__ Place(const QuantizeParams& params, std::uint32_t idx) {
    const auto chunks_per_row = static_cast<std::uint32_t>(params.out_cols / kQuantizeChunk);
    row = static_cast<std::int32_t>(idx / chunks_per_row);
    col = static_cast<std::int32_t>(idx % chunks_per_row) * kQuantizeChunk;
  }
};

template <int BlockCols>
__device__ void store_block(const QuantizeParams& params, const Place& at, const Fp4Block& block) {
  if (at.row >= params.out_rows) return;
  auto* const codes =
      static_cast<unsigned char*>(params.codes) + at.row * params.code_stride_bytes + at.col / 2;
  *reinterpret_cast<uint2*>(codes) = block.codes;
  if (at.col % BlockCols != 0) return;
  const bool is_inside = at.row < params.rows && at.col < params.cols;
  const std::int64_t idx =
      tile::scale_index(params, at.row, at.col / BlockCols, params.out_cols / BlockCols);
  static_cast<unsigned char*>(params.scales)[idx] =
      static_cast<unsigned char>(is_inside ? block.scale : 0);
}

__device__ void store_tensor_scale(const QuantizeParams& params, const tile::Nvfp4Tensor& tensor) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && params.tensor_scale != nullptr)
    *params.tensor_scale = tensor.tensor_scale;
}

template <class Load, bool ComparesErrors>
__device__ void quantize_nvfp4(const QuantizeParams& params) {
  const Place at(params, blockIdx.x * kQuantizeThreads + threadIdx.x);
  Chunk<Load> chunk;
  ptx::griddepcontrol_wait();
  const float g =
      params.encode_scale != nullptr ? __ldg(params.encode_scale) : params.encode_scale_value;
  tile::load_chunk(chunk, params, at.row, at.col);
  ptx::griddepcontrol_launch_dependents();
  const tile::Nvfp4Tensor tensor(g, params.scale_choice);
  store_tensor_scale(params, tensor);
  store_block<16>(params, at, tile::nvfp4_block<ComparesErrors>(chunk, tensor));
}

template <class Load>
__device__ void quantize_mxfp4(const QuantizeParams& params) {
  const Place at(params, blockIdx.x * kQuantizeThreads + threadIdx.x);
  Chunk<Load> chunk;
  ptx::griddepcontrol_wait();
  tile::load_chunk(chunk, params, at.row, at.col);
  ptx::griddepcontrol_launch_dependents();
  store_block<32>(params, at, tile::mxfp4_half_block(chunk, params));
}

// The largest finite magnitude of a chunk.
template <class Load>
__device__ std::uint32_t finite_amax(const Chunk<Load>& chunk) {
  const std::uint32_t all = chunk.amax_bits();
  if (all < tile::kInfinityBits) return all;
  std::uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < kQuantizeChunk; ++i) {
    const std::uint32_t magnitude = __float_as_uint(fabsf(chunk[i]));
    if (magnitude < tile::kInfinityBits) amax = max(amax, magnitude);
  }
  return amax;
}

__device__ std::uint32_t max_of_cta(std::uint32_t x) {
  __shared__ std::uint32_t of_warps[kQuantizeThreads / 32];
  x = __reduce_max_sync(~0u, x);
  __syncthreads();  // the last use is over
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  return __reduce_max_sync(~0u, of_warps[threadIdx.x % (kQuantizeThreads / 32)]);
}

// The amax of all CTAs.
__device__ float amax_of_grid(const QuantizeParams& params, std::uint32_t amax) {
  amax = max_of_cta(amax);
  if (threadIdx.x == 0) params.partial_amax[blockIdx.x] = __uint_as_float(amax);
  cooperative_groups::this_grid().sync();
  std::uint32_t most = 0;
  for (std::uint32_t i = threadIdx.x; i < gridDim.x; i += kQuantizeThreads)
    most = max(most, __float_as_uint(__ldcg(params.partial_amax + i)));
  return __uint_as_float(max_of_cta(most));
}

__device__ float encode_scale_of(float amax, ScaleChoice choice) {
  const float top = is_exact(choice) ? 384 * 6 : 448 * 6;
  return amax == 0 ? 1.0f : fminf(__fdiv_rn(top, amax), tile::kLargestFloat);
}

template <class Load, bool ComparesErrors>
__device__ void quantize_nvfp4_amax(const QuantizeParams& params) {
  constexpr int kHeld = Load::kPerWord == 2 ? 4 : 2;
  const std::uint32_t first = blockIdx.x * kQuantizeThreads + threadIdx.x;
  const std::uint32_t step = gridDim.x * kQuantizeThreads;
  const auto count =
      static_cast<std::uint32_t>(params.out_rows) * (params.out_cols / kQuantizeChunk);
  Chunk<Load> held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const Place at(params, first + i * step);
    tile::load_chunk(held[i], params, at.row, at.col);
  }
  std::uint32_t amax = 0;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) amax = max(amax, finite_amax(held[i]));
#pragma unroll 2
  for (std::uint32_t idx = first + kHeld * step; idx < count; idx += step) {
    const Place at(params, idx);
    Chunk<Load> chunk;
    tile::load_chunk(chunk, params, at.row, at.col);
    amax = max(amax, finite_amax(chunk));
  }
  const tile::Nvfp4Tensor tensor(encode_scale_of(amax_of_grid(params, amax), params.scale_choice),
                                 params.scale_choice);
  store_tensor_scale(params, tensor);
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    store_block<16>(params, Place(params, first + i * step),
                    tile::nvfp4_block<ComparesErrors>(held[i], tensor));
  for (std::uint32_t idx = first + kHeld * step; idx < count; idx += step) {
    const Place at(params, idx);
    Chunk<Load> chunk;
    tile::load_chunk(chunk, params, at.row, at.col);
    store_block<16>(params, at, tile::nvfp4_block<ComparesErrors>(chunk, tensor));
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_ENTRY(ENTRY, CTAS, BODY)                                                 \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kQuantizeThreads, CTAS) \
      ENTRY(const __grid_constant__ tilewright::kernels::QuantizeParams params) {           \
    using namespace tilewright;                                                             \
    BODY(params);                                                                           \
  }
#define TILEWRIGHT_ENTRIES(NAME, LOAD)                                                         \
  TILEWRIGHT_ENTRY(quantize_nvfp4_##NAME, 1, (kernels::quantize_nvfp4<tile::LOAD, false>))     \
  TILEWRIGHT_ENTRY(quantize_nvfp4_best_##NAME, 1, (kernels::quantize_nvfp4<tile::LOAD, true>)) \
  TILEWRIGHT_ENTRY(quantize_nvfp4_amax_##NAME, tilewright::kernels::kNvfp4AmaxCtasPerSm,       \
                   (kernels::quantize_nvfp4_amax<tile::LOAD, false>))                          \
  TILEWRIGHT_ENTRY(quantize_nvfp4_amax_best_##NAME, tilewright::kernels::kNvfp4BestCtasPerSm,  \
                   (kernels::quantize_nvfp4_amax<tile::LOAD, true>))                           \
  TILEWRIGHT_ENTRY(quantize_mxfp4_##NAME, 1, (kernels::quantize_mxfp4<tile::LOAD>))
TILEWRIGHT_ENTRIES(bf16, LoadBf16)
TILEWRIGHT_ENTRIES(f16, LoadF16)
TILEWRIGHT_ENTRIES(f32, LoadF32)
