// The kernel of sm90_wide_spread.cu: units of rows and tokens, each by the CTAs that divide its k,
// and the exchange of their sums through memory.
#pragma once

#include "kernels/linear/wide/any_scales.h"
#include "kernels/linear/wide/bf16_consumer.h"
#include "kernels/linear/wide/sm90_wide_spread.h"
#include "ptx/fence.h"
#include "tile/entry.h"

#include <cstdint>

#include <cooperative_groups.h>

namespace tilewright::tile {

using kernels::WideBf16Params;
using kernels::WideSpreadTile;

template <WeightFormat WeightsFormat, int Warpgroups>
struct WideSpreadConfig : WideBf16Config<WeightsFormat, kernels::WordOrder::kBf16, true> {
  static constexpr WideSpreadTile kTile = {WeightsFormat, Warpgroups};
  static constexpr int kRows = kTile.rows(), kConsumers = Warpgroups * 128;
  /// Five warpgroups have no registers for scales of two rows: they are for one matrix alone.
  static constexpr int kScaleHalves = Warpgroups == 4 ? 2 : 1;
  static constexpr int kRowBricks = kRows / kernels::kBrickRows;
  static constexpr int kWeightBytes = kRowBricks * kernels::brick_bytes(WeightsFormat);
};

/// Which units a CTA has, and its part of k of them.
struct WideSpread {
  std::int32_t first, stride, units;  ///< units first, first + stride, ...
  std::int32_t split, token_tiles, row_tiles;

  __device__ WideSpread(const WideBf16Params& params, std::int32_t rows, std::int32_t cta,
                        std::int32_t ctas)
      : first(cta / params.splits),
        stride(ctas / params.splits),
        split(cta - first * params.splits),
        token_tiles(ceil_div(params.tokens, params.tile_tokens)),
        row_tiles(ceil_div(params.n, rows)) {
    units = params.matrices * row_tiles * token_tiles;
  }
  /// Those of the same rows follow each other.
  __device__ WideTile find(const WideBf16Params& params, std::int32_t unit) const {
    const std::int32_t rows = unit / token_tiles, matrix = rows / row_tiles;
    const std::int32_t first_token = (unit - rows * token_tiles) * params.tile_tokens;
    return {matrix,
            first_token,
            0,
            min(params.tokens - first_token, params.tile_tokens),
            rows - matrix * row_tiles,
            matrix * params.k,
            matrix * params.n};
  }
  __device__ static WidePiece whole(const WideBf16Params& params, std::int32_t unit) {
    return {unit, 0, ceil_div(params.k, kernels::kWideBf16Step)};
  }
};

/// The sums of a unit in memory: of eight tokens those of all parts, one behind the other.
template <class C>
struct WideSpreadSums {
  const WideBf16Params& params;
  std::int32_t unit;

  /// This thread's sums of eight tokens of a part.
  __device__ float4* part(std::int32_t eight, std::int32_t split) const {
    constexpr int kEights = WideSpreadTile::kTokens / kEightTokens;
    const std::int64_t number = (std::int64_t{unit} * kEights + eight) * params.splits + split;
    return reinterpret_cast<float4*>(params.parts) + number * C::kConsumers + threadIdx.x;
  }
  template <int Count>
  __device__ void write(const float (&d)[Count], std::int32_t split, std::int32_t tokens) const {
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) {
      if (i * kEightTokens < tokens)
        __stcg(part(i, split), make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]));
    }
  }
  /// d = those of the tokens of `range`, added up in the order of the parts.
  template <int Count>
  __device__ void add(float (&d)[Count], const TokenRange& range) const {
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) {
      if (i * kEightTokens >= range.begin && i * kEightTokens < range.end) {
        float4 sum = {};
        const float4* from = part(i, 0);
#pragma unroll 8
        for (std::int32_t split = 0; split < params.splits; ++split) {
          const float4 sums = __ldcg(from);
          from += C::kConsumers;
          sum.x += sums.x;
          sum.y += sums.y;
          sum.z += sums.z;
          sum.w += sums.w;
        }
        d[4 * i] = sum.x;
        d[4 * i + 1] = sum.y;
        d[4 * i + 2] = sum.z;
        d[4 * i + 3] = sum.w;
      }
    }
  }
};

/// A CTA of those that have a weight.
template <class C>
struct WideSpreadCta {
  using Consumer = WideBf16Consumer<C>;
  using Accumulators = float (&)[C::kAccumulators];

  const WideBf16Params& params;
  WideBf16Memory<C> memory;
  WideSpread spread;
  WideCluster part;

  __device__ WideSpreadCta(const WideBf16Params& of, std::uint8_t* dynamic, std::int32_t cta,
                           std::int32_t ctas)
      : params(of),
        memory(dynamic, of),
        spread(of, C::kRows, cta, ctas),
        part(spread.split, of.splits) {}

  /// One thread, before the CTA's barrier.
  __device__ void initialise() const {
    ptx::prefetch_tensormap(params.x_map);
    for (std::uint32_t i = 0; i < memory.stages; ++i) {
      ptx::mbarrier_init(memory.full + i * 8, 1);
      ptx::mbarrier_init(memory.empty + i * 8, C::kConsumers / 32);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }

  /// One thread.
  __device__ void produce() const {
    WideBf16Loader<C> loader{params, memory, part, {}};
    for (std::int32_t unit = spread.first; unit < spread.units; unit += spread.stride) {
      const WideTile tile = spread.find(params, unit);
      const WideSteps steps(WideSpread::whole(params, unit), part);
      unit == spread.first ? loader.load_first(tile, steps) : loader.load(tile, steps);
      // The next kernel begins to load when this one's CTAs have room for it.
      if (unit == spread.first) ptx::griddepcontrol_launch_dependents();
    }
  }

  /// The rows of a warpgroup of a tile, of the tokens of `range`.
  __device__ void store(Accumulators d, const Consumer& consumer, const WideTile& tile,
                        const TokenRange& range) const {
    const std::int32_t first_row =
        tile.row_tile * C::kRows + static_cast<std::int32_t>(consumer.index) * 64;
    if (first_row >= params.n) return;
    const RowWeights factors = {params.row_weights, tile};
    using Epilogue = typename Consumer::Epilogue;
    Epilogue{params,
             tile,
             range,
             factors,
             first_row,
             memory.staging + consumer.index * Epilogue::kRoundBytes,
             consumer.barrier()}
        .store(d);
  }

  /// Products of all units, and results of those whose k is whole.
  __device__ void multiply(Consumer& consumer) const {
    for (std::int32_t unit = spread.first; unit < spread.units; unit += spread.stride) {
      const WideTile tile = spread.find(params, unit);
      consumer.steps = WideSteps(WideSpread::whole(params, unit), part);
      float d[C::kAccumulators] = {};
      consumer.template multiply_any<WideAnyScales<C>>(d, tile);
      if (part.splits == 1)
        store(d, consumer, tile, {0, tile.tokens});
      else
        WideSpreadSums<C>{params, unit}.write(d, part.split, tile.tokens);
    }
  }
  /// Results of a unit of which CTAs have parts, when all have written them: of this CTA's tokens.
  __device__ void finish(const Consumer& consumer) const {
    const std::int32_t unit = spread.first;
    const WideTile tile = spread.find(params, unit);
    const std::int32_t share = reduction_share(tile.tokens, part.splits);
    const TokenRange range = {part.split * share, min((part.split + 1) * share, tile.tokens)};
    if (unit >= spread.units || range.begin >= range.end) return;
    float d[C::kAccumulators] = {};
    WideSpreadSums<C>{params, unit}.add(d, range);
    store(d, consumer, tile, range);
  }

  /// All threads: warps of the warpgroups that multiply, then one that loads.
  __device__ __forceinline__ void run() const {
    if (threadIdx.x == 0) initialise();
    __syncthreads();
    const std::uint32_t warpgroup = ptx::uniform(threadIdx.x / 128);
    Consumer consumer(params, memory, part, warpgroup);
    const bool multiplies = warpgroup < C::kConsumers / 128;
    if (multiplies) {
      multiply(consumer);
    } else if (threadIdx.x / 32 == C::kConsumers / 32 && ptx::elect_sync()) {
      produce();
    }
    if (part.splits == 1) return;
    cooperative_groups::this_grid().sync();  // sums are there
    if (multiplies) finish(consumer);
  }
};

template <class C>
__device__ __forceinline__ void linear_wide_spread(const WideBf16Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  WideSpreadCta<C>(params, dynamic, static_cast<std::int32_t>(blockIdx.x),
                   static_cast<std::int32_t>(gridDim.x))
      .run();
}

}  // namespace tilewright::tile

/// Entry linear_wide_spread_NAME.
#define TILEWRIGHT_WIDE_SPREAD(NAME, FORMAT, WARPGROUPS)                                \
  TILEWRIGHT_KERNEL(                                                                    \
      linear_wide_spread_##NAME, WideBf16Params,                                        \
      __launch_bounds__(WideSpreadTile{WeightFormat::FORMAT, WARPGROUPS}.threads(), 1), \
      tile::linear_wide_spread<tile::WideSpreadConfig<WeightFormat::FORMAT, WARPGROUPS>>)
