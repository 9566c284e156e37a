// The roles of attention over values that are keys as well: sm90_latent_v512_qv.cu says what they
// do.
#pragma once

#include "kernels/sparse_attention/latent/consumer.h"
#include "kernels/sparse_attention/latent/loader.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <class Form>
__device__ void latent_attention(const LatentParams& params) {
  using Tile = LatentTile;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::LatentShared<Form>*>(dynamic);
  if (threadIdx.x == 0) {
    shared.initialise();
    ptx::fence_mbarrier_init_release_cluster();
  }
  if constexpr (Form::kCtas > 1) {
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const auto cta = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t group = cta / params.ctas, part = cta % params.ctas;
  const tile::LatentPieces pieces(params, group, part);
  const std::uint32_t role = ptx::uniform(threadIdx.x / 128);
  if (role == 0) {
    ptx::setmaxnreg_inc_sync_aligned<Tile::kConsumerRegisters>();
    tile::LatentConsumer<Form, 0>(params, shared).run(pieces);
  } else if (role == 1) {
    ptx::setmaxnreg_inc_sync_aligned<Tile::kConsumerRegisters>();
    tile::LatentConsumer<Form, 1>(params, shared).run(pieces);
  } else {
    ptx::setmaxnreg_dec_sync_aligned<Tile::kLoaderRegisters>();
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32 - 8);
    if (warp == 0) {
      tile::LatentKeyLoader<Form>(params, shared).run(pieces);
    } else if constexpr (Form::kHasQv) {
      tile::load_latent_queries<Form>(params, shared, pieces, warp - 1);
    }
  }
  if constexpr (Form::kCtas > 1) ptx::cluster_sync();  // the other's copies and releases
}

}  // namespace

#define TILEWRIGHT_LATENT(NAME, ELEMENT, DIMS, HAS_QV)                                            \
  TILEWRIGHT_KERNEL(latent_##NAME, LatentParams, __launch_bounds__(LatentTile::kThreads, 1),      \
                    latent_attention<tile::LatentForm<tile::ELEMENT, DIMS, HAS_QV, 1>>)           \
  TILEWRIGHT_KERNEL(latent_pair_##NAME, LatentParams, __launch_bounds__(LatentTile::kThreads, 1), \
                    latent_attention<tile::LatentForm<tile::ELEMENT, DIMS, HAS_QV, 2>>)

}  // namespace tilewright::kernels
