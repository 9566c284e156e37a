// The end of a tile in a CTA: the sums of its teams are reduced, each team keeping some dimensions,
// and stored as the result or as a split of it. The CTA that stores the last split merges all.
//
// In a round, warps whose team numbers differ in one bit exchange halves of what they still have.
// One barrier per round suffices, because a warp next writes where it alone has read.
#pragma once

#include "kernels/attention/decode/consumer.h"
#include "kernels/attention/decode/parts.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// The CTAs that attend to a segment together, a cluster of 1, 2, 4 or 8: each has a part of its
/// keys, and merges a part of the dimensions of all.
struct DecodeGroup {
  std::uint32_t rank = ptx::cluster_ctarank();
  std::uint32_t log2_size = 31 - __clz(static_cast<int>(ptx::cluster_nctarank()));
  bool is_read = false;  ///< others may be reading what this CTA has published

  /// To all CTAs: what the threads of this one have written to shared memory.
  __device__ void publish() const {
    if (log2_size == 0) return __syncthreads();
    ptx::cluster_sync();
  }
  /// This CTA has read it.
  __device__ void release() {
    if (log2_size > 0) ptx::barrier_cluster_arrive_aligned();
    is_read = true;
  }
  /// All have: it may be overwritten.
  __device__ void acquire() {
    if (!is_read) return;
    is_read = false;
    if (log2_size == 0) return __syncthreads();
    ptx::barrier_cluster_wait_aligned();
  }
};

template <kernels::DecodeKv Kv, kernels::DecodeShape Shape>
struct DecodeMerger {
  using Consumer = DecodeConsumer<Kv, Shape>;
  using Operands = DecodeOperands<Kv>;
  static constexpr int kTeams = Shape.teams, kRowWarps = Shape.row_warps;
  static constexpr int kTiles = Shape.warp_tiles, kDim = Shape.head_dim;
  static constexpr int kAll = kTiles * (kDim / 8) / Shape.portions();  ///< blocks of a portion
  static constexpr int kMine = kAll / kTeams;                          ///< after all rounds
  static constexpr int kBlocks = kDim / 8;
  static_assert(kMine >= 1 && kMine <= kBlocks);  // what a warp is left with is of one tile
  static constexpr int kPortionTiles = kAll > kBlocks ? kAll / kBlocks : 1;
  static constexpr int kPortionRows = kPortionTiles * kRowWarps * 16;
  static constexpr int kPortionDims = 8 * (kAll < kBlocks ? kAll : kBlocks);
  static constexpr std::uint32_t kQuads = kPortionDims / 4;
  static_assert(kQuads % kernels::kDecodeMaxCluster == 0);  // CTAs of a cluster merge as many each
  static_assert(kPortionRows * kPortionDims * 4 <= Shape.exchange_bytes());

  Consumer& c;
  float* exchange;  ///< [warp][block / 2][lane][4]; then results [row][dim] of a portion
  float2* sums;     ///< [team][row]; then [row] of the CTA
  bool& is_last_part;
  DecodeGroup group;

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

  /// Where dimensions 4 quad and up of a row of a portion's results are.
  __device__ static std::uint32_t result_at(std::uint32_t row, std::uint32_t quad) {
    return (row * (kPortionDims / 4) + (quad ^ (row & 7))) * 16;
  }
  __device__ void put_results(const float (&o)[kAll][4], int first) const {
    const int tile = first / kBlocks % kPortionTiles, block = first % kBlocks;
    auto* const to = reinterpret_cast<unsigned char*>(exchange);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::uint32_t row =
          (static_cast<std::uint32_t>(tile) * kRowWarps + c.row_warp) * 16 + c.g + 8u * h;
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        const std::uint32_t dim = Operands::dim_of(block + i, 0) % kPortionDims;
        auto* const at = reinterpret_cast<float*>(to + result_at(row, dim / 4)) + dim % 4;
        const float* const pair = &o[i][arch::accumulator_of(h, 0)];
        at[0] = pair[0], at[Operands::kIsCodes ? 2 : 1] = pair[1];
      }
    }
  }

  /// The quads of a row that a CTA of a group merges.
  class QuadShare {
    static constexpr bool kIsPower = (kQuads & (kQuads - 1)) == 0;
    static constexpr std::uint32_t kBits = kQuads == 16 ? 4 : 5;
    static_assert(!kIsPower || kQuads == 1u << kBits);

   public:
    __device__ explicit QuadShare(const DecodeGroup& group)
        : n_(kIsPower ? kBits - group.log2_size : kQuads >> group.log2_size) {}
    __device__ std::uint32_t of_rows(std::uint32_t r) const { return kIsPower ? r << n_ : r * n_; }
    __device__ std::uint32_t row(std::uint32_t i) const { return kIsPower ? i >> n_ : i / n_; }
    __device__ std::uint32_t quad(const DecodeGroup& group, std::uint32_t i,
                                  std::uint32_t row) const {
      if constexpr (kIsPower) return (group.rank << n_) + (i & ((1u << n_) - 1));
      return group.rank * n_ + (i - row * n_);
    }

   private:
    std::uint32_t n_;  ///< log2 of it if that is a number
  };

  /// What this CTA merges of a portion's results: `body(row of the portion, row of the tile, which
  /// query and head that is, first of four dimensions)`.
  template <class Body>
  __device__ void for_each_quad(const DecodeSegment& segment, int portion, const Body& body) const {
    const QuadShare share(group);
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x; i < share.of_rows(kPortionRows); i += Shape.threads()) {
      const std::uint32_t at = share.row(i), tile_warp = at / 16;
      const std::uint32_t quad = share.quad(group, i, at);
      const std::uint32_t tile = portion * kAll / kBlocks + tile_warp / kRowWarps;
      const std::uint32_t in_tile = (tile_warp % kRowWarps * kTiles + tile) * 16 + at % 16;
      const DecodeRow row(c.p, segment.kv_head,
                          segment.m_tile * Shape.rows() + static_cast<std::int32_t>(in_tile));
      if (row.exists) body(at, in_tile, row, quad * 4 + portion * kAll % kBlocks * 8);
    }
  }

  __device__ DecodeCounter counter(const DecodeSegment& segment) const {
    return {c.p,
            (segment.merge.first_slot << group.log2_size) + static_cast<std::int32_t>(group.rank)};
  }
  /// What store() will want to know of a part's counter: on its way meanwhile.
  __device__ unsigned long long look(const DecodeSegment& segment) const {
    return segment.slot >= 0 && threadIdx.x == 0 ? counter(segment).look() : 0;
  }

  /// The end of a segment.
  __device__ void store(const DecodeSegment& segment, unsigned long long seen) {
    float reference[kTiles][2], sum[kTiles][2];
    group.acquire();
    share_sums(reference, sum);
#pragma unroll
    for (int portion = 0; portion < Shape.portions(); ++portion) {
      if (portion > 0) group.acquire();
      auto& o = *reinterpret_cast<float(*)[kAll][4]>(&c.o[portion * kAll]);
      const int first = portion * kAll + reduce<kTeams / 2, kAll>(o, c.team);
      if (group.log2_size == 0) {
        store_alone(segment, o, first, reference, sum);
      } else {
        __syncthreads();  // all have read what the last round wrote
        put_results(o, first);
        if (portion == 0) put_sums(reference, sum);
        group.publish();
        store_share(segment, portion);
      }
      group.release();
    }
    if (segment.slot >= 0) finish_part(segment, seen);
  }

  /// What this warp is left with, if the CTA is alone in its group.
  __device__ void store_alone(const DecodeSegment& segment, const float (&o)[kAll][4], int first,
                              const float (&reference)[kTiles][2],
                              const float (&sum)[kTiles][2]) const {
    const int tile = first / kBlocks, block = first % kBlocks;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float of_row = kTiles == 1 || tile == 0 ? reference[0][h] : reference[kTiles - 1][h];
      const float total = kTiles == 1 || tile == 0 ? sum[0][h] : sum[kTiles - 1][h];
      const DecodeRow row(c.p, segment.kv_head, c.row_of(segment, tile, h));
      if (!row.exists) continue;
      if (segment.slot >= 0) {
        store_partial(segment, o, row_in_tile(tile, h), block, h, of_row, total);
      } else {
        store_row(segment, o, row, block, h, of_row, total);
      }
    }
  }
  __device__ void store_partial(const DecodeSegment& segment, const float (&o)[kAll][4],
                                std::uint32_t row, int block, int h, float reference,
                                float sum) const {
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      float* const to = part_values(segment.slot, row, Operands::dim_of(block + i, 0));
      const float* const pair = &o[i][arch::accumulator_of(h, 0)];
      if constexpr (Operands::kIsCodes) {
        to[0] = pair[0], to[2] = pair[1];
      } else {
        *reinterpret_cast<float2*>(to) = make_float2(pair[0], pair[1]);
      }
    }
    if (block == 0 && threadIdx.x % 4 == 0)
      *part_sums(segment.slot, row) = make_float2(reference, sum);
  }
  __device__ void store_row(const DecodeSegment& segment, const float (&o)[kAll][4],
                            const DecodeRow& row, int block, int h, float reference,
                            float sum) const {
    const auto& p = c.p;
    const RowEnd result(reference, NoScale(), sum, p.sink == nullptr ? nullptr : p.sink + row.head);
    const float factor =
        result.factor * decode_value_descale(p, segment.batch_idx, segment.kv_head);
    auto* const to =
        static_cast<std::uint16_t*>(p.out) + row.offset(p.out_strides, segment.batch_idx);
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const std::uint32_t dim = Operands::dim_of(block + i, 0);
      if (!decode_has_dim(p, dim)) continue;
      const float* const of_row = &o[i][arch::accumulator_of(h, 0)];
      const float x = of_row[0] * factor, y = of_row[1] * factor;
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

  /// This CTA's dimensions of what all CTAs of the group have published.
  __device__ void store_share(const DecodeSegment& segment, int portion) const {
    const std::uint32_t results = ptx::shared_address(exchange);
    const std::uint32_t row_sums = ptx::shared_address(sums);
    for_each_quad(
        segment, portion,
        [&](std::uint32_t at, std::uint32_t in_tile, const DecodeRow& row, std::uint32_t dim) {
          DecodeSum all;
          all.add<kernels::kDecodeMaxCluster>(1 << group.log2_size, [&](std::int32_t rank,
                                                                        float2& s, float4& x) {
            const auto of = static_cast<std::uint32_t>(rank);
            s = ptx::ld_shared_cluster_v2_f32(ptx::mapa_shared_cluster(row_sums + in_tile * 8, of));
            x = ptx::ld_shared_cluster_v4_f32(
                ptx::mapa_shared_cluster(results + result_at(at, dim % kPortionDims / 4), of));
          });
          if (segment.slot < 0) return all.store(c.p, segment, row, dim);
          *reinterpret_cast<float4*>(part_values(segment.slot, in_tile, dim)) =
              make_float4(all.x[0], all.x[1], all.x[2], all.x[3]);
          if (portion == 0)
            *part_sums(segment.slot, in_tile) = make_float2(all.reference, all.total);
        });
  }
  __device__ void put_sums(const float (&reference)[kTiles][2],
                           const float (&sum)[kTiles][2]) const {
    if (c.team != 0 || threadIdx.x % 4 != 0) return;
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i)
      sums[row_in_tile(i / 2, i % 2)] = make_float2(reference[i / 2][i % 2], sum[i / 2][i % 2]);
  }

  /// Counts a part, and merges all if it is the last one.
  __device__ void finish_part(const DecodeSegment& segment, unsigned long long seen) const {
    __syncthreads();
    if (threadIdx.x == 0) {
      const DecodeCounter of_tile = counter(segment);
      of_tile.validate(seen);
      is_last_part = of_tile.add(segment.merge.parts);
    }
    __syncthreads();
    if (!is_last_part) return;
    const DecodeMerge merge = segment.merge;
#pragma unroll 1
    for (int portion = 0; portion < Shape.portions(); ++portion) {
      for_each_quad(
          segment, portion,
          [&](std::uint32_t, std::uint32_t in_tile, const DecodeRow& row, std::uint32_t dim) {
            DecodeSum all;
            all.add<16>(merge.parts, [&](std::int32_t part, float2& s, float4& x) {
              s = *part_sums(merge.slot(part), in_tile);
              x = *reinterpret_cast<const float4*>(part_values(merge.slot(part), in_tile, dim));
            });
            all.store(c.p, segment, row, dim);
          });
    }
  }

  __device__ float* part_values(std::int32_t slot, std::uint32_t row, std::uint32_t dim) const {
    return c.p.partial_out + (std::int64_t{slot} * Shape.rows() + row) * kDim + dim;
  }
  /// Each CTA of a cluster has its own: it merges what it has written.
  __device__ float2* part_sums(std::int32_t slot, std::uint32_t row) const {
    return reinterpret_cast<float2*>(c.p.partial_sums) +
           ((std::int64_t{slot} << group.log2_size) + group.rank) * Shape.rows() + row;
  }
};

}  // namespace tilewright::tile
