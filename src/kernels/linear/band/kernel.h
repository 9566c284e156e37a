// The bandwidth kernel from its parts, and the macro that makes an entry of it. What it is:
// band.cu.
#pragma once

#include "kernels/linear/band/band.h"
#include "kernels/linear/band/epilogue.h"
#include "kernels/linear/band/loader.h"
#include "ptx/fence.h"
#include "tile/entry.h"

namespace tilewright::tile {

template <class C>
struct BandWorker {
  const BandParams& params;
  BandConsumer<C> consumer;
  BandExchange<C> exchange;
  BandSteps steps;

  template <int Tiles>
  __device__ void work(const BandUnit& unit, bool has_next) {
    BandSums<Tiles> sums;
    consumer.template accumulate<Tiles>(sums, unit, steps);
    ptx::griddepcontrol_wait();  // a preceding kernel may have read what is written now
    const BandEpilogue<C> epilogue(params, unit);
    exchange.template finish<Tiles>(sums, consumer, epilogue, has_next);
  }
};

/// Tiles of 8 tokens that are computed for so many tokens.
template <class C>
__device__ int band_tiles(std::int32_t tokens) {
  if (C::kTokens == 8) return 1;
  if (C::kTokens == 32) return tokens <= 8 ? 1 : tokens <= 16 ? 2 : 4;
  return tokens <= 16 ? 2 : tokens <= 32 ? 4 : 8;
}

// One thread, which begins to load thereafter.
template <class C>
__device__ void initialise_band_barriers(const BandParams& params, const BandShared& shared) {
  const std::uint32_t warps = blockDim.x / 32 - 1;
  const auto groups = static_cast<std::uint32_t>(params.cut.k_groups);
  const DeepRing ring{shared};
  DeepRing::Position at;
  for (std::int32_t i = 0; i < params.cut.stages; ++i) {
    ptx::mbarrier_init(ring.full(at), 1 + 32);
    ptx::mbarrier_init(ring.empty(at), warps / groups);
    ring.advance(at);
  }
  BandExchange<C>(params, shared)
      .initialise(warps * static_cast<std::uint32_t>(params.cut.cluster));
  ptx::fence_mbarrier_init_release_cluster();
}

template <class C>
__device__ void band_produce(const BandParams& params, const BandUnits<C>& units,
                             std::int32_t first, std::int32_t stride) {
  BandLoader<C> loader(params, units.shared);
  std::int32_t early = loader.load_early(units, first);
  band_sync();
  ptx::griddepcontrol_launch_dependents();
  if (params.cut.cluster > 1) ptx::barrier_cluster_arrive_aligned();
  ptx::griddepcontrol_wait();
  if (units.is_grouped()) units.build();
  const std::int32_t count = units.count();
  for (std::int32_t index = first; index < count; index += stride)
    loader.load(units.find(index), early);
  if (params.cut.cluster > 1) ptx::barrier_cluster_wait_aligned();
}

template <class C>
__device__ void band_consume(const BandParams& params, const BandUnits<C>& units,
                             std::int32_t first, std::int32_t stride) {
  clear_tokens<C>(params);
  band_sync();
  if (params.cut.cluster > 1) ptx::barrier_cluster_arrive_aligned();
  if (units.is_grouped()) {
    ptx::griddepcontrol_wait();
    units.build();
  }
  const std::int32_t count = units.count();
  if (params.cut.cluster > 1) ptx::barrier_cluster_wait_aligned();  // all of the cluster run
  BandWorker<C> worker{
      params, {params, units.shared}, {params, units.shared}, BandSteps(params.cut)};
  for (std::int32_t index = first; index < count; index += stride) {
    const BandUnit unit = units.find(index);
    const bool has_next = index + stride < count;
    const int tiles = band_tiles<C>(unit.tokens);
    if constexpr (C::kTokens <= 32) {
      if (tiles == 1) worker.template work<1>(unit, has_next);
    } else {
      if (tiles == 8) worker.template work<8>(unit, has_next);
    }
    if constexpr (C::kTokens > 8) {
      if (tiles == 2) worker.template work<2>(unit, has_next);
      if (tiles == 4) worker.template work<4>(unit, has_next);
    }
  }
}

template <class C>
__device__ void linear_band(const BandParams& params) {
  const BandUnits<C> units{params, BandShared(params.cut)};
  const auto first = static_cast<std::int32_t>(ptx::clusterid_x());
  const auto stride = static_cast<std::int32_t>(ptx::nclusterid_x());
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) initialise_band_barriers<C>(params, units.shared);
    __syncwarp();
    band_produce<C>(params, units, first, stride);
  } else {
    band_consume<C>(params, units, first, stride);
  }
}

}  // namespace tilewright::tile

/// Entry linear_band_NAME_nTOKENS.
#define TILEWRIGHT_LINEAR_BAND_OF(NAME, FORMAT, ORDER, TOKENS, HAS_COLUMNS)         \
  TILEWRIGHT_KERNEL(                                                                \
      linear_band_##NAME##_n##TOKENS, BandParams,                                   \
      __launch_bounds__(BandTile::max_threads(TOKENS), BandTile::min_ctas(TOKENS)), \
      tile::linear_band<                                                            \
          tile::BandConfig<WeightFormat::FORMAT, WordOrder::ORDER, TOKENS, HAS_COLUMNS>>)
#define TILEWRIGHT_LINEAR_BAND(NAME, FORMAT, ORDER, TOKENS) \
  TILEWRIGHT_LINEAR_BAND_OF(NAME, FORMAT, ORDER, TOKENS, false)
/// Entry linear_band_NAME_groups_nTOKENS.
#define TILEWRIGHT_LINEAR_BAND_GROUPS(NAME, FORMAT, ORDER, TOKENS) \
  TILEWRIGHT_LINEAR_BAND_OF(NAME##_groups, FORMAT, ORDER, TOKENS, true)
