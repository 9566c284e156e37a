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
  const tile::BandShared<C>& shared;
  tile::BandConsumer<C> consumer;
  tile::BandExchange<C> exchange;
  tile::BandSteps steps;
  std::uint32_t warps;

  template <int Tiles>
  __device__ void work(const BandUnit& unit, bool has_next) {
    tile::BandSums<Tiles> sums = {};
    consumer.template accumulate<Tiles>(sums, unit, steps);
    ptx::griddepcontrol_wait();  // what is written now the kernel before may have read
    const tile::BandEpilogue epilogue(params, unit);
    if (params.cluster > 1) {
      exchange.template add_and_write<Tiles>(sums, consumer.warp, warps, epilogue, has_next);
      return;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile)
        epilogue.write(static_cast<std::int32_t>(consumer.warp) * 2 + i, tile, sums[i][tile]);
    }
  }
};

/// Tiles of 8 tokens that are computed for so many tokens.
template <class C>
__device__ int tiles_of(std::int32_t tokens) {
  if (C::kTokens == 32) return tokens <= 8 ? 1 : tokens <= 16 ? 2 : 4;
  return tokens <= 16 ? 2 : tokens <= 32 ? 4 : 8;
}

template <class C>
__device__ void linear_band(const BandParams& params) {
  extern __shared__ __align__(128) std::uint8_t dynamic[];
  const tile::BandShared<C> shared(dynamic, params);
  const tile::BandUnits<C> units(params, shared);
  const std::uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32 - 1;
  const auto first = static_cast<std::int32_t>(ptx::clusterid_x());
  const auto stride = static_cast<std::int32_t>(ptx::nclusterid_x());
  if (threadIdx.x == 0) {
    const tile::DeepRing ring = shared.ring(params);
    for (std::uint32_t i = 0; i < ring.stages; ++i) {
      ptx::mbarrier_init(ring.full_barriers + i * 8, 1 + 32);
      ptx::mbarrier_init(ring.empty_barriers + i * 8, warps);
    }
    tile::BandExchange<C>::initialise(shared, warps * static_cast<std::uint32_t>(params.cluster));
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  ptx::griddepcontrol_launch_dependents();
  if (params.cluster > 1) ptx::barrier_cluster_arrive_aligned();
  if (units.is_grouped()) {
    ptx::griddepcontrol_wait();
    units.build(shared);
  }
  const std::int32_t count = units.count();
  if (warp == 0) {
    tile::BandLoader<C> loader(params, shared);
    std::int32_t early = loader.load_early(units, first);
    ptx::griddepcontrol_wait();
    for (std::int32_t index = first; index < count; index += stride) {
      const BandUnit unit = units.find(index);
      loader.load(unit, tiles_of<C>(unit.tokens) * 8, early);
    }
    if (params.cluster > 1) ptx::barrier_cluster_wait_aligned();
    return;
  }
  if (params.cluster > 1) ptx::barrier_cluster_wait_aligned();  // all of the cluster run
  Worker<C> worker{
      params, shared, {params, shared, warp - 1}, {params, shared}, tile::BandSteps::of<C>(params),
      warps};
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

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_LINEAR_BAND(NAME, FORMAT, ORDER, TOKENS, CTAS)                             \
  extern "C" __global__ void __launch_bounds__(                                               \
      (tilewright::kernels::BandTile::kMaxWarps + 1) * 32, CTAS)                              \
      linear_band_##NAME##_n##TOKENS(                                                         \
          const __grid_constant__ tilewright::kernels::BandParams params) {                   \
    tilewright::kernels::linear_band<                                                         \
        tilewright::tile::BandConfig<tilewright::kernels::WeightFormat::FORMAT,               \
                                     tilewright::kernels::WordOrder::ORDER, TOKENS>>(params); \
  }

TILEWRIGHT_LINEAR_BAND(nvfp4, kNvfp4, kBf16, 32, 2)
TILEWRIGHT_LINEAR_BAND(nvfp4_braided, kNvfp4, kE4m3, 32, 2)
TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 32, 2)
TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 32, 2)
TILEWRIGHT_LINEAR_BAND(fp8, kFp8, kBf16, 32, 2)
TILEWRIGHT_LINEAR_BAND(bf16, kBf16, kBf16, 32, 2)
TILEWRIGHT_LINEAR_BAND(nvfp4, kNvfp4, kBf16, 64, 1)
TILEWRIGHT_LINEAR_BAND(nvfp4_braided, kNvfp4, kE4m3, 64, 1)
TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 64, 1)
TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 64, 1)
TILEWRIGHT_LINEAR_BAND(fp8, kFp8, kBf16, 64, 1)
TILEWRIGHT_LINEAR_BAND(bf16, kBf16, kBf16, 64, 1)
