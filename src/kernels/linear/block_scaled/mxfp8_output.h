// Results requantised to MXFP8: e4m3 elements, and a ue8m0 scale for 32 of them, the power of two
// above amax / 448, so that no element saturates (formats/block_scale.h, "mxfp8_ceil"). Both lie as
// the next block-scaled GEMM reads its activations.
#pragma once

#include "kernels/linear/block_scaled/results.h"

#include <cstdint>

namespace tilewright::tile {

/// A thread has whole blocks of a row: two scales a run. They are neighbours in a 512-byte tile of
/// scales and are stored as they come, since a tile of results may end in the middle of one.
///
/// Params   d_map: bytes [m, n] in boxes of 64 x 32, swizzle 64B; d_scales: ue8m0 [m, ceil(n/32)]
///          in the swizzled order, padding zeroed. encode_scale is ignored
struct Mxfp8Output {
  static constexpr int kRowBytes = kRun;
  static constexpr bool kHasScales = false;  // none that are staged
  static constexpr int kBlock = 32, kScalesPerAtom = 4;
  static constexpr float kReciprocal = 1.0f / 448, kMinAmax = 1e-4f;
  static constexpr float kMaxFloat = 3.402823466e+38f;

  /// Codes of 32 elements in eight words; returns the code of their scale.
  static __device__ std::uint32_t quantize_block(const float* x, std::uint32_t* codes) {
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < kBlock; ++i) amax = ptx::max_nan_abs(amax, x[i]);
    const bool is_finite = amax <= kMaxFloat;
    const std::uint32_t ideal = __float_as_uint(fmaxf(amax, kMinAmax) * kReciprocal);
    // No subnormals: 1e-4 is far above them.
    const std::uint32_t code = (ideal + 0x7fffff) >> 23;
    const float factor = __uint_as_float((254 - code) << 23);
#pragma unroll
    for (int i = 0; i < kBlock / 4; ++i) {
      const float* const y = x + 4 * i;
      const std::uint32_t four = ptx::cvt_rn_satfinite_e4m3x4_f32(y[0] * factor, y[1] * factor,
                                                                  y[2] * factor, y[3] * factor);
      codes[i] = is_finite ? four : 0;
    }
    return is_finite ? code : 0xff;
  }

  static __device__ void write_scales(const BlockScaledGemmParams& params, std::uint32_t two,
                                      std::int32_t row, std::int32_t column) {
    const std::int32_t block = column / kBlock, blocks = (params.n + kBlock - 1) / kBlock;
    const std::int32_t atoms = (blocks + kScalesPerAtom - 1) / kScalesPerAtom;
    const std::int64_t atom = static_cast<std::int64_t>(row / 128) * atoms + block / kScalesPerAtom;
    std::uint8_t* const to =
        params.d_scales + atom * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % kScalesPerAtom;
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(two);
    // The other half of the last tile, where no run is.
    if (block % kScalesPerAtom == 0 && column + kRun >= params.n)
      *reinterpret_cast<std::uint16_t*>(to + 2) = 0;
  }

  static __device__ void write_run(const BlockScaledGemmParams& params, float (&x)[kRun],
                                   const RunAt& at) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::int32_t row = at.row + static_cast<std::int32_t>(lane);
    clear_outside(params, x, row, at.column);
    std::uint32_t codes[kRun / 4], scales = 0;
#pragma unroll
    for (int i = 0; i < kRun / kBlock; ++i) {
      const std::uint32_t code = quantize_block(&x[i * kBlock], &codes[i * kBlock / 4]);
      const bool is_inside = row < params.m && at.column + i * kBlock < params.n;
      scales |= (is_inside ? code : 0) << 8 * i;
    }
    if (at.row / 128 * 128 < params.m && at.column < params.n)
      write_scales(params, scales, row, at.column);
    if (params.has_d_map != 0) {
#pragma unroll
      for (int i = 0; i < kRowBytes / 16; ++i) {
        const std::uint32_t to =
            arch::swizzle_address(arch::SmemSwizzle::k64B, at.staging + lane * kRowBytes + i * 16);
        *static_cast<uint4*>(__cvta_shared_to_generic(to)) =
            make_uint4(codes[i * 4], codes[i * 4 + 1], codes[i * 4 + 2], codes[i * 4 + 3]);
      }
    } else if (row < params.m) {
      std::uint8_t* to = params.d + row * params.d_row_bytes + at.column;
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        if (at.column + i < params.n) to[i] = static_cast<std::uint8_t>(codes[i / 4] >> i % 4 * 8);
      }
    }
  }
};

}  // namespace tilewright::tile
