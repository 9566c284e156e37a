// targets: sm_90a sm_100f
//
// Tokens to the rows of their experts, for the kernels that read rows through tensor maps. A thread
// has 16 neighbours of a token, reads and quantises them once and stores them topk times: the other
// way round, row by row, x would be read topk times, from HBM once it exceeds the L2 cache.
//
// Limit: HBM, writes. 8192 tokens of 7168 to 8 experts: bf16 0.94 GB, 250 us; e4m3 0.47 GB + 15 MB
// of scales, 140 us, with x.
#include "kernels/moe/scatter.h"
#include "kernels/quantize/quantize_rows.h"
#include "ptx/grid_dependency.h"
#include "tile/cta_max.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Calls store(row) for all rows of a token.
template <class Store>
__device__ void for_each_row(const MoeScatterParams& params, std::int32_t token, Store&& store) {
  const std::int64_t first = static_cast<std::int64_t>(token) * params.topk;
#pragma unroll 4
  for (int i = 0; i < params.topk; ++i) {
    const std::int32_t row = params.slot_row[first + i];
    if (row >= 0) store(row);
  }
  if (params.shared_first != nullptr) store(*params.shared_first + token);
}

__device__ tile::Chunk<tile::LoadBf16> load(const MoeScatterParams& params, std::int32_t token,
                                            std::int32_t column) {
  tile::Chunk<tile::LoadBf16> chunk;
  const int left = params.hidden - column;
  chunk.load(params.x + token * params.x_stride, column, left < 0 ? 0 : min(left, kQuantizeChunk),
             true);
  return chunk;
}

__device__ void scatter_bf16(const MoeScatterParams& params) {
  const auto token = static_cast<std::int32_t>(blockIdx.y);
  const auto column =
      static_cast<std::int32_t>(blockIdx.x * kMoeScatterColumns + threadIdx.x * kQuantizeChunk);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (column >= params.out_columns) return;
  const tile::Chunk<tile::LoadBf16> chunk = load(params, token, column);
  const std::uint32_t(&w)[8] = chunk.words;
  for_each_row(params, token, [&](std::int32_t row) {
    auto* const to = reinterpret_cast<uint4*>(static_cast<std::uint8_t*>(params.out) +
                                              row * params.out_stride_bytes + column * 2);
    to[0] = make_uint4(w[0], w[1], w[2], w[3]);
    to[1] = make_uint4(w[4], w[5], w[6], w[7]);
  });
}

// Of the 128 columns that 8 lanes have.
__device__ std::uint32_t max_of_block(std::uint32_t x) {
#pragma unroll
  for (int lanes = 128 / kQuantizeChunk / 2; lanes > 0; lanes /= 2)
    x = max(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

__device__ void scatter_e4m3(const MoeScatterParams& params) {
  const auto token = static_cast<std::int32_t>(blockIdx.x);
  const auto begin = static_cast<std::int32_t>(threadIdx.x * kQuantizeChunk);
  const auto step = static_cast<std::int32_t>(blockDim.x * kQuantizeChunk);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  tile::Chunk<tile::LoadBf16> held[kMoeScatterHeld];
  std::uint32_t amax[kMoeScatterHeld], most = 0;
#pragma unroll
  for (int i = 0; i < kMoeScatterHeld; ++i) {
    held[i] = load(params, token, begin + i * step);
    amax[i] = held[i].amax_bits();
    most = max(most, amax[i]);
  }
  if (params.has_row_scales) most = tile::max_of_cta<kMoeScatterMaxThreads>(most);
  QuantizeParams rule = {};
  rule.min_amax = kFp8MinAmax;
  rule.is_pow2 = params.is_pow2;
#pragma unroll
  for (int i = 0; i < kMoeScatterHeld; ++i) {
    const std::int32_t column = begin + i * step;
    const tile::Fp8Scale scale(rule, params.has_row_scales ? most : max_of_block(amax[i]));
    const uint4 codes = tile::transpose_in_quad(tile::fp8_codes(held[i], scale, true));
    const float stored = scale.is_finite ? scale.value : __uint_as_float(0x7fffffffu);
    const bool has_scale = params.has_row_scales ? column == 0 : column % 128 == 0;
    float* const scales =
        params.scales + (params.has_row_scales ? 0 : column / 128 * params.scale_pitch);
    if (column >= params.out_columns) continue;
    for_each_row(params, token, [&](std::int32_t row) {
      *reinterpret_cast<uint4*>(static_cast<std::uint8_t*>(params.out) +
                                row * params.out_stride_bytes + column) = codes;
      if (has_scale) scales[row] = stored;
    });
  }
}

}  // namespace
TILEWRIGHT_KERNEL(moe_scatter_bf16, MoeScatterParams, __launch_bounds__(kMoeScatterThreads),
                  scatter_bf16)

TILEWRIGHT_KERNEL(moe_scatter_e4m3, MoeScatterParams, __launch_bounds__(kMoeScatterMaxThreads),
                  scatter_e4m3)

}  // namespace tilewright::kernels
