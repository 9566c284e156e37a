// Results requantised to NVFP4.
#pragma once

#include "kernels/linear/block_scaled/results.h"

#include <cstdint>

namespace tilewright::tile {

/// Requantises: the arithmetic of formats/block_scale.h, bit for bit.
struct Nvfp4Output {
  static constexpr int kRowBytes = kRun / 2;
  static constexpr bool kHasScales = true;
  static constexpr int kBlock = 16;
  static constexpr float kMaxFloat = 3.402823466e+38f;

  /// Codes of 16 elements in two words; returns the code of their scale.
  static __device__ std::uint32_t quantize_block(const float* x, float encode_scale,
                                                 std::uint32_t* codes) {
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < kBlock; ++i) amax = ptx::max_nan_abs(amax, x[i]);
    if (!(amax <= kMaxFloat)) {  // NaN or infinite: a NaN scale
      codes[0] = codes[1] = 0;
      return 0x7f;
    }
    const std::uint32_t code = ptx::cvt_rn_satfinite_e4m3_f32(amax * (encode_scale * (1.0f / 6)));
    const float step = ptx::cvt_f32_e4m3(code) * (1.0f / encode_scale);
    const float factor = step > 0 ? fminf(1.0f / step, kMaxFloat) : kMaxFloat;
    float scaled[kBlock];
#pragma unroll
    for (int i = 0; i < kBlock; ++i) scaled[i] = x[i] * factor;
    codes[0] = ptx::cvt_rn_satfinite_e2m1x8_f32(scaled);
    codes[1] = ptx::cvt_rn_satfinite_e2m1x8_f32(scaled + 8);
    return code;
  }

  /// Returns the four scales of the run.
  static __device__ std::uint32_t write_run(const BlockScaledGemmParams& params, float (&x)[kRun],
                                            const RunAt& at) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::int32_t row = at.row + static_cast<std::int32_t>(lane);
    clear_outside(params, x, row, at.column);
    std::uint32_t codes[kRun / 8], scales = 0;
#pragma unroll
    for (int i = 0; i < kRun / kBlock; ++i)
      scales |= quantize_block(&x[i * kBlock], params.encode_scale, &codes[i * 2]) << 8 * i;
    if (params.has_d_map != 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t to =
            arch::swizzle_address(arch::SmemSwizzle::k32B, at.staging + lane * kRowBytes + i * 16);
        *static_cast<uint4*>(__cvta_shared_to_generic(to)) =
            make_uint4(codes[i * 4], codes[i * 4 + 1], codes[i * 4 + 2], codes[i * 4 + 3]);
      }
    } else if (row < params.m) {
      std::uint8_t* to = params.d + row * params.d_row_bytes + at.column / 2;
#pragma unroll
      for (int i = 0; i < kRowBytes; ++i) {
        if (at.column + 2 * i < params.n)
          to[i] = static_cast<std::uint8_t>(codes[i / 4] >> i % 4 * 8);
      }
    }
    return scales;
  }
};

}  // namespace tilewright::tile
