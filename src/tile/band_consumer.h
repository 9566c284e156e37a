// The multiplying warps of the bandwidth kernel: 32 rows of weights each, by 8, 16, 32 or 64
// tokens.
#pragma once

#include "ptx/mma_sync.h"
#include "tile/band_work.h"
#include "tile/decode_fp4.h"

namespace tilewright::tile {

/// Sums of a warp: two times 16 rows by Tiles times 8 tokens, as mma.m16n8k16 leaves them.
template <int Tiles>
using BandSums = float[2][Tiles][4];

/// A fragments of 16 rows by a K block of 64, four products.
using BandRows = std::uint32_t[4][4];

template <class C>
struct BandConsumer {
  static constexpr WeightFormat kFormat = C::kFormat;

  const BandParams& params;
  const BandShared<C>& shared;
  DeepRing ring;
  DeepRing::Position at;
  std::uint32_t warp, lane;
  std::uint32_t granule_at, scale_at, token_at;  ///< of this lane, in a brick and among tokens

  __device__ BandConsumer(const BandParams& p, const BandShared<C>& s, std::uint32_t warp_index)
      : params(p), shared(s), ring(s.ring(p)), warp(warp_index), lane(threadIdx.x % 32) {
    const auto g = static_cast<int>(lane / 4), t = static_cast<int>(lane % 4);
    granule_at = static_cast<std::uint32_t>(kernels::granule_position(g, t)) * 16;
    scale_at = 512 + lane / 4 * (kFormat == WeightFormat::kNvfp4 ? 8 : 4);
    token_at = lane / 4 * C::kTokenBytes + lane % 4 * 32;
  }

  // Weights of one brick, in the order of K in which tokens are read: group t, word j.
  __device__ void read_rows(BandRows& a, const std::uint8_t* brick) const {
    const auto* granule = reinterpret_cast<const uint4*>(brick + granule_at);
    if constexpr (kernels::is_fp4(kFormat)) {
      const uint4 codes = granule[0];
      std::uint32_t factors[2];
      if constexpr (kFormat == WeightFormat::kNvfp4) {
        const uint2 scales = *reinterpret_cast<const uint2*>(brick + scale_at);
        const std::uint32_t selector = scale_selector(lane % 4);
        factors[0] = bf16_factors<kFormat>(scales.x, selector);
        factors[1] = bf16_factors<kFormat>(scales.y, selector);
      } else {
        const std::uint32_t scales = *reinterpret_cast<const std::uint32_t*>(brick + scale_at);
        factors[0] = bf16_factors<kFormat>(scales, scale_selector(lane % 4 / 2));
        factors[1] = bf16_factors<kFormat>(scales, scale_selector(lane % 4 / 2 + 2));
      }
      const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) decode_fp4_bf16<C::kOrder>(a[j], words[j], factors);
    } else if constexpr (kFormat == WeightFormat::kFp8) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 codes = granule[half * kernels::kGranules];
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          std::uint32_t pairs[2];
          decode_e4m3_bf16(pairs, words[j]);
          a[j][half] = pairs[0];
          a[j][2 + half] = pairs[1];
        }
      }
    } else {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const uint4 pairs = granule[part * kernels::kGranules];
        const std::uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) a[j][part / 2 + part % 2 * 2] = words[j];
      }
    }
  }

  // One K block: `bricks` of this warp, `tokens` of the block.
  template <int Tiles>
  __device__ void multiply(BandSums<Tiles>& sums, const std::uint8_t* const (&bricks)[2],
                           const std::uint8_t* tokens) const {
    BandRows a[2];
    read_rows(a[0], bricks[0]);
    read_rows(a[1], bricks[1]);
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      const auto* x = reinterpret_cast<const uint4*>(tokens + token_at + tile * 8 * C::kTokenBytes);
      const uint4 first = x[0], second = x[1];
      const std::uint32_t b[4][2] = {
          {first.x, second.x}, {first.y, second.y}, {first.z, second.z}, {first.w, second.w}};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sums[i][tile], a[i][j], b[j],
                                                           sums[i][tile]);
        }
      }
    }
  }

  /// Adds the unit's products over this CTA's steps of K to `sums`.
  template <int Tiles>
  __device__ void accumulate(BandSums<Tiles>& sums, const BandUnit& unit, const BandSteps& steps) {
    // Bricks behind the last are read as the last, and their sums forgotten.
    std::int32_t brick[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      brick[i] = min(static_cast<std::int32_t>(warp) * BandTile::kWarpBricks + i, unit.bricks - 1) *
                 C::kBrickBytes;
    }
    for (std::int32_t step = steps.begin; step < steps.end; ++step) {
      const std::uint8_t* stage = shared.stage(at.stage);
      ring.wait_full(at);
      if constexpr (kFormat == WeightFormat::kFp8) {
        const float2 scales = reinterpret_cast<const float2*>(stage + shared.scales_at)[warp];
        BandSums<Tiles> block = {};
        add_stage<Tiles>(block, stage, brick, step, steps.all_blocks);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
          for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
            for (int c = 0; c < 4; ++c)
              sums[i][tile][c] += block[i][tile][c] * (c < 2 ? scales.x : scales.y);
          }
        }
      } else {
        add_stage<Tiles>(sums, stage, brick, step, steps.all_blocks);
      }
      ring.release(at);
      ring.advance(at);
    }
  }

 private:
  template <int Tiles>
  __device__ void add_stage(BandSums<Tiles>& sums, const std::uint8_t* stage,
                            const std::int32_t (&brick)[2], std::int32_t step,
                            std::int32_t all_blocks) const {
    // With many tokens ptxas would load both blocks' ahead, more than there are registers.
#pragma unroll(Tiles > 2 ? 1 : C::kBlocks)
    for (int block = 0; block < C::kBlocks; ++block) {
      if (block > 0 && step * C::kBlocks + block >= all_blocks) break;
      const std::uint8_t* weights = stage + block * params.tile_bricks * C::kBrickBytes;
      const std::uint8_t* const bricks[2] = {weights + brick[0], weights + brick[1]};
      multiply<Tiles>(sums, bricks, stage + shared.tokens_at + block * 128);
    }
  }
};

}  // namespace tilewright::tile
