// Packed weights on their way from shared memory into the A fragments of a warpgroup's products,
// for tokens in bf16.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/linear/unpack_fp4.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::tile {

/// What a thread reads of its warp's brick: the words of all four steps of 16, and its scales.
template <WeightFormat Format, WordOrder Order>
struct WideWords {
  static constexpr int kWordsPerStep = Format == WeightFormat::kBf16  ? 4
                                       : Format == WeightFormat::kFp8 ? 2
                                                                      : 1;
  /// Bf16 needs no decoding, and would need its fragments twice: they are read when needed.
  static constexpr bool kReadsLate = Format == WeightFormat::kBf16;

  std::uint32_t words[4][kWordsPerStep];
  std::uint32_t scales[2];  ///< FP4: of rows g and g + 8
  std::uint32_t late_brick;

  /// From a lane's words: part h (FP8), of row g + 8 h, or h, q (bf16), of K from 8 q on as well.
  static constexpr int part_place(int h, int q = 0) {
    return (Format == WeightFormat::kBf16 ? 2 * h + q : h) * 512;
  }

  /// Where a thread's words of each step lie in a brick, and its scales.
  struct Places {
    std::uint32_t step[4], scales;

    __device__ constexpr explicit Places(std::uint32_t lane) {
      const std::uint32_t g = lane / 4, t = lane % 4;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        step[j] = kernels::granule_position(static_cast<int>(g), j) * 16 + t * 4;
      scales =
          static_cast<std::uint32_t>(kernels::brick_code_bytes(Format) +
                                     static_cast<int>(g) * kernels::brick_scale_bytes(Format) / 8);
    }
  };

  __device__ void load(std::uint32_t brick, const Places& places) {
    if constexpr (kReadsLate) {
      late_brick = brick;
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int part = 0; part < kWordsPerStep; ++part)
          words[j][part] = ptx::ld_shared_u32(brick + places.step[j] + part_place(part));
      }
    }
    if constexpr (Format == WeightFormat::kNvfp4) {
      const uint2 pair = ptx::ld_shared_v2_u32(brick + places.scales);
      scales[0] = pair.x;
      scales[1] = pair.y;
    } else if constexpr (Format == WeightFormat::kMxfp4) {
      scales[0] = ptx::ld_shared_u32(brick + places.scales);
    }
  }

  /// The fragment of step Step: rows g and g + 8, K 2t and 2t + 1, then both + 8. FP8: times
  /// `factors` / 2^120, of rows g and of rows g + 8.
  template <int Step>
  __device__ void decode(std::uint32_t (&a)[4], const Places& places,
                         const std::uint32_t (&factors)[2]) const {
    if constexpr (Format == WeightFormat::kNvfp4) {
      decode_fp4_bf16_neighbours<Order>(a, words[Step][0],
                                        {bf16_factors<Format>(scales[0], scale_selector(Step)),
                                         bf16_factors<Format>(scales[1], scale_selector(Step))});
    } else if constexpr (Format == WeightFormat::kMxfp4) {
      decode_fp4_bf16_neighbours<Order>(
          a, words[Step][0],
          {bf16_factors<Format>(scales[0], scale_selector(Step / 2)),
           bf16_factors<Format>(scales[0], scale_selector(2 + Step / 2))});
    } else if constexpr (Format == WeightFormat::kFp8) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        std::uint32_t pairs[2];
        decode_e4m3_bf16(pairs, words[Step][h], factors[h]);
        a[h] = pairs[0];
        a[2 + h] = pairs[1];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = ptx::ld_shared_u32(late_brick + places.step[Step] + part_place(i % 2, i / 2));
    }
  }
};

}  // namespace tilewright::tile
