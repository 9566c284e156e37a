// The multiplying warps of the bandwidth kernel: 32 rows of weights each, by 8, 16, 32 or 64
// tokens.
#pragma once

#include "kernels/linear/band/work.h"
#include "kernels/linear/unpack_fp4.h"
#include "ptx/load_store.h"
#include "ptx/mma_sync.h"

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
  DeepRing ring;
  DeepRing::Position at;

  __device__ BandConsumer(const BandParams& p, const BandShared& s) : params(p), ring{s} {}

  /// Which rows are this warp's, and which stages. Computed when needed, to keep no registers.
  __device__ std::uint32_t row_warp() const {
    return threadIdx.x / 32 - 1 - (k_group() == 0 ? 0 : row_warps());
  }
  __device__ std::uint32_t k_group() const { return threadIdx.x / 32 - 1 < row_warps() ? 0 : 1; }
  __device__ std::uint32_t row_warps() const {
    return static_cast<std::uint32_t>(params.cut.tile_bricks) / BandTile::kWarpBricks;
  }

  /// What this lane reads: addresses of its granules of the warp's bricks and of its tokens, from
  /// the start of a stage; of its scales, from its granule (kFp8: the warp's block scales, from the
  /// start of the stage).
  struct Lane {
    std::uint32_t granules[2], tokens, scales;
    std::uint32_t tables;  ///< kBraidedTables
  };
  __device__ Lane find_lane(const BandUnit& unit) const {
    const std::uint32_t lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto granule = static_cast<std::uint32_t>(
        kernels::granule_position(static_cast<int>(g), static_cast<int>(t)) * 16);
    Lane l;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // Bricks behind the last are read as the last, and their sums forgotten.
      const std::int32_t brick =
          min(static_cast<std::int32_t>(row_warp()) * BandTile::kWarpBricks + i, unit.bricks - 1);
      l.granules[i] = keep(static_cast<std::uint32_t>(brick) * C::kBrickBytes + granule);
    }
    l.tokens = keep(params.cut.tokens_at + g * C::kTokenBytes + t * 32);
    l.scales =
        kFormat == WeightFormat::kFp8
            ? keep(params.cut.scales_at + row_warp() * 8)
            : keep(512 + (kFormat == WeightFormat::kNvfp4 ? g * 8 + t : g * 4 + t / 2) - granule);
    if constexpr (kernels::is_fp4(kFormat) && is_crossed(kFormat, C::kOrder))
      l.tables = keep(kBraidedTables);
    return l;
  }

  // Weights of one brick, in the order of K in which tokens are read: group t, word j.
  __device__ void read_rows(BandRows& a, const Lane& lane, std::uint32_t granule,
                            std::uint32_t tables) const {
    constexpr std::uint32_t kPart = kernels::kGranules * kernels::kGranuleBytes;
    if constexpr (kernels::is_fp4(kFormat)) {
      const uint4 codes = ptx::ld_shared_v4_u32(granule);
      constexpr std::uint32_t kRowScales = kFormat == WeightFormat::kNvfp4 ? 4 : 2;
      const std::uint32_t scales = granule + lane.scales,
                          factors[2] = {load_bf16_factors<kFormat>(scales),
                                        load_bf16_factors<kFormat>(scales + kRowScales)};
      const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) decode_fp4_bf16<C::kOrder>(a[j], words[j], factors, tables);
    } else if constexpr (kFormat == WeightFormat::kFp8) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 codes = ptx::ld_shared_v4_u32(granule + half * kPart);
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          std::uint32_t pairs[2];
          decode_e4m3_bf16_crossed(pairs, words[j]);
          a[j][half] = pairs[0];
          a[j][2 + half] = pairs[1];
        }
      }
    } else {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const uint4 pairs = ptx::ld_shared_v4_u32(granule + part * kPart);
        const std::uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) a[j][part / 2 + part % 2 * 2] = words[j];
      }
    }
  }
  static __device__ void read_tokens(std::uint32_t (&b)[4][2], std::uint32_t tokens, int tile) {
    const std::uint32_t x = tokens + tile * 8 * C::kTokenBytes;
    const uint4 first = ptx::ld_shared_v4_u32(x), second = ptx::ld_shared_v4_u32(x + 16);
    constexpr bool kIsCrossed = is_crossed(kFormat, C::kOrder);
    pair_tokens<kIsCrossed>(b[0], first.x, second.x);
    pair_tokens<kIsCrossed>(b[1], first.y, second.y);
    pair_tokens<kIsCrossed>(b[2], first.z, second.z);
    pair_tokens<kIsCrossed>(b[3], first.w, second.w);
  }

  // One K block: some bricks of this warp by Tiles times 8 tokens. A product waits for the last one
  // into the same sum, some 33 cycles; so four sums are added to in turn.
  template <int Tiles, int Bricks>
  __device__ void multiply(Chains<Tiles> (&sums)[Bricks], const Lane& lane,
                           const std::uint32_t (&granules)[Bricks], std::uint32_t tokens) const {
    if constexpr (Tiles == 1) {
      std::uint32_t b[4][2];
      read_tokens(b, tokens, 0);
#pragma unroll
      for (int i = 0; i < Bricks; ++i) {
        BandRows a;
        read_rows(a, lane, granules[i], lane.tables);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          auto& sum = sums[i][j % 2];
          ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum, a[j], b[j], sum);
        }
      }
    } else if constexpr (Tiles == 4 && kernels::is_fp4(kFormat) && is_crossed(kFormat, C::kOrder)) {
      // One brick after the other: both leave no registers to pair the tokens.
#pragma unroll
      for (int i = 0; i < Bricks; ++i) {
        auto& of_brick = reinterpret_cast<Chains<Tiles>(&)[1]>(sums[i]);
        multiply_many<Tiles, 1>(of_brick, lane, {granules[i]}, tokens);
      }
    } else {
      multiply_many<Tiles, Bricks>(sums, lane, granules, tokens);
    }
  }
  template <int Tiles, int Bricks>
  __device__ void multiply_many(Chains<Tiles> (&sums)[Bricks], const Lane& lane,
                                const std::uint32_t (&granules)[Bricks],
                                std::uint32_t tokens) const {
    BandRows a[Bricks];
#pragma unroll
    for (int i = 0; i < Bricks; ++i)
      read_rows(a[i], lane, granules[i], Tiles > 1 ? kBraidedTables : lane.tables);
    constexpr bool kIsBraided = kernels::is_fp4(kFormat) && is_crossed(kFormat, C::kOrder);
    constexpr int kAtOnce = Bricks == 1 && !kIsBraided ? Tiles : 2;
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
            auto& sum = sums[i][first + tile];
            ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum, a[i][j], b[tile][j], sum);
          }
        }
      }
    }
  }

  /// Adds the unit's products over this warp's steps of K to `sums`.
  template <int Tiles>
  __device__ void accumulate(BandSums<Tiles>& sums, const BandUnit& unit, const BandSteps& steps) {
    const Lane lane = find_lane(unit);
    Chains<Tiles> chains[2] = {};
    auto turn = static_cast<std::int32_t>(k_group());
    for (std::int32_t step = steps.begin; step < steps.end; ++step) {
      if (turn == 0) {
        ring.wait_full(at);
        if constexpr (kFormat == WeightFormat::kFp8) {
          add_scaled_stage<Tiles>(chains, lane, step);
        } else {
          add_stage<Tiles, 2>(chains, lane, lane.granules, step);
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
  // `granules` of Lane.
  template <int Tiles, int Bricks>
  __device__ void add_stage(Chains<Tiles> (&sums)[Bricks], const Lane& lane,
                            const std::uint32_t (&granules)[Bricks], std::int32_t step) const {
    const std::uint32_t block_bytes =
        static_cast<std::uint32_t>(params.cut.tile_bricks) * C::kBrickBytes;
    const std::uint32_t stage = ring.memory(at);
    std::uint32_t own[Bricks];
#pragma unroll
    for (int i = 0; i < Bricks; ++i) own[i] = stage + granules[i];
      // With many tokens ptxas would load both blocks' ahead, more than there are registers.
#pragma unroll(Tiles > 2 ? 1 : C::kBlocks)
    for (int block = 0; block < C::kBlocks; ++block) {
      if (block > 0 && step * C::kBlocks + block >= params.cut.all_blocks) break;
      multiply<Tiles, Bricks>(sums, lane, own, stage + lane.tokens + block * 128);
#pragma unroll
      for (int i = 0; i < Bricks; ++i) own[i] += block_bytes;
    }
  }

  // kFp8: the stage's products are a sum of their own, which the block scales then multiply. With
  // many tokens one brick after the other: there are registers for one such sum only.
  template <int Tiles>
  __device__ void add_scaled_stage(Chains<Tiles> (&sums)[2], const Lane& lane,
                                   std::int32_t step) const {
    constexpr int kBricks = Tiles > 2 ? 1 : 2, kChains = Tiles == 1 ? 2 : Tiles;
    const std::uint32_t scales_at = ring.memory(at) + lane.scales;
#pragma unroll
    for (int first = 0; first < 2; first += kBricks) {
      Chains<Tiles> products[kBricks] = {};
      std::uint32_t granules[kBricks];
#pragma unroll
      for (int i = 0; i < kBricks; ++i) granules[i] = lane.granules[first + i];
      add_stage<Tiles, kBricks>(products, lane, granules, step);
      const uint2 bits = ptx::ld_shared_v2_u32(scales_at);
      const float scales[2] = {__uint_as_float(bits.x), __uint_as_float(bits.y)};
#pragma unroll
      for (int i = 0; i < kBricks; ++i) {
#pragma unroll
        for (int chain = 0; chain < kChains; ++chain) {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            sums[first + i][chain][c] += products[i][chain][c] * scales[c / 2];
        }
      }
    }
  }
};

}  // namespace tilewright::tile
