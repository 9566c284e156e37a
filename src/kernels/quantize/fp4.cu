// targets: sm_90a sm_100f
//
// Weights and activations to NVFP4 and MXFP4.
//
//   quantize_nvfp4, quantize_mxfp4      thread = 32 neighbours: two NVFP4 blocks, or one of MXFP4
//     load 4 x 16 B | amax of pairs | scales, factors | 32 codes | store 16 B and the scales
//   quantize_nvfp4_amax                 as many CTAs as fit, each with its share of the chunks
//     all chunks: amax, the first kHeld stay in registers | CTA's amax to memory | grid barrier |
//     every CTA: the largest of all, G | held chunks, then the others again, the last one first
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
#include "kernels/quantize/quantize_fp4.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

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

// Two neighbouring chunks of a thread, 32 columns: 16 bytes of codes.
template <class Load>
struct Pair {
  Chunk<Load> low, high;
  Place at;

  __device__ explicit Pair(const QuantizeParams& params)
      : at(params, 2 * (blockIdx.x * kQuantizeThreads + threadIdx.x)) {}
  __device__ void load(const QuantizeParams& params) {
    tile::load_chunk(low, params, at.row, at.col);
    tile::load_chunk(high, params, at.row, at.col + kQuantizeChunk);
  }
};

__device__ void store_codes(const QuantizeParams& params, const Place& at, uint2 low, uint2 high) {
  auto* const codes =
      static_cast<unsigned char*>(params.codes) + at.row * params.code_stride_bytes + at.col / 2;
  *reinterpret_cast<uint4*>(codes) = make_uint4(low.x, low.y, high.x, high.y);
}

__device__ void store_scale(const QuantizeParams& params, const Place& at, int offset,
                            int block_cols, std::uint32_t scale) {
  const bool is_inside = at.row < params.rows && at.col + offset < params.cols;
  const std::int64_t idx = tile::scale_index(params, at.row, (at.col + offset) / block_cols,
                                             params.out_cols / block_cols);
  static_cast<unsigned char*>(params.scales)[idx] =
      static_cast<unsigned char>(is_inside ? scale : 0);
}

__device__ void store_block(const QuantizeParams& params, const Place& at, const Fp4Block& block) {
  if (at.row >= params.out_rows) return;
  auto* const codes =
      static_cast<unsigned char*>(params.codes) + at.row * params.code_stride_bytes + at.col / 2;
  *reinterpret_cast<uint2*>(codes) = block.codes;
  store_scale(params, at, 0, 16, block.scale);
}

__device__ void store_tensor_scale(const QuantizeParams& params, const tile::Nvfp4Tensor& tensor) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && params.tensor_scale != nullptr)
    *params.tensor_scale = tensor.tensor_scale;
}

template <class Load, bool ComparesErrors>
__device__ void quantize_nvfp4(const QuantizeParams& params) {
  Pair<Load> pair(params);
  ptx::griddepcontrol_wait();
  const float g =
      params.encode_scale != nullptr ? __ldg(params.encode_scale) : params.encode_scale_value;
  pair.load(params);
  ptx::griddepcontrol_launch_dependents();
  const tile::Nvfp4Tensor tensor(g, params.scale_choice);
  store_tensor_scale(params, tensor);
  const Fp4Block low = tile::nvfp4_block<ComparesErrors>(pair.low, tensor);
  const Fp4Block high = tile::nvfp4_block<ComparesErrors>(pair.high, tensor);
  if (pair.at.row >= params.out_rows) return;
  store_codes(params, pair.at, low.codes, high.codes);
  store_scale(params, pair.at, 0, 16, low.scale);
  store_scale(params, pair.at, 16, 16, high.scale);
}

template <class Load>
__device__ void quantize_mxfp4(const QuantizeParams& params) {
  Pair<Load> pair(params);
  ptx::griddepcontrol_wait();
  pair.load(params);
  ptx::griddepcontrol_launch_dependents();
  const tile::Mxfp4Scale scale(params, max(pair.low.amax_bits(), pair.high.amax_bits()));
  if (pair.at.row >= params.out_rows) return;
  store_codes(params, pair.at, scale.codes(pair.low), scale.codes(pair.high));
  store_scale(params, pair.at, 0, 32, scale.stored);
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
    store_block(params, Place(params, first + i * step),
                tile::nvfp4_block<ComparesErrors>(held[i], tensor));
  // From the end on: what was read last is still in the L2 cache.
  const std::uint32_t rounds = first < count ? (count - first + step - 1) / step : 0;
  for (std::uint32_t i = rounds; i > kHeld; --i) {
    const Place at(params, first + (i - 1) * step);
    Chunk<Load> chunk;
    tile::load_chunk(chunk, params, at.row, at.col);
    store_block(params, at, tile::nvfp4_block<ComparesErrors>(chunk, tensor));
  }
}

}  // namespace

#define TILEWRIGHT_FP4(NAME, CTAS, ...)                                                         \
  TILEWRIGHT_KERNEL(quantize_##NAME, QuantizeParams, __launch_bounds__(kQuantizeThreads, CTAS), \
                    __VA_ARGS__)
#define TILEWRIGHT_ENTRIES(NAME, LOAD)                                                           \
  TILEWRIGHT_FP4(nvfp4_##NAME, 4, quantize_nvfp4<tile::LOAD, false>)                             \
  TILEWRIGHT_FP4(nvfp4_best_##NAME, 1, quantize_nvfp4<tile::LOAD, true>)                         \
  TILEWRIGHT_FP4(nvfp4_amax_##NAME, kNvfp4AmaxCtasPerSm, quantize_nvfp4_amax<tile::LOAD, false>) \
  TILEWRIGHT_FP4(nvfp4_amax_best_##NAME, kNvfp4BestCtasPerSm,                                    \
                 quantize_nvfp4_amax<tile::LOAD, true>)                                          \
  TILEWRIGHT_FP4(mxfp4_##NAME, 4, quantize_mxfp4<tile::LOAD>)

TILEWRIGHT_ENTRIES(bf16, LoadBf16)
TILEWRIGHT_ENTRIES(f16, LoadF16)
TILEWRIGHT_ENTRIES(f32, LoadF32)

}  // namespace tilewright::kernels
