// Scores, weights and values of one warp of a decode kernel: 16 or 32 rows against the keys of its
// team. Nothing is shared with other teams before the last piece of a tile.
#pragma once

#include "kernels/attention/decode/operands.h"
#include "kernels/attention/decode/rows.h"
#include "kernels/attention/decode/shape.h"
#include "ptx/load_store.h"
#include "ptx/warp_roles.h"
#include "tile/online_softmax.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// A thread's share of a warp's rows; all of a warp's dimensions.
template <kernels::DecodeKv Kv, kernels::DecodeShape Shape>
struct DecodeConsumer {
  using Operands = DecodeOperands<Kv>;
  using Element = typename Operands::Element;
  static constexpr int kTiles = Shape.warp_tiles, kDim = Shape.head_dim, kSteps = kDim / 16;
  static constexpr int kBlocks = kDim / 8, kRowBytes = Shape.row_bytes;
  static constexpr int kKeys = Shape.step_keys, kKeyBlocks = kKeys / 16;
  using Scores = float[kKeys / 2];  ///< of a tile: of block after block of 8 keys the accumulators
  static constexpr bool kKeepsQuery = Shape.keeps_query();
  static constexpr int kKept = kKeepsQuery ? kTiles * kSteps : 1;

  const kernels::DecodeParamsOf<Shape>& p;
  std::uint32_t team, row_warp;
  std::uint32_t queries;  ///< shared address of the row warp's fragments, if not kept
  std::uint32_t g = threadIdx.x % 32 / 4;
  std::uint32_t kept[kKept][4];
  float o[kTiles * kBlocks][4];
  OnlineSoftmax softmax[kTiles];
  float unit[kTiles][2];  ///< codes: what products are multiplied with to be scores in log2

  __device__ std::int32_t row_of(const DecodeSegment& segment, int tile, int h) const {
    return segment.m_tile * Shape.rows() +
           static_cast<std::int32_t>((row_warp * kTiles + static_cast<std::uint32_t>(tile)) * 16 +
                                     g) +
           8 * h;
  }

  /// What exponents of scores are multiplied with.
  __device__ float scale() const { return Operands::kIsCodes ? 1.0f : p.scale_log2; }

  // ---- queries

  __device__ static std::uint32_t load_pair(const void* q, std::int64_t at) {
    return ptx::ld_global_nc_u32(static_cast<const std::uint16_t*>(q) + at);
  }
  /// The fragments of a tile of rows: 16-bit ones as they are.
  __device__ void load_tile(std::uint32_t (&a)[kSteps][4], const DecodeSegment& segment,
                            int tile) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const DecodeRow row(p, segment.kv_head, row_of(segment, tile, h));
      const std::int64_t at = row.offset(p.q_strides, segment.batch_idx);
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) {
        const std::uint32_t dim = Operands::query_dim(i / 2, i % 2);
        a[i / 2][i % 2 * 2 + h] =
            row.exists && decode_has_dim(p, dim) ? load_pair(p.q, at + dim) : 0;
      }
    }
  }
  /// For codes: f16, each row times a power of two that brings its largest element to 2^13 or so.
  __device__ void scale_tile(std::uint32_t (&a)[kSteps][4], const DecodeSegment& segment,
                             int tile) {
    const std::int64_t at_descale =
        segment.batch_idx * p.descale.batch + segment.kv_head * p.descale.head;
    const float descale = p.descale.k == nullptr ? 1.0f : p.descale.k[at_descale];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = 0.0f;
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) {
        const float2 x = unpack(a[i / 2][i % 2 * 2 + h]);
        top = fmaxf(top, fmaxf(fabsf(x.x), fabsf(x.y)));
      }
      const auto exponent = static_cast<std::int32_t>(__float_as_uint(quad_max(top)) >> 23);
      const std::int32_t field = min(max(127 + 127 + 13 - exponent, 1), 253);
      const float factor = __uint_as_float(static_cast<std::uint32_t>(field) << 23);
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) {
        std::uint32_t& pair = a[i / 2][i % 2 * 2 + h];
        const float2 x = unpack(pair);
        pair = Fp16::pack(x.x * factor, x.y * factor);
      }
      const float whole = p.softcap_scale != 0.0f ? p.softcap_scale : p.scale_log2;
      unit[tile][h] =
          __uint_as_float(static_cast<std::uint32_t>(254 - field) << 23) * descale * whole;
    }
  }
  __device__ float2 unpack(std::uint32_t pair) const {
    return p.q_is_f16 != 0 ? Fp16::unpack(pair) : Bf16::unpack(pair);
  }

  /// Queries that stay in registers: on their way to them, before begin().
  __device__ void fetch(const DecodeSegment& segment) {
    if constexpr (kKeepsQuery) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) load_tile(kept_tile(tile), segment, tile);
    }
  }

  /// All warps of the CTA, behind a barrier since the last use of shared queries.
  __device__ void begin(const DecodeSegment& segment) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      if constexpr (kKeepsQuery) {
        if constexpr (Operands::kIsCodes) scale_tile(kept_tile(tile), segment, tile);
      } else {
        std::uint32_t a[kSteps][4];
        load_tile(a, segment, tile);
        if constexpr (Operands::kIsCodes) scale_tile(a, segment, tile);
#pragma unroll
        for (int i = 0; i < kSteps; ++i)
          if (team == 0) st_query(tile * kSteps + i, a[i]);
      }
      softmax[tile] = {};
    }
#pragma unroll
    for (auto& block : o) block[0] = block[1] = block[2] = block[3] = 0.0f;
    if constexpr (!kKeepsQuery) __syncthreads();
  }
  __device__ auto kept_tile(int tile) -> std::uint32_t (&)[kSteps][4] {
    return *reinterpret_cast<std::uint32_t(*)[kSteps][4]>(&kept[tile * kSteps]);
  }
  __device__ std::uint32_t query_at(int i) const {
    return queries + (static_cast<std::uint32_t>(i) * 32 + threadIdx.x % 32) * 16;
  }
  __device__ void st_query(int i, const std::uint32_t (&a)[4]) const {
#pragma unroll
    for (int c = 0; c < 4; ++c) ptx::st_shared_u32(query_at(i) + 4 * c, a[c]);
  }
  __device__ void query(std::uint32_t (&a)[4], int tile, int step) const {
    const int i = tile * kSteps + step;
    if constexpr (kKeepsQuery) {
#pragma unroll
      for (int c = 0; c < 4; ++c) a[c] = kept[i][c];
    } else {
      const uint4 x = ptx::ld_shared_v4_u32(query_at(i));
      a[0] = x.x, a[1] = x.y, a[2] = x.z, a[3] = x.w;
    }
  }

  // ---- a step

  /// Products with 16 keys. Even and odd steps have accumulators of their own: half as long chains.
  __device__ void score(Scores (&s)[kTiles], std::uint32_t keys) const {
#pragma unroll
    for (int block = 0; block < kKeyBlocks; ++block) {
      float d[kTiles][2][2][4] = {};
#pragma unroll
      for (int step = 0; step < kSteps; step += Operands::kKeySteps) {
        std::uint32_t b[Operands::kKeySteps][2][2];
        Operands::template load_keys<kRowBytes>(
            b, keys + static_cast<std::uint32_t>(block) * (16 * kRowBytes),
            static_cast<std::uint32_t>(step));
#pragma unroll
        for (int k = 0; k < Operands::kKeySteps; ++k) {
#pragma unroll
          for (int tile = 0; tile < kTiles; ++tile) {
            std::uint32_t a[4];
            query(a, tile, step + k);
            auto& to = d[tile][kKeepsQuery && kTiles == 1 ? (step + k) % 2 : 0];
            Operands::multiply(to[0], a, b[k][0]);
            Operands::multiply(to[1], a, b[k][1]);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kTiles * 8; ++i) {
        const auto& of = d[i / 8];
        s[i / 8][block * 8 + i % 8] = of[0][i / 4 % 2][i % 4] + of[1][i / 4 % 2][i % 4];
      }
    }
  }

  /// Products to scores, of hidden keys to -inf.
  __device__ void finish_scores(Scores& s, const DecodeSegment& segment, std::int32_t first_key,
                                int tile) const {
    const bool is_capped = p.softcap_scale != 0.0f;
    if (Operands::kIsCodes || is_capped) {
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) {
        float factor = p.softcap_scale;
        if constexpr (Operands::kIsCodes) factor = unit[tile][arch::accumulator_row(i)];
        s[i] = factor * s[i];
      }
    }
    if (is_capped) {
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i)
        s[i] = tanh_of_half(s[i]) * (Operands::kIsCodes ? p.scale_log2 : 1.0f);
    }
    const DecodeVisible of_first(p, segment.length, 0), of_last(p, segment.length, p.q_len - 1);
    const std::int32_t end = first_key + kKeys;
    if (first_key >= of_last.begin && end <= of_first.end && end <= segment.key_end) return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const DecodeRow row(p, segment.kv_head, row_of(segment, tile, h));
      const DecodeVisible seen(p, segment.length, min(row.query, p.q_len - 1));
      const std::int32_t seen_end = min(seen.end, segment.key_end);
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) {
        const int score = arch::accumulator_of(h, i);
        const std::int32_t key =
            first_key + arch::accumulator_column(score) +
            static_cast<std::int32_t>(arch::accumulator_first_column(threadIdx.x));
        if (key < seen.begin || key >= seen_end) s[score] = -INFINITY;
      }
    }
  }

  /// `at`: the shared address of keys, with values behind them.
  __device__ void add_step(const DecodeSegment& segment, std::int32_t first_key, std::uint32_t at) {
    Scores s[kTiles];
    score(s, at);
    std::uint32_t weights[kTiles][kKeyBlocks][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      finish_scores(s[tile], segment, first_key, tile);
      float base[2], correction[2];
      const bool moves =
          softmax[tile].template raise_reference<true>(s[tile], scale(), base, correction);
      softmax[tile].exponentiate(s[tile], scale(), base, correction);
      if (moves) {
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) scale_rows(o[tile * kBlocks + i], correction);
      }
#pragma unroll
      for (int i = 0; i < 4 * kKeyBlocks; ++i) {
        const float* const pair = &s[tile][arch::operand_source_16bit(i / 4, i % 4)];
        weights[tile][i / 4][i % 4] = Element::pack(pair[0], pair[1]);
      }
    }
    const std::uint32_t values = at + kKeys * kRowBytes;
#pragma unroll
    for (int block = 0; block < kKeyBlocks; ++block) {
#pragma unroll
      for (int step = 0; step < kSteps; step += Operands::kValueSteps) {
        std::uint32_t b[Operands::kValueSteps][2][2];
        Operands::template load_values<kRowBytes>(
            b, values + static_cast<std::uint32_t>(block) * (16 * kRowBytes),
            static_cast<std::uint32_t>(step));
#pragma unroll
        for (int i = 0; i < 2 * Operands::kValueSteps; ++i) {
#pragma unroll
          for (int tile = 0; tile < kTiles; ++tile)
            Operands::multiply(o[tile * kBlocks + 2 * step + i], weights[tile][block],
                               b[i / 2][i % 2]);
        }
      }
    }
  }
};

}  // namespace tilewright::tile
