// Bricks of weights, 16 rows by 64 of K, out of shared memory into registers and through the tensor
// core.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/linear/unpack_fp4.h"
#include "ptx/load_store.h"
#include "ptx/mma_sync.h"

namespace tilewright::kernels {

/// Sums of 16 rows by 8 tokens as mma.m16n8k16 leaves them.
using DirectSums = float[4];

/// Tokens of a K block: of lane (g, t) the 16 elements of group t, of its token g.
using DirectTokens = std::uint32_t[4][2];

/// A lane's part of a brick, (g, t) as in packed_weight.h.
struct DirectLane {
  std::uint32_t g, t, granule;  ///< the granule's place in bytes
  std::uint32_t tables;         ///< tile::kBraidedTables, for the compiler no constant

  __device__ DirectLane()
      : g(threadIdx.x % 32 / 4),
        t(threadIdx.x % 4),
        granule(static_cast<std::uint32_t>(
            granule_position(static_cast<int>(g), static_cast<int>(t)) * kGranuleBytes)),
        tables(__shfl_sync(~0u, tile::kBraidedTables, static_cast<int>(threadIdx.x % 32))) {}
};

/// Codes of a brick of 4-bit weights, and the factors of rows g and g + 8.
template <WeightFormat Format>
struct DirectCodes {
  std::uint32_t words[4], factors[2];

  __device__ void read(std::uint32_t brick, const DirectLane& lane) {
    constexpr std::uint32_t kScales = kGranules * kGranuleBytes;
    const uint4 codes = ptx::ld_shared_v4_u32(brick + lane.granule);
    words[0] = codes.x, words[1] = codes.y, words[2] = codes.z, words[3] = codes.w;
    constexpr bool kIsNvfp4 = Format == WeightFormat::kNvfp4;
    const std::uint32_t scales =
        brick + kScales + (kIsNvfp4 ? lane.g * 8 + lane.t : lane.g * 4 + lane.t / 2);
    factors[0] = tile::load_bf16_factors<Format>(scales);
    factors[1] = tile::load_bf16_factors<Format>(scales + (kIsNvfp4 ? 4 : 2));
  }
};

/// The A fragments of a brick of 8 or 16 bits, in the order of K in which tokens are read.
template <WeightFormat Format>
__device__ inline void read_brick(std::uint32_t (&a)[4][4], std::uint32_t brick,
                                  const DirectLane& lane) {
  constexpr std::uint32_t kPart = kGranules * kGranuleBytes;
  const std::uint32_t at = brick + lane.granule;
  constexpr int kParts = Format == WeightFormat::kFp8 ? 2 : 4;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const uint4 read = ptx::ld_shared_v4_u32(at + part * kPart);
    const std::uint32_t words[4] = {read.x, read.y, read.z, read.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (Format == WeightFormat::kFp8) {
        std::uint32_t pairs[2];
        tile::decode_e4m3_bf16_crossed(pairs, words[j]);
        a[j][part] = pairs[0];
        a[j][2 + part] = pairs[1];
      } else {
        a[j][part / 2 + part % 2 * 2] = words[j];
      }
    }
  }
}

/// Adds the products of bricks one above the other, at `stage`. Those behind number `last` stand
/// for nothing, and are taken from its place. `scales`: of the first and the last 8 rows of each,
/// kFp8 alone.
template <WeightFormat Format, WordOrder Order, int Bricks, int Scales>
__device__ inline void multiply_bricks(DirectSums (&sums)[Bricks], std::uint32_t stage, int last,
                                       const DirectLane& lane, const DirectTokens& b,
                                       const float (&scales)[Scales][2]) {
  const auto place = [&](int i) {
    return stage + static_cast<std::uint32_t>(min(i, last) * brick_bytes(Format));
  };
  if constexpr (is_fp4(Format)) {
    // A product waits for the one before into the same sum: bricks take turns.
    DirectCodes<Format> codes[Bricks];
#pragma unroll
    for (int i = 0; i < Bricks; ++i) codes[i].read(place(i), lane);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int i = 0; i < Bricks; ++i) {
        std::uint32_t a[4];
        tile::decode_fp4_bf16<Order>(a, codes[i].words[j], codes[i].factors, lane.tables);
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sums[i], a, b[j], sums[i]);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < Bricks; ++i) {
      std::uint32_t a[4][4];
      read_brick<Format>(a, place(i), lane);
      DirectSums products[2] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j)
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(products[j % 2], a[j], b[j],
                                                         products[j % 2]);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float product = products[0][c] + products[1][c];
        if constexpr (Format == WeightFormat::kFp8) {
          sums[i][c] = fmaf(product, scales[i][c / 2], sums[i][c]);
        } else {
          sums[i][c] += product;
        }
      }
    }
  }
}

}  // namespace tilewright::kernels
