// Results of the linear layers for many tokens: accumulators of weights' rows by tokens, added up
// over the CTAs that share a tile, turned over, and written in rows of tokens.
#pragma once

#include "arch/register_index.h"
#include "kernels/linear/swiglu.h"
#include "kernels/linear/wide/schedule.h"
#include "kernels/linear/wide/sm90_wide.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"
#include "tile/box.h"
#include "tile/element.h"

#include <cstdint>

namespace tilewright::tile {

/// Accumulator registers 4i .. 4i+3 of a thread are, of the tokens 8i + 2t and 8i + 2t + 1, those
/// of row g, then those of row g + 8 of the warp's 16 rows.
inline constexpr int kEightTokens = 8;
/// Named barriers, + i: of warpgroup i alone, and for its turn at the tensor core.
enum WideBarrier : std::uint32_t { kWarpgroupBarrier = 1, kWideTurnBarrier = 3 };

/// The tokens of a tile that a CTA finishes: all, or its share when several split k.
struct TokenRange {
  std::int32_t begin, end;

  __device__ bool has(std::int32_t token) const { return token >= begin && token < end; }
};

/// Tokens of a tile that each of `splits` CTAs finishes, the last ones perhaps fewer.
__device__ inline std::int32_t reduction_share(std::int32_t tokens, std::int32_t splits) {
  return ceil_div(ceil_div(tokens, kEightTokens), splits) * kEightTokens;
}

/// Adds up the accumulators of the CTAs that share a tile; each gets the sums of its share of the
/// tokens. `buffer` is shared memory of 4 (tokens + 16 splits) bytes a row in every CTA, not in use
/// otherwise. All `Threads` consumers. The caller's cluster barriers come before, in `sync`, and
/// after all CTAs have read.
template <int Threads, int Count, class Sync>
__device__ __forceinline__ void reduce_over_cluster(float (&d)[Count], std::uint32_t buffer,
                                                    std::uint32_t thread, std::int32_t share,
                                                    std::int32_t tokens, std::int32_t split,
                                                    std::int32_t splits, std::int32_t cluster_rows,
                                                    std::int32_t row, Sync&& sync) {
  constexpr std::uint32_t kEightBytes = Threads * 16;  // of all threads
  const std::uint32_t part_bytes = share / kEightTokens * kEightBytes;
  const std::uint32_t own = buffer + thread * 16;
  std::int32_t owner = 0, left = share;
  std::uint32_t to = own + split * part_bytes;
#pragma unroll
  for (int i = 0; i < Count / 4; ++i) {
    if (i * kEightTokens < tokens) {
      const float part[4] = {d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]};
      ptx::st_shared_cluster_v4_f32(ptx::mapa_shared_cluster(to, owner * cluster_rows + row), part);
      to += kEightBytes;
      left -= kEightTokens;
      if (left == 0) {
        ++owner;
        left = share;
        to -= part_bytes;
      }
    }
  }
  ptx::fence_proxy_async_shared_cluster();  // copies will fill these bytes again
  sync();
  const std::int32_t begin = split * share, end = min(begin + share, tokens);
#pragma unroll
  for (int i = 0; i < Count; ++i) d[i] = 0.0f;
#pragma unroll 1
  for (std::int32_t from = 0; from < splits; ++from) {  // the same order in every run
    std::uint32_t at = own + from * part_bytes;
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) {
      if (i * kEightTokens >= begin && i * kEightTokens < end) {
        const float4 part = ptx::ld_shared_v4_f32(at);
        d[4 * i] += part.x;
        d[4 * i + 1] += part.y;
        d[4 * i + 2] += part.z;
        d[4 * i + 3] += part.w;
        at += kEightBytes;
      }
    }
  }
}

/// Factors of a tile's tokens where tokens have no scales: row weights, from global memory.
struct RowWeights {
  static constexpr bool kHasScales = false;
  const float* weights;  ///< or null
  const WideTile& tile;

  __device__ static float2 scales(std::int32_t) { return make_float2(1.0f, 1.0f); }
  __device__ float2 row_weights(std::int32_t token) const {
    const float* const of_tile = weights + tile.first_token;
    const std::int32_t last = tile.tokens - 1;
    return make_float2(of_tile[min(token, last)], of_tile[min(token + 1, last)]);
  }
};

/// Writes the results of a warpgroup's 64 rows, of at most MaxTokens.
template <int MaxTokens, class Factors>
struct WideEpilogue {
  static constexpr int kAccumulators = MaxTokens / 2, kEights = MaxTokens / kEightTokens;
  using Accumulators = float (&)[kAccumulators];
  using Results = const float (&)[kAccumulators];
  static constexpr int kRoundTokens = 64, kRoundBytes = kernels::kWideStagingBytes;

  const kernels::WideParams& params;
  const WideTile& tile;
  const TokenRange& range;
  const Factors& factors;
  std::int32_t first_row;  ///< of the warpgroup
  std::uint32_t staging;   ///< kRoundBytes of this warpgroup's
  std::uint32_t barrier;   ///< a named one of this warpgroup's

  __device__ static std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }
  __device__ static std::int32_t warp() { return static_cast<std::int32_t>(threadIdx.x / 32 % 4); }

  /// Accumulators to results. SwiGLU leaves them in those of row g.
  __device__ __forceinline__ void finish(Accumulators d) const {
    if constexpr (Factors::kHasScales) {
#pragma unroll
      for (int i = 0; i < kEights; ++i)
        scale(d, i, factors.scales(i * kEightTokens + lane() % 4 * 2));
    }
    // One half after the other: there are registers for one factor and one bias only.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float alpha = params.alpha, bias = 0.0f;
      if (params.alphas != nullptr)
        alpha *= params.alphas[params.is_swiglu ? 2 * tile.matrix + h : tile.matrix];
      const std::int32_t row = first_row + warp() * 16 + lane() / 4 + 8 * h;
      if (params.bias != nullptr && row < params.n)
        bias = params.bias[static_cast<std::int64_t>(tile.matrix) * params.n + row];
#pragma unroll
      for (int i = 2 * h; i < kAccumulators; i += 4) {
        d[i] = fmaf(d[i], alpha, bias);
        d[i + 1] = fmaf(d[i + 1], alpha, bias);
      }
    }
    if (params.is_swiglu) {
#pragma unroll
      for (int i = 0; i < kAccumulators; i += 4) {
#pragma unroll
        for (int j = i; j < i + 2; ++j) d[j] = swiglu({d[j], d[j + 2]}, params.swiglu_limit);
      }
    }
    if (params.row_weights != nullptr) {
#pragma unroll
      for (int i = 0; i < kEights; ++i)
        scale(d, i, factors.row_weights(i * kEightTokens + lane() % 4 * 2));
    }
  }
  // The tokens of number i of the eights, each by its factor.
  __device__ static void scale(Accumulators d, int i, float2 factor) {
    d[4 * i] *= factor.x;
    d[4 * i + 1] *= factor.y;
    d[4 * i + 2] *= factor.x;
    d[4 * i + 3] *= factor.y;
  }

  /// f32 results, straight from registers: a warp writes whole sectors of 32 bytes.
  __device__ __forceinline__ void store_f32(Results d) const {
    const std::int32_t row = first_row + warp() * 16;
    if (row >= params.n) return;
    const std::int32_t column = tile.y_column + (params.is_swiglu ? row / 2 : row) + lane() / 4;
    std::int32_t token = lane() % 4 * 2;
    auto* y = static_cast<float*>(params.y) + (tile.first_token + token) * params.y_pitch + column;
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (range.has(token + j)) {
          y[j * params.y_pitch] = d[4 * i + j];
          if (!params.is_swiglu) y[j * params.y_pitch + 8] = d[4 * i + 2 + j];
        }
      }
      token += kEightTokens;
      y += kEightTokens * params.y_pitch;
    }
  }

  /// Of a chunk of 16 bytes of a token; without bank conflicts both ways.
  template <bool IsSwiglu>
  __device__ static std::uint32_t place(std::int32_t token, std::int32_t chunk) {
    return IsSwiglu ? token * 64 + chunk_in_line(token / 2 & 3, chunk)
                    : token * 128 + chunk_in_line(token & 7, chunk);
  }

  /// Eight eights of tokens as bf16 to shared memory, rows of tokens: 128 bytes of 64 results, or
  /// 64 of 32. The four 8x8 matrices of a store are two eights with both halves of 16 rows, or four
  /// with one.
  template <bool IsSwiglu>
  __device__ __forceinline__ void stage(Results d, int first) const {
    constexpr int kTogether = IsSwiglu ? 4 : 2;
    const std::int32_t matrix = lane() / 8;
    const std::int32_t token = (IsSwiglu ? matrix : matrix / 2) * kEightTokens + lane() % 8;
    const std::int32_t chunk = IsSwiglu ? warp() : warp() * 2 + matrix % 2;
    const std::uint32_t to = staging + place<IsSwiglu>(token, chunk);
#pragma unroll
    for (int i = 0; i < 8; i += kTogether) {
      if (first + i >= kEights) break;
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int eight = first + i + (IsSwiglu ? j : j / 2), half = IsSwiglu ? 0 : j % 2;
        const float* pair = &d[arch::accumulator_of(half, 2 * eight)];
        words[j] = Bf16::pack(pair[0], pair[1]);
      }
      ptx::stmatrix<4, true>(to + i * kEightTokens * (IsSwiglu ? 64 : 128), words);
    }
  }

  template <bool IsSwiglu>
  __device__ __forceinline__ void store_bf16(Results d) const {
    constexpr std::int32_t kChunks = IsSwiglu ? 4 : 8, kStep = 128 / kChunks;
    constexpr std::int32_t kTimes = kRoundTokens / kStep;
    const std::int32_t thread = warp() * 32 + lane(), chunk = thread % kChunks;
    const std::int32_t width = IsSwiglu ? params.n / 2 : params.n;
    const std::int32_t column = (IsSwiglu ? first_row / 2 : first_row) + chunk * 8;
    std::int32_t token = thread / kChunks;
    const std::uint32_t from = staging + place<IsSwiglu>(token, chunk);
    auto* y = static_cast<std::uint16_t*>(params.y) + (tile.first_token + token) * params.y_pitch +
              tile.y_column + column;
#pragma unroll
    for (int round = 0; round < (kEights + 7) / 8; ++round) {
      const std::int32_t base = round * kRoundTokens;
      if (base < range.end && base + kRoundTokens > range.begin) {
        ptx::bar_sync<128>(barrier);  // the last round has been read
        stage<IsSwiglu>(d, round * 8);
        ptx::bar_sync<128>(barrier);
        float4 v[kTimes];
#pragma unroll
        for (int i = 0; i < kTimes; ++i) {
          if (base + i * kStep < MaxTokens)
            v[i] = ptx::ld_shared_v4_f32(from + i * kStep * kChunks * 16);
        }
#pragma unroll
        for (int i = 0; i < kTimes; ++i) {
          if (base + i * kStep < MaxTokens && column < width && range.has(token + i * kStep))
            *reinterpret_cast<float4*>(y + i * kStep * params.y_pitch) = v[i];
        }
      }
      token += kRoundTokens;
      y += kRoundTokens * params.y_pitch;
    }
  }

  __device__ __forceinline__ void store(Accumulators d) const {
    finish(d);
    if (params.is_f32) {
      store_f32(d);
    } else if (params.is_swiglu) {
      store_bf16<true>(d);
    } else {
      store_bf16<false>(d);
    }
  }
};

}  // namespace tilewright::tile
