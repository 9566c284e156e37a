// What becomes of the products of an expert's rows: h, requantised for the second product, or y.
//
// A thread has a row of the tile and takes 64 columns of it at a time. 64
// columns of gate and up in turns of 8 are 32 of h: one block of MXFP8, two of NVFP4, so that amax
// needs no other thread, and a thread writes 32 or 16 neighbouring bytes and their scales.
#pragma once

#include "kernels/linear/block_scaled/results.h"
#include "kernels/linear/grouped/products.h"
#include "kernels/linear/swiglu.h"

#include <cstdint>

namespace tilewright::tile {

/// The factors of a thread's row.
struct GroupedFactors {
  float gate, up, weight;
};

/// Those of row number `lane_row` of a CTA's.
template <class Output>
__device__ GroupedFactors factors_of(const MoeGroupedParams& params, const GroupedTileAt& tile,
                                     std::int32_t lane_row) {
  GroupedFactors factors = {1, 1, 1};
  if (params.alphas != nullptr) {
    const float* const alphas = params.alphas + tile.expert * Output::kAlphas;
    factors.gate = alphas[0];
    factors.up = alphas[Output::kAlphas - 1];
  }
  if (lane_row >= tile.rows) return factors;
  if (params.row_scales != nullptr) {
    const float scale = params.row_scales[tile.row + lane_row];
    factors.gate *= scale;
    factors.up *= scale;
  }
  if (Output::kIsHidden && params.row_weights != nullptr)
    factors.weight = params.row_weights[tile.row + lane_row];
  return factors;
}

/// Where the 64 columns of a thread begin.
struct GroupedRunAt {
  const GroupedTileAt& tile;
  std::int32_t lane_row;  ///< of the CTA's
  std::int32_t column;    ///< of the product
};

/// SwiGLU and quantisation.
template <class Format>
struct HiddenOutput {
  static constexpr bool kIsHidden = true;
  static constexpr int kAlphas = 2;

  static __device__ void write(const MoeGroupedParams& params, float (&x)[kRun],
                               const GroupedFactors& factors, const GroupedRunAt& at) {
    if (at.lane_row >= at.tile.rows || at.column >= params.gemm.n) return;
    float h[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int gate = gate_column(i);
      h[i] =
          factors.weight * swiglu({x[gate] * factors.gate, x[gate + 8] * factors.up}, params.limit);
    }
    const std::int32_t column = at.column / 2, block = column / Format::kBlock;
    const std::int32_t tiles_k = (params.gemm.n / 2 / Format::kBlock + 3) / 4;
    std::uint8_t* const codes = params.gemm.d +
                                (at.tile.row + at.lane_row) * params.gemm.d_row_bytes +
                                Format::code_bytes(column);
    std::uint8_t* const scales =
        params.gemm.d_scales +
        (static_cast<std::int64_t>(at.tile.scale_tile) * tiles_k + block / 4) * 512;
    const std::int32_t scale_row = at.tile.scale_row + at.lane_row;
    Format::write(h, params.gemm.encode_scale, codes,
                  scales + scale_row % 32 * 16 + scale_row / 32 * 4 + block % 4);
  }
};

/// y in bf16, each row by its thread, so that rows of the next expert stay what they are.
struct RowsOutput {
  static constexpr bool kIsHidden = false;
  static constexpr int kAlphas = 1;

  static __device__ void scale(float (&x)[kRun], const GroupedFactors& factors) {
#pragma unroll
    for (float& value : x) value *= factors.gate;
  }

  static __device__ void write(const MoeGroupedParams& params, float (&x)[kRun],
                               const GroupedFactors& factors, const GroupedRunAt& at) {
    scale(x, factors);
    write_scaled(params, x, at);
  }

  static __device__ void write_scaled(const MoeGroupedParams& params, const float (&x)[kRun],
                                      const GroupedRunAt& at) {
    if (at.lane_row >= at.tile.rows) return;
    std::uint8_t* const to = params.gemm.d + (at.tile.row + at.lane_row) * params.gemm.d_row_bytes +
                             at.column * std::int64_t{2};
#pragma unroll
    for (int i = 0; i < kRun / 8; ++i) {
      if (at.column + i * 8 < params.gemm.n)
        reinterpret_cast<uint4*>(to)[i] = pack_chunk<Bf16>(&x[i * 8], 1.0f);
    }
  }
};

}  // namespace tilewright::tile
