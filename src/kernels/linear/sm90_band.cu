// targets: sm_90a
//
// The bandwidth kernel.
#include "kernels/linear/sm90_band.h"
#include "ptx/fence.h"
#include "tile/band_epilogue.h"
#include "tile/band_loader.h"

namespace tilewright::kernels {
namespace {

using tile::BandUnit;

template <class C>
struct Worker {
  const BandParams& params;
  tile::BandConsumer<C> consumer;
  tile::BandExchange<C> exchange;
  tile::BandSteps steps;

  template <int Tiles>
  __device__ void work(const BandUnit& unit, bool has_next) {
    tile::BandSums<Tiles> sums;
    consumer.template accumulate<Tiles>(sums, unit, steps);
    ptx::griddepcontrol_wait();  // what is written now the kernel before may have read
    const tile::BandEpilogue epilogue(params, unit);
    exchange.template finish<Tiles>(sums, consumer, epilogue, has_next);
  }
};

/// Tiles of 8 tokens that are computed for so many tokens.
template <class C>
__device__ int tiles_of(std::int32_t tokens) {
  if (C::kTokens == 32) return tokens <= 8 ? 1 : tokens <= 16 ? 2 : 4;
  return tokens <= 16 ? 2 : tokens <= 32 ? 4 : 8;
}

// One thread, which begins to load thereafter.
template <class C>
__device__ void initialise_barriers(const BandParams& params, const tile::BandShared& shared) {
  const std::uint32_t warps = blockDim.x / 32 - 1;
  const auto groups = static_cast<std::uint32_t>(params.cut.k_groups);
  const tile::DeepRing ring{shared};
  tile::DeepRing::Position at = ring.start();
  for (std::int32_t i = 0; i < params.cut.stages; ++i) {
    ptx::mbarrier_init(at.full, 1 + 32);
    ptx::mbarrier_init(at.full + tile::DeepRing::kEmpty, warps / groups);
    ring.advance(at);
  }
  tile::BandExchange<C>(params, shared)
      .initialise(warps * static_cast<std::uint32_t>(params.cut.cluster));
  ptx::fence_mbarrier_init_release_cluster();
}

template <class C>
__device__ void produce(const BandParams& params, const tile::BandUnits& units, std::int32_t first,
                        std::int32_t stride) {
  tile::BandLoader<C> loader(params, units.shared);
  std::int32_t early = loader.load_early(units, first);
  __syncthreads();
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
__device__ void consume(const BandParams& params, const tile::BandUnits& units, std::int32_t first,
                        std::int32_t stride) {
  tile::clear_tokens<C>(params);
  __syncthreads();
  if (params.cut.cluster > 1) ptx::barrier_cluster_arrive_aligned();
  if (units.is_grouped()) {
    ptx::griddepcontrol_wait();
    units.build();
  }
  const std::int32_t count = units.count();
  if (params.cut.cluster > 1) ptx::barrier_cluster_wait_aligned();  // all of the cluster run
  Worker<C> worker{params,
                   {params, units.shared, threadIdx.x / 32 - 1},
                   {params, units.shared},
                   tile::BandSteps(params.cut)};
  for (std::int32_t index = first; index < count; index += stride) {
    const BandUnit unit = units.find(index);
    const bool has_next = index + stride < count;
    const int tiles = tiles_of<C>(unit.tokens);
    if constexpr (C::kTokens == 32) {
      if (tiles == 1) worker.template work<1>(unit, has_next);
    } else {
      if (tiles == 8) worker.template work<8>(unit, has_next);
    }
    if (tiles == 2) worker.template work<2>(unit, has_next);
    if (tiles == 4) worker.template work<4>(unit, has_next);
  }
}

template <class C>
__device__ void linear_band(const BandParams& params) {
  const tile::BandUnits units{params, tile::BandShared(params.cut)};
  const auto first = static_cast<std::int32_t>(ptx::clusterid_x());
  const auto stride = static_cast<std::int32_t>(ptx::nclusterid_x());
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) initialise_barriers<C>(params, units.shared);
    __syncwarp();
    produce<C>(params, units, first, stride);
  } else {
    consume<C>(params, units, first, stride);
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_LINEAR_BAND(NAME, FORMAT, ORDER, TOKENS)                                        \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::BandTile::max_threads(TOKENS), \
                                               1)                                                  \
      linear_band_##NAME##_n##TOKENS(                                                              \
          const __grid_constant__ tilewright::kernels::BandParams params) {                        \
    tilewright::kernels::linear_band<                                                              \
        tilewright::tile::BandConfig<tilewright::kernels::WeightFormat::FORMAT,                    \
                                     tilewright::kernels::WordOrder::ORDER, TOKENS>>(params);      \
  }

TILEWRIGHT_LINEAR_BAND(nvfp4, kNvfp4, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(nvfp4_braided, kNvfp4, kE4m3, 32)
TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 32)
TILEWRIGHT_LINEAR_BAND(fp8, kFp8, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(bf16, kBf16, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(nvfp4, kNvfp4, kBf16, 64)
TILEWRIGHT_LINEAR_BAND(nvfp4_braided, kNvfp4, kE4m3, 64)
TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 64)
TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 64)
TILEWRIGHT_LINEAR_BAND(fp8, kFp8, kBf16, 64)
TILEWRIGHT_LINEAR_BAND(bf16, kBf16, kBf16, 64)
