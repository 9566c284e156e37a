// Packed weights on their way from shared memory into the A fragments of a warpgroup's products,
// for tokens in FP8.
#pragma once

#include "kernels/linear/wide/e4m3.h"
#include "kernels/linear/wide/fold_e4m3.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"
#include "tile/box.h"

namespace tilewright::tile {

template <class C>
struct WideE4m3Weights {
  using Position = RingPosition<C::kStages>;

  const WideE4m3Problem<C>& problem;
  const Ring<C::kStages>& ring;
  std::uint32_t stages, table;  ///< shared memory; the table: this lane's copy
  std::uint32_t warp, lane;     ///< of the consumers

  /// Of a thread, from the start of a stage.
  struct Offsets {
    std::uint32_t codes, low_scale, high_scale;
  };
  /// Of a tile whose rows have so many bricks.
  __device__ Offsets offsets(std::int32_t bricks) const {
    const std::uint32_t brick = min(static_cast<std::int32_t>(warp), bricks - 1);
    const std::uint32_t g = lane / 4, s = lane % 4;
    const std::uint32_t at = C::kWeightsAt + brick * problem.brick;
    const std::uint32_t groups = problem.params.format == WeightFormat::kNvfp4 ? 4 : 2;
    const std::uint32_t scale = at + 512 + g * 2 * groups + s * groups / 4;
    return {at + static_cast<std::uint32_t>(
                     kernels::granule_position(static_cast<int>(g), static_cast<int>(s))) *
                     16,
            scale, scale + groups};
  }

  /// What the fragments of a step are made of.
  struct Raw {
    uint4 low[2], high[2];       ///< of each half; FP4: low only, both rows
    std::uint32_t scales[2][2];  ///< FP4: of each half and row
    uint2 magnitudes[2][2];
  };

  /// Reads a stage; has_two is false where k ends within it.
  __device__ void load(Raw& raw, const Offsets& at, const Position& from, bool has_two) const {
    const std::uint32_t stage = stages + from.stage * C::kVariant.stage_bytes();
    ring.wait_full(from);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !has_two) {
        raw.low[1] = raw.high[1] = make_uint4(0, 0, 0, 0);
        raw.scales[1][0] = raw.scales[1][1] = 0;
        break;
      }
      const std::uint32_t block = stage + half * C::kVariant.block_bytes();
      raw.low[half] = load_shared_u4(block + at.codes);
      if constexpr (C::kIsFp4) {
        raw.scales[half][0] = load_shared_u8(block + at.low_scale);
        raw.scales[half][1] = load_shared_u8(block + at.high_scale);
      } else {
        raw.high[half] = load_shared_u4(block + at.codes + 512);
      }
    }
  }
  __device__ void look_up(Raw& raw) const {
    if constexpr (C::kIsFp4) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        raw.magnitudes[i / 2][i % 2] = look_up_fold(table, raw.scales[i / 2][i % 2]);
    }
  }
  /// The operand of product i.
  __device__ void decode(std::uint32_t (&a)[4], const Raw& raw, int i) const {
    const uint4& low = raw.low[i / 2];
    const std::uint32_t words[2] = {i % 2 == 0 ? low.x : low.z, i % 2 == 0 ? low.y : low.w};
    if constexpr (C::kIsFp4) {
#pragma unroll
      for (int d = 0; d < 2; ++d) {
        std::uint32_t rows[2];
        decode_fp4_e4m3(rows, words[d], raw.magnitudes[i / 2]);
        a[2 * d] = rows[0], a[2 * d + 1] = rows[1];
      }
    } else {
      const uint4& high = raw.high[i / 2];
      a[0] = words[0], a[2] = words[1];
      a[1] = i % 2 == 0 ? high.x : high.z, a[3] = i % 2 == 0 ? high.y : high.w;
    }
    ptx::wgmma_fence_operand(a);
  }
};

}  // namespace tilewright::tile
