// The end of a tile in a CTA: what its teams have summed becomes one sum, of which each has some
// dimensions, and leaves as a result or as a part of one. Who adds the last part of a tile merges
// all.
//
// In a round, warps whose team numbers differ in one bit exchange halves of what they still have:
// all of them add, and a barrier a round is enough, because a warp next writes where it alone has
// read.
#pragma once

#include "tile/decode_consumer.h"
#include "tile/decode_parts.h"

#include <cstdint>

namespace tilewright::tile {

template <kernels::DecodeKv Kv, kernels::DecodeShape Shape>
struct DecodeMerger {
  using Consumer = DecodeConsumer<Kv, Shape>;
  using Operands = DecodeOperands<Kv>;
  static constexpr int kTeams = Shape.teams, kRowWarps = Shape.row_warps;
  static constexpr int kTiles = Shape.warp_tiles, kDim = Shape.head_dim;
  static constexpr int kAll = kTiles * (kDim / 8) / Shape.portions();  ///< blocks of a portion
  static constexpr int kMine = kAll / kTeams;                          ///< after all rounds
  static_assert(kMine >= 1);

  Consumer& c;
  float* exchange;  ///< [warp][block / 2][lane][4]
  float2* sums;     ///< [team][row]

  __device__ float* slot(std::uint32_t team) const {
    return exchange + (team * kRowWarps + c.row_warp) * (kAll / 2 * 128) + threadIdx.x % 32 * 4;
  }
  __device__ std::uint32_t row_in_tile(int tile, int h) const {
    return (c.row_warp * kTiles + static_cast<std::uint32_t>(tile)) * 16 + c.g +
           8 * static_cast<std::uint32_t>(h);
  }

  /// References and sums of all teams; what this warp has becomes relative to the common one.
  __device__ void share_sums(float (&reference)[kTiles][2], float (&sum)[kTiles][2]) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const OnlineSoftmax& mine = c.softmax[i / 2];
      const float all = quad_sum(mine.sum[i % 2]);
      if (threadIdx.x % 4 == 0)
        sums[c.team * Shape.rows() + row_in_tile(i / 2, i % 2)] =
            make_float2(mine.max[i % 2] * c.scale(), all);
    }
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float2 of[kTeams];
        float top = -INFINITY, total = 0.0f;
#pragma unroll
        for (int i = 0; i < kTeams; ++i) {
          of[i] = sums[i * Shape.rows() + row_in_tile(tile, h)];
          top = fmaxf(top, of[i].x);
        }
        const float base = top == -INFINITY ? 0.0f : top;
#pragma unroll
        for (int i = 0; i < kTeams; ++i)
          total = fmaf(of[i].y, ptx::ex2_approx_ftz_f32(of[i].x - base), total);
        factor[h] = ptx::ex2_approx_ftz_f32(c.softmax[tile].max[h] * c.scale() - base);
        reference[tile][h] = top, sum[tile][h] = total;
      }
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) scale_rows(c.o[tile * (kDim / 8) + i], factor);
    }
  }

  /// With the warp whose team differs in bit Bit, and then those of lower bits. Returns the first
  /// of the blocks that this warp is left with, in o[0] and up.
  template <int Bit, int Count>
  __device__ int reduce(float (&o)[kAll][4], std::uint32_t from_slot) {
    if constexpr (Bit == 0) {
      return 0;
    } else {
      const bool keeps_upper = (c.team & Bit) != 0;
      float* const to = slot(from_slot);
#pragma unroll
      for (int i = 0; i < Count / 2; ++i) {
        const auto& low = o[i];
        const auto& high = o[i + Count / 2];
        *reinterpret_cast<float4*>(to + i * 128) =
            keeps_upper ? make_float4(low[0], low[1], low[2], low[3])
                        : make_float4(high[0], high[1], high[2], high[3]);
      }
      __syncthreads();
      // Where the partner wrote: its own place is wherever this warp's is, with the bit flipped.
      const std::uint32_t theirs = from_slot ^ Bit;
      const float* const from = slot(theirs);
#pragma unroll
      for (int i = 0; i < Count / 2; ++i) {
        const float4 x = *reinterpret_cast<const float4*>(from + i * 128);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          o[i][k] = (keeps_upper ? o[i + Count / 2][k] : o[i][k]) + (k == 0   ? x.x
                                                                     : k == 1 ? x.y
                                                                     : k == 2 ? x.z
                                                                              : x.w);
      }
      const int rest = reduce<Bit / 2, Count / 2>(o, theirs);
      return rest + (keeps_upper ? Count / 2 : 0);
    }
  }

  __device__ void store(const DecodeSegment& segment) {
    float reference[kTiles][2], sum[kTiles][2];
    share_sums(reference, sum);
    constexpr int kBlocks = kDim / 8;
    static_assert(kMine <= kBlocks);  // then what a warp is left with is of one tile
#pragma unroll
    for (int portion = 0; portion < Shape.portions(); ++portion) {
      if (portion > 0) __syncthreads();  // all have read what the last round wrote
      auto& o = *reinterpret_cast<float(*)[kAll][4]>(&c.o[portion * kAll]);
      const int first = portion * kAll + reduce<kTeams / 2, kAll>(o, c.team);
      const int tile = first / kBlocks, block = first % kBlocks;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float of_row = kTiles == 1 || tile == 0 ? reference[0][h] : reference[kTiles - 1][h];
        const float total = kTiles == 1 || tile == 0 ? sum[0][h] : sum[kTiles - 1][h];
        const DecodeRow row(c.p, segment.kv_head, c.row_of(segment, tile, h));
        if (!row.exists) continue;
        if (segment.slot >= 0) {
          store_partial(segment, o, static_cast<std::int32_t>(row_in_tile(tile, h)), block, h,
                        of_row, total);
        } else {
          store_row(segment, o, row, block, h, of_row, total);
        }
      }
    }
  }

  /// Behind store() of a part: counts it, and merges all if it is the last one.
  __device__ void finish_part(const DecodeSegment& segment, unsigned long long seen) const {
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
      const DecodeCounter counter(c.p, segment.merge.first_slot);
      counter.validate(seen);
      is_last = counter.add(segment.merge.parts);
    }
    __syncthreads();
    if (!is_last) return;
    const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
#pragma unroll 1
    for (std::int32_t row = warp; row < Shape.rows(); row += Shape.warps())
      merge_parts<kDim>(c.p, segment, row);
  }

  __device__ void store_partial(const DecodeSegment& segment, const float (&o)[kAll][4],
                                std::int32_t row, int block, int h, float reference,
                                float sum) const {
    const std::int64_t at = std::int64_t{segment.slot} * Shape.rows() + row;
    float* const to = c.p.partial_out + at * kDim;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const std::uint32_t dim = Operands::dim_of(block + i, 0);
      if constexpr (Operands::kIsCodes) {
        to[dim] = o[i][2 * h], to[dim + 2] = o[i][2 * h + 1];
      } else {
        *reinterpret_cast<float2*>(to + dim) = make_float2(o[i][2 * h], o[i][2 * h + 1]);
      }
    }
    if (block == 0 && threadIdx.x % 4 == 0)
      reinterpret_cast<float2*>(c.p.partial_sums)[at] = make_float2(reference, sum);
  }

  __device__ void store_row(const DecodeSegment& segment, const float (&o)[kAll][4],
                            const DecodeRow& row, int block, int h, float reference,
                            float sum) const {
    const kernels::DecodeParams& p = c.p;
    const DecodeResult result(reference, sum, p.sink == nullptr ? nullptr : p.sink + row.head);
    const float factor =
        result.factor * decode_value_descale(p, segment.batch_idx, segment.kv_head);
    auto* const to =
        static_cast<std::uint16_t*>(p.out) + row.offset(p.out_strides, segment.batch_idx);
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const std::uint32_t dim = Operands::dim_of(block + i, 0);
      const float x = o[i][2 * h] * factor, y = o[i][2 * h + 1] * factor;
      if constexpr (Operands::kIsCodes) {
        const std::uint32_t pair = p.q_is_f16 != 0 ? Fp16::pack(x, y) : Bf16::pack(x, y);
        to[dim] = static_cast<std::uint16_t>(pair),
        to[dim + 2] = static_cast<std::uint16_t>(pair >> 16);
      } else {
        *reinterpret_cast<std::uint32_t*>(to + dim) = Consumer::Element::pack(x, y);
      }
    }
    if (block == 0 && threadIdx.x % 4 == 0 && p.lse != nullptr)
      p.lse[row.lse_offset(p, segment.batch_idx)] = result.lse;
  }
};

}  // namespace tilewright::tile
