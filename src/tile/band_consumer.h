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

/// Sums of 16 rows while they grow; with 8 tokens twice, added up at the end.
template <int Tiles>
using Chains = float[Tiles == 1 ? 2 : Tiles][4];

/// A fragments of 16 rows by a K block of 64, four products.
using BandRows = std::uint32_t[4][4];

template <class C>
struct BandConsumer {
  static constexpr WeightFormat kFormat = C::kFormat;

  const BandParams& params;
  BandShared shared;
  DeepRing ring;
  DeepRing::Position at;
  std::uint32_t row_warp, k_group;               ///< of the warp: its rows, its stages
  std::uint32_t granule_at, scale_at, token_at;  ///< of this lane, in a brick and among tokens

  __device__ BandConsumer(const BandParams& p, std::uint32_t warp)
      : params(p),
        shared{p.cut},
        ring{shared},
        row_warp(warp % (p.cut.tile_bricks / BandTile::kWarpBricks)),
        k_group(warp / (p.cut.tile_bricks / BandTile::kWarpBricks)) {
    const std::uint32_t lane = threadIdx.x % 32;
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
        const std::uint32_t selector = scale_selector(threadIdx.x % 4);
        factors[0] = bf16_factors<kFormat>(scales.x, selector);
        factors[1] = bf16_factors<kFormat>(scales.y, selector);
      } else {
        const std::uint32_t scales = *reinterpret_cast<const std::uint32_t*>(brick + scale_at);
        factors[0] = bf16_factors<kFormat>(scales, scale_selector(threadIdx.x % 4 / 2));
        factors[1] = bf16_factors<kFormat>(scales, scale_selector(threadIdx.x % 4 / 2 + 2));
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

  __device__ void read_tokens(std::uint32_t (&b)[4][2], const std::uint8_t* tokens,
                              int tile) const {
    const auto* x = reinterpret_cast<const uint4*>(tokens + token_at + tile * 8 * C::kTokenBytes);
    const uint4 first = x[0], second = x[1];
    b[0][0] = first.x, b[1][0] = first.y, b[2][0] = first.z, b[3][0] = first.w;
    b[0][1] = second.x, b[1][1] = second.y, b[2][1] = second.z, b[3][1] = second.w;
  }

  // One K block: some bricks of this warp by Tiles times 8 tokens. A product waits for the last one
  // into the same sum, some 33 clocks; so four sums are added to in turn.
  template <int Tiles, int Bricks>
  __device__ void multiply(Chains<Tiles> (&sums)[Bricks], const std::uint8_t* const* bricks,
                           const std::uint8_t* tokens) const {
    BandRows a[Bricks];
#pragma unroll
    for (int i = 0; i < Bricks; ++i) read_rows(a[i], bricks[i]);
    constexpr int kAtOnce = Tiles == 1 ? 1 : Bricks == 1 ? Tiles : 2;
#pragma unroll
    for (int first = 0; first < Tiles; first += kAtOnce) {
      std::uint32_t b[kAtOnce][4][2];
#pragma unroll
      for (int tile = 0; tile < kAtOnce; ++tile) read_tokens(b[tile], tokens, first + tile);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int tile = 0; tile < kAtOnce; ++tile) {
#pragma unroll
          for (int i = 0; i < Bricks; ++i) {
            auto& sum = sums[i][Tiles == 1 ? j % 2 : first + tile];
            ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum, a[i][j], b[tile][j], sum);
          }
        }
      }
    }
  }

  /// Adds the unit's products over this warp's steps of K to `sums`.
  template <int Tiles>
  __device__ void accumulate(BandSums<Tiles>& sums, const BandUnit& unit, const BandSteps& steps) {
    // Bricks behind the last are read as the last, and their sums forgotten.
    std::int32_t brick[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      brick[i] =
          min(static_cast<std::int32_t>(row_warp) * BandTile::kWarpBricks + i, unit.bricks - 1) *
          C::kBrickBytes;
    }
    Chains<Tiles> chains[2] = {};
    auto turn = static_cast<std::int32_t>(k_group);
    for (std::int32_t step = steps.begin; step < steps.end; ++step) {
      if (turn == 0) {
        const std::uint8_t* stage = shared.stage(at.stage);
        ring.wait_full(at);
        if constexpr (kFormat == WeightFormat::kFp8) {
          add_scaled_stage<Tiles>(chains, stage, brick, step);
        } else {
          add_stage<Tiles, 2>(chains, stage, brick, step);
        }
        ring.release(at);
        turn = params.cut.k_groups;
      }
      --turn;
      ring.advance(at);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
        for (int c = 0; c < 4; ++c)
          sums[i][tile][c] = chains[i][tile][c] + (Tiles == 1 ? chains[i][1][c] : 0.0f);
      }
    }
  }

 private:
  template <int Tiles, int Bricks>
  __device__ void add_stage(Chains<Tiles> (&sums)[Bricks], const std::uint8_t* stage,
                            const std::int32_t* brick, std::int32_t step) const {
    // With many tokens ptxas would load both blocks' ahead, more than there are registers.
#pragma unroll(Tiles > 2 ? 1 : C::kBlocks)
    for (int block = 0; block < C::kBlocks; ++block) {
      if (block > 0 && step * C::kBlocks + block >= params.cut.all_blocks) break;
      const std::uint8_t* weights = stage + block * params.cut.tile_bricks * C::kBrickBytes;
      const std::uint8_t* bricks[Bricks];
#pragma unroll
      for (int i = 0; i < Bricks; ++i) bricks[i] = weights + brick[i];
      multiply<Tiles, Bricks>(sums, bricks, stage + params.cut.tokens_at + block * 128);
    }
  }

  // kFp8: the stage's products are a sum of their own, which the block scales then multiply. With
  // many tokens one brick after the other: there are registers for one such sum only.
  template <int Tiles>
  __device__ void add_scaled_stage(Chains<Tiles> (&sums)[2], const std::uint8_t* stage,
                                   const std::int32_t (&brick)[2], std::int32_t step) const {
    constexpr int kBricks = Tiles > 2 ? 1 : 2, kChains = Tiles == 1 ? 2 : Tiles;
    const float2 scales = reinterpret_cast<const float2*>(stage + params.cut.scales_at)[row_warp];
#pragma unroll
    for (int first = 0; first < 2; first += kBricks) {
      Chains<Tiles> products[kBricks] = {};
      add_stage<Tiles, kBricks>(products, stage, brick + first, step);
#pragma unroll
      for (int i = 0; i < kBricks; ++i) {
#pragma unroll
        for (int chain = 0; chain < kChains; ++chain) {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            sums[first + i][chain][c] += products[i][chain][c] * (c < 2 ? scales.x : scales.y);
        }
      }
    }
  }
};

}  // namespace tilewright::tile
