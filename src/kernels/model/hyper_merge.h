// Streams of hyper-connections in the registers of a warp: merged with a result, and multiplied
// with the rows of fn by mma.sync. Four neighbours of a row a lane; see hyper_connection.cu.
#pragma once

#include "kernels/model/column4.h"
#include "kernels/model/hyper_connection.h"
#include "ptx/mma_sync.h"

#include <cstdint>

namespace tilewright::kernels::hyper {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kFnTiles = kHyperMixRows / 8;
inline constexpr int kFnTerms = 3;

// How many bf16 terms make up a number of a stream exactly.
template <class Stream>
inline constexpr int kTerms = sizeof(Stream) == 2 ? 1 : 3;

// x as a sum of bf16 terms, largest first; two registers of two each.
template <int Count>
__device__ inline void split(tile::Column4 x, std::uint32_t (&terms)[Count][2]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float *const low = &x.v[2 * half], *const high = low + 1;
      terms[i][half] = tile::Bf16::pack(*low, *high);
      const float2 taken = tile::Bf16::unpack(terms[i][half]);
      *low -= taken.x;
      *high -= taken.y;
    }
  }
}

// Where a lane is: it has four columns of two tokens, and one row of a tile of fn.
struct MergePlace {
  int row, quad, column, token[2];

  MergePlace() = default;
  __device__ MergePlace(int slice, int tile) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    row = lane / 4;
    quad = lane % 4;
    column = slice * kHyperSliceColumns + warp * 16 + quad * 4;
    token[0] = tile * kHyperMergeTokens + row;
    token[1] = token[0] + 8;
  }
};

using TokenStreams = tile::Column4[kHyperStreams];

// What is added to the streams, four columns of it.
__device__ inline tile::Column4 load_result(const HyperMergeParams& p, std::int64_t token,
                                            int column) {
  tile::Column4 f = tile::load4(p.f, token * p.f_stride + column, p.is_f_f32);
  if (p.g == nullptr) return f;
  const tile::Column4 g = tile::load4(p.g, token * p.g_stride + column, p.is_g_f32);
#pragma unroll
  for (int i = 0; i < 4; ++i) f.v[i] += g.v[i];
  return f;
}

// Four columns of the streams of both tokens; f of each.
template <class Stream>
__device__ inline void load_tokens(const HyperMergeParams& p, const MergePlace& at,
                                   TokenStreams (&x)[2], tile::Column4 (&f)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (at.token[r] >= p.tokens || at.column >= p.hidden) continue;
    const std::int64_t token = at.token[r];
    const auto* const from =
        static_cast<const Stream*>(p.streams) + token * kHyperStreams * p.hidden + at.column;
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j)
      x[r][j] = tile::load4(from + static_cast<std::int64_t>(j) * p.hidden);
    if (p.f != nullptr) f[r] = load_result(p, token, at.column);
  }
}

// The new streams, stored, and left in x as the next reader finds them.
template <class Stream>
__device__ inline void merge_token(const HyperMergeParams& p, std::int64_t token, int column,
                                   const tile::Column4& f, TokenStreams& x) {
  const float* const mix = p.mix + token * kHyperMixRows;
  auto* const to = static_cast<Stream*>(p.merged) + token * kHyperStreams * p.hidden + column;
  TokenStreams merged;
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
    const float post = mix[4 + k];
#pragma unroll
    for (int i = 0; i < 4; ++i) merged[k].v[i] = post * f.v[i];
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) {
      const float comb = mix[8 + 4 * j + k];
#pragma unroll
      for (int i = 0; i < 4; ++i) merged[k].v[i] = fmaf(comb, x[j].v[i], merged[k].v[i]);
    }
  }
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
    x[k] = merged[k];
    tile::store4(to + static_cast<std::int64_t>(k) * p.hidden, x[k]);
  }
}

using FnColumns = tile::Column4[kHyperStreams][kFnTiles];

__device__ inline void load_fn(const HyperMergeParams& p, const MergePlace& at, FnColumns& fn) {
#pragma unroll
  for (int n = 0; n < kFnTiles; ++n) {
    const int row = 8 * n + at.row;
    if (row >= p.rows || at.column >= p.hidden) continue;
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j)
      fn[j][n] = tile::load4(
          p.fn + (static_cast<std::int64_t>(row) * kHyperStreams + j) * p.hidden + at.column);
  }
}

// Products of terms that do not vanish against 2^-24, the smallest first.
template <class Stream>
__device__ inline void multiply(const TokenStreams (&x)[2], const FnColumns& fn,
                                float (&sums)[kFnTiles][4]) {
  constexpr int kOwn = kTerms<Stream>;
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j) {
    std::uint32_t low[kOwn][2], high[kOwn][2];  // of the tokens `row` and `row + 8`
    split(x[0][j], low);
    split(x[1][j], high);
#pragma unroll
    for (int n = 0; n < kFnTiles; ++n) {
      std::uint32_t b[kFnTerms][2];
      split(fn[j][n], b);
#pragma unroll
      for (int order = kFnTerms - 1; order >= 0; --order) {
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
          if (i > order) continue;
          const std::uint32_t a[4] = {low[i][0], high[i][0], low[i][1], high[i][1]};
          ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sums[n], a, b[order - i], sums[n]);
        }
      }
    }
  }
}

using WarpParts = float[kHyperMergeTokens][kHyperPartStride];

// This lane's part of the sum of squares of each token, added to `squares`.
__device__ inline void add_squares(const TokenStreams (&x)[2], float (&squares)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) squares[r] = tile::dot4(x[r][j], x[r][j], squares[r]);
  }
}

// This warp's dot products and sums of squares.
__device__ inline void put_parts(const MergePlace& at, const float (&squares)[2],
                                 const float (&sums)[kFnTiles][4], WarpParts& parts) {
#pragma unroll
  for (int n = 0; n < kFnTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) parts[at.row + i / 2 * 8][8 * n + 2 * at.quad + i % 2] = sums[n][i];
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = squares[r];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    parts[at.row + 8 * r][kHyperSquares + at.quad] = at.quad == 0 ? sum : 0.0f;
  }
}

}  // namespace tilewright::kernels::hyper
