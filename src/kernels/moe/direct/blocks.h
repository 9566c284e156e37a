// Weights of a brick, 16 rows by 64 of K: out of memory into a ring of the warp in shared memory,
// from there into registers and through the tensor core.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/linear/unpack_fp4.h"
#include "ptx/cp_async.h"
#include "ptx/load_store.h"
#include "ptx/mma_sync.h"

namespace tilewright::kernels {

/// Sums of 16 rows by 8 tokens as mma.m16n8k16 leaves them. A product waits for the one before into
/// the same sum; so there are two, added up at the end.
using DirectSums = float[2][4];

/// Tokens of a K block: of lane (g, t) the 16 elements of group t, of its token g.
using DirectTokens = std::uint32_t[4][2];

/// Where the block scales of a brick are (kFp8): of its first and its last 8 rows.
struct DirectScales {
  const float* at[2];
  std::uint32_t stride;  ///< from one 128 of K to the next
};

/// Brings a brick into a slot of the ring, 16 bytes a lane. A whole warp.
template <WeightFormat Format>
__device__ inline void copy_brick(std::uint32_t slot, const std::uint8_t* brick,
                                  const DirectScales& scales, std::int32_t block) {
  constexpr std::uint32_t kChunks = brick_bytes(Format) / 16, kLanes = 32;
  const std::uint32_t lane = threadIdx.x % kLanes;
#pragma unroll
  for (std::uint32_t first = 0; first < kChunks; first += kLanes) {
    const std::uint32_t at = (first + lane) * 16;
    if (first + lane < kChunks) ptx::cp_async_cg_shared_global_16(slot + at, brick + at);
  }
  if constexpr (Format == WeightFormat::kFp8) {
    const auto step = static_cast<std::uint32_t>(block) / (kFp8BlockK / kBrickK);
    if (lane < 2)
      ptx::cp_async_ca_shared_global_4(
          slot + brick_bytes(Format) + lane * 4,
          (lane == 0 ? scales.at[0] : scales.at[1]) + step * scales.stride, 4);
  }
}

/// A lane's part of a brick in a slot, (g, t) as in packed_weight.h.
struct DirectLane {
  std::uint32_t g, t, granule;  ///< the granule's place in bytes

  __device__ DirectLane()
      : g(threadIdx.x % 32 / 4),
        t(threadIdx.x % 4),
        granule(static_cast<std::uint32_t>(
            granule_position(static_cast<int>(g), static_cast<int>(t)) * kGranuleBytes)) {}
};

/// Adds the products of a brick in a slot.
template <WeightFormat Format, WordOrder Order>
__device__ inline void multiply_brick(DirectSums& sums, std::uint32_t slot, const DirectLane& lane,
                                      const DirectTokens& b) {
  constexpr std::uint32_t kPart = kGranules * kGranuleBytes;
  const std::uint32_t at = slot + lane.granule;
  if constexpr (is_fp4(Format)) {
    const uint4 codes = ptx::ld_shared_v4_u32(at);
    std::uint32_t factors[2];
    if constexpr (Format == WeightFormat::kNvfp4) {
      const uint2 scales = ptx::ld_shared_v2_u32(slot + kPart + lane.g * 8);
      factors[0] = tile::bf16_factors<Format>(scales.x, tile::scale_selector(lane.t));
      factors[1] = tile::bf16_factors<Format>(scales.y, tile::scale_selector(lane.t));
    } else {
      const std::uint32_t scales = ptx::ld_shared_u32(slot + kPart + lane.g * 4);
      factors[0] = tile::bf16_factors<Format>(scales, tile::scale_selector(lane.t / 2));
      factors[1] = tile::bf16_factors<Format>(scales, tile::scale_selector(lane.t / 2 + 2));
    }
    const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t a[4];
      tile::decode_fp4_bf16<Order>(a, words[j], factors);
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sums[j % 2], a, b[j], sums[j % 2]);
    }
  } else if constexpr (Format == WeightFormat::kFp8) {
    std::uint32_t a[4][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 codes = ptx::ld_shared_v4_u32(at + half * kPart);
      const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        std::uint32_t pairs[2];
        tile::decode_e4m3_bf16(pairs, words[j]);
        a[j][half] = pairs[0];
        a[j][2 + half] = pairs[1];
      }
    }
    DirectSums products = {};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(products[j % 2], a[j], b[j],
                                                       products[j % 2]);
    const uint2 scales = ptx::ld_shared_v2_u32(slot + brick_bytes(Format));
#pragma unroll
    for (int c = 0; c < 4; ++c)
      sums[0][c] +=
          (products[0][c] + products[1][c]) * __uint_as_float(c < 2 ? scales.x : scales.y);
  } else {
    std::uint32_t a[4][4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const uint4 pairs = ptx::ld_shared_v4_u32(at + part * kPart);
      const std::uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) a[j][part / 2 + part % 2 * 2] = words[j];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sums[j % 2], a[j], b[j], sums[j % 2]);
  }
}

}  // namespace tilewright::kernels
