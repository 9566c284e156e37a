// What a linear layer does with a tile of sums whose rows are output features and whose columns are
// tokens: scale, bias, SwiGLU, and transposed into memory.
//
// Thread (g, t) of warp w of a warpgroup holds of d[4j + i] the row 16 w + g + 8 (i / 2) and the
// token 8 j + 2 t + i % 2. Results of 16 bits go through shared memory by transposing stmatrix, so
// that 16 bytes of a token are stored at a time.
#pragma once

#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"

#include <cstdint>

namespace tilewright::tile {

/// Where the tile of a warpgroup, 64 rows, goes.
struct LinearPlace {
  std::int32_t first_token;             ///< of the tile
  std::int32_t token_begin, token_end;  ///< only these are stored
  std::int32_t first_row, rows;         ///< only rows below `rows` are stored
};

/// d = d * factor of its token + bias of its row. `factors` is in shared memory.
template <int Tokens>
__device__ void scale_tokens(float (&d)[Tokens / 2], const float* factors, float bias_low,
                             float bias_high) {
#pragma unroll
  for (int j = 0; j < Tokens / 8; ++j) {
    const float2 f = *reinterpret_cast<const float2*>(factors + 8 * j + threadIdx.x % 4 * 2);
    d[4 * j] = d[4 * j] * f.x + bias_low;
    d[4 * j + 1] = d[4 * j + 1] * f.y + bias_low;
    d[4 * j + 2] = d[4 * j + 2] * f.x + bias_high;
    d[4 * j + 3] = d[4 * j + 3] * f.y + bias_high;
  }
}

/// silu(gate) * up under the limit of DeepSeek-V4. NaN stays NaN.
__device__ inline float swiglu(float gate, float up, float limit) {
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up < -limit ? -limit : up;
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

/// Rows of 16 bytes per token from shared memory to y. Row r of token c of the staged tile is at
/// c * RowBytes + (r / 8 ^ swizzle) * 16.
template <int Tokens, int RowBytes>
__device__ std::uint32_t staged_chunk(std::uint32_t staging, std::uint32_t token,
                                      std::uint32_t chunk) {
  constexpr std::uint32_t kChunks = RowBytes / 16;
  const std::uint32_t swizzle = (RowBytes == 128 ? token : token / 2) % kChunks;
  return staging + token * RowBytes + (chunk ^ swizzle) * 16;
}

template <int Tokens, int RowBytes>
__device__ void store_staged(void* y, std::int32_t y_pitch, std::uint32_t staging,
                             const LinearPlace& place) {
  constexpr std::uint32_t kChunks = RowBytes / 16;
  const std::uint32_t thread = threadIdx.x % 128;
#pragma unroll
  for (std::uint32_t i = 0; i < Tokens * kChunks / 128; ++i) {
    const std::uint32_t index = i * 128 + thread, local = index / kChunks, chunk = index % kChunks;
    const std::int32_t token = place.first_token + static_cast<std::int32_t>(local);
    const std::int32_t row = place.first_row + static_cast<std::int32_t>(chunk) * 8;
    if (token < place.token_begin || token >= place.token_end || row >= place.rows) continue;
    const uint4 values = *static_cast<const uint4*>(
        __cvta_shared_to_generic(staged_chunk<Tokens, RowBytes>(staging, local, chunk)));
    *reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(y) + std::int64_t{token} * y_pitch +
                              row) = values;
  }
}

/// 64 rows of bf16. `staging`: Tokens * 128 bytes of this warpgroup's, `barrier` its named barrier.
template <int Tokens>
__device__ void store_transposed_bf16(void* y, std::int32_t y_pitch, const float (&d)[Tokens / 2],
                                      std::uint32_t staging, std::uint32_t barrier,
                                      const LinearPlace& place) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  ptx::bar_sync<128>(barrier);  // the tile before was read
#pragma unroll
  for (int j = 0; j < Tokens / 8; j += 2) {
    const std::uint32_t words[4] = {
        Bf16::pack(d[4 * j], d[4 * j + 1]), Bf16::pack(d[4 * j + 2], d[4 * j + 3]),
        Bf16::pack(d[4 * j + 4], d[4 * j + 5]), Bf16::pack(d[4 * j + 6], d[4 * j + 7])};
    const std::uint32_t token = 8 * (j + lane / 16) + lane % 8;
    ptx::stmatrix<4, true>(staged_chunk<Tokens, 128>(staging, token, warp * 2 + lane / 8 % 2),
                           words);
  }
  ptx::bar_sync<128>(barrier);
  store_staged<Tokens, 128>(y, y_pitch, staging, place);
}

/// 64 packed rows of gate and up to 32 of h in bf16; first_row and rows of the place count h's.
/// `factors`: of the tokens, in shared memory, or null.
template <int Tokens>
__device__ void store_swiglu_bf16(void* y, std::int32_t y_pitch, const float (&d)[Tokens / 2],
                                  const float* factors, float limit, std::uint32_t staging,
                                  std::uint32_t barrier, const LinearPlace& place) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  ptx::bar_sync<128>(barrier);
#pragma unroll
  for (int j = 0; j < Tokens / 8; j += 4) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 4 * (j + i);
      float h0 = swiglu(d[at], d[at + 2], limit), h1 = swiglu(d[at + 1], d[at + 3], limit);
      if (factors != nullptr) {
        const float2 f =
            *reinterpret_cast<const float2*>(factors + 8 * (j + i) + threadIdx.x % 4 * 2);
        h0 *= f.x;
        h1 *= f.y;
      }
      words[i] = Bf16::pack(h0, h1);
    }
    ptx::stmatrix<4, true>(staged_chunk<Tokens, 64>(staging, 8 * j + lane, warp), words);
  }
  ptx::bar_sync<128>(barrier);
  store_staged<Tokens, 64>(y, y_pitch, staging, place);
}

/// 64 rows of f32, straight from registers: 32 bytes of a token at a time.
template <int Tokens>
__device__ void store_transposed_f32(void* y, std::int32_t y_pitch, const float (&d)[Tokens / 2],
                                     const LinearPlace& place) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const std::int32_t row = place.first_row + static_cast<std::int32_t>(warp * 16 + lane / 4);
#pragma unroll
  for (int i = 0; i < Tokens / 2; ++i) {
    const std::int32_t token =
        place.first_token + i / 4 * 8 + static_cast<std::int32_t>(lane % 4) * 2 + i % 2;
    const std::int32_t at_row = row + i / 2 % 2 * 8;
    if (token >= place.token_begin && token < place.token_end && at_row < place.rows)
      static_cast<float*>(y)[std::int64_t{token} * y_pitch + at_row] = d[i];
  }
}

}  // namespace tilewright::tile
