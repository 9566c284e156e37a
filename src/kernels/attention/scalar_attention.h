// Attention by scalar arithmetic on tiles of 64 queries and 64 keys in shared memory: what the
// rungs below the tensor core do. A few neighbouring threads share a query; tiles are layouts, so
// that the same code reads plain rows and swizzled boxes.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/rows.h"
#include "layout/constant.h"
#include "tile/online_softmax.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kTileRows = 64;  ///< queries of a tile, and keys

/// Rows of a tile one after another: (row, column) -> element.
template <int HeadDim>
inline constexpr Layout kPlainTile = make_layout(make_shape(kTileRows, HeadDim),
                                                 make_stride(HeadDim, 1));

/// Scores or probabilities of a tile, f32: (query, key) -> element. Rows are 16 bytes longer than
/// they need be: neighbouring ones then begin in other banks.
inline constexpr int kScorePitch = kTileRows + 4;
inline constexpr Layout kScoreTile =
    make_layout(make_shape(kTileRows, kTileRows), make_stride(kScorePitch, 1));
inline constexpr int kScoreElems = kTileRows * kScorePitch;

/// What a thread does for its query. The Threads threads of a row are neighbours in a warp: part p
/// of them has the keys p, p + Threads, ... of a tile, and the chunks p, p + Threads, ... of the
/// result. Scores are in units of log2.
template <class Element, int HeadDim, int Threads>
struct ScalarRow {
  static constexpr int kScores = kTileRows / Threads, kChunks = HeadDim / kChunkElems / Threads;

  std::uint32_t row = threadIdx.x / Threads, part = threadIdx.x % Threads;
  float max = -INFINITY, sum = 0.0f;  // the sum is of this thread's keys only
  float o[kChunks * kChunkElems] = {};

  __device__ std::uint32_t key(int i) const { return part + i * Threads; }

  /// s = q . k of this thread's keys. Each thread begins at another chunk of the rows: rows are
  /// multiples of 128 bytes apart, and all would be in the same banks.
  template <auto Tile>
  __device__ void multiply_scores(float (&s)[kScores], const std::uint16_t* q,
                                  const std::uint16_t* k) const {
    constexpr std::uint32_t kRowChunks = HeadDim / kChunkElems;
#pragma unroll
    for (float& x : s) x = 0.0f;
#pragma unroll 1
    for (std::uint32_t i = 0; i < kRowChunks; ++i) {
      const std::uint32_t column = (i + threadIdx.x) % kRowChunks * kChunkElems;
      float q_chunk[kChunkElems];
      unpack_chunk<Element>(q_chunk, load_chunk(q + offset_in<Tile>(row, column), 0));
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        s[j] = multiply_chunk<Element>(q_chunk, load_chunk(k + offset_in<Tile>(key(j), column), 0),
                                       s[j]);
      }
    }
  }

  /// s = this thread's keys of the row, which the threads of its warp have written.
  __device__ void load_scores(float (&s)[kScores], const float* scores) const {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kScores; ++i) s[i] = scores[offset_in<kScoreTile>(row, key(i))];
  }

  /// Scales, and hides the keys that the query does not see; `start` is the first key of the tile.
  __device__ void mask(float (&s)[kScores], const VisibleKeys& visible, float scale,
                       std::int32_t start) const {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const std::int32_t at = start + static_cast<std::int32_t>(key(i));
      s[i] = at < visible.begin || at >= visible.end ? -INFINITY : s[i] * scale;
    }
  }

  /// The online step: scores to probabilities, which go to shared memory for the other threads of
  /// the row; what was summed up relative to a smaller maximum is corrected.
  __device__ void update(float (&s)[kScores], float* p) {
    float top = max;
#pragma unroll
    for (const float x : s) top = fmaxf(top, x);
#pragma unroll
    for (int step = 1; step < Threads; step *= 2)
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    const float base = top == -INFINITY ? 0.0f : top;  // -inf - 0 and not -inf + inf
    const float correction = ptx::ex2_approx_ftz_f32(max - base);
    max = top;
    sum *= correction;
#pragma unroll
    for (float& x : o) x *= correction;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const float power = ptx::ex2_approx_ftz_f32(s[i] - base);
      sum += power;
      p[offset_in<kScoreTile>(row, key(i))] = power;
    }
    __syncwarp();
  }

  /// o += p v.
  template <auto Tile>
  __device__ void add_values(const float* p, const std::uint16_t* v) {
#pragma unroll 4
    for (std::uint32_t j = 0; j < kTileRows; ++j) {
      const float weight = p[offset_in<kScoreTile>(row, j)];
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        const std::uint32_t column = (part + i * Threads) * kChunkElems;
        float x[kChunkElems];
        unpack_chunk<Element>(x, load_chunk(v + offset_in<Tile>(j, column), 0));
#pragma unroll
        for (int c = 0; c < kChunkElems; ++c)
          o[i * kChunkElems + c] = fmaf(weight, x[c], o[i * kChunkElems + c]);
      }
    }
  }

  /// The row's result and lse; a row that saw no key gives zeros and -inf.
  __device__ void store(const kernels::AttentionParams& params, std::int32_t batch,
                        std::int32_t head, std::int32_t query) const {
    float total = sum;
#pragma unroll
    for (int step = 1; step < Threads; step *= 2)
      total += __shfl_xor_sync(0xffffffffu, total, step);
    if (query >= params.q_len) return;
    std::uint16_t* const out = find_row(params.out, params.out_strides, batch, query, head);
    const float factor = total == 0.0f ? 0.0f : 1.0f / total;
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
      store_chunk(out, part + i * Threads, pack_chunk<Element>(&o[i * kChunkElems], factor));
    if (part == 0) store_row_lse(params, max, total, batch, head, query);
  }
};

}  // namespace tilewright::tile
