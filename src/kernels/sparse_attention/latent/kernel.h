// The roles of attention over values that are keys as well: sm90_latent_v512_qv.cu says what they
// do.
#pragma once

#include "kernels/sparse_attention/latent/consumer.h"
#include "kernels/sparse_attention/latent/loader.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/grid_dependency.h"
#include "ptx/prefetch.h"
#include "tile/entry.h"

namespace tilewright::tile {
template <class Form>
class LatentListLoader;  // list_loader.h, for forms that have lists
}

namespace tilewright::kernels {
namespace {

/// Of `bytes` from `from` on, a line for each thread of the grid: into the second cache.
__device__ inline void ask_for_lines(const void* from, std::int64_t bytes) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * LatentTile::kThreads + threadIdx.x) * 128;
  if (from != nullptr && at < bytes)
    ptx::prefetch_global_L2(static_cast<const std::uint8_t*>(from) + at);
}

/// Bytes of the table of pages that are read.
__device__ inline std::int64_t lines_of_table(const LatentParams& params) {
  const LatentCache& cache = params.cache;
  if (cache.table == nullptr || cache.capacity == 0) return 0;
  const auto last = cache.page_divisor.divide(static_cast<std::uint32_t>(cache.capacity - 1));
  return ((params.batch - 1) * cache.table_stride + last + 1) * 4;
}

/// What is read one after the other before the first key: where work begins, the work, lengths,
/// pages. All of it is asked for at once.
__device__ inline void ask_for_work(const LatentParams& params) {
  const std::int64_t tiles = std::int64_t{params.batch} * params.kv_heads * params.tiles;
  ask_for_lines(params.work_begin, (params.groups + 1) * 4);
  ask_for_lines(params.work,
                sparse_max_pieces(tiles, params.groups) * std::int64_t{sizeof(SparseWork)});
  ask_for_lines(params.lengths, std::int64_t{params.batch} * 4);
  ask_for_lines(params.cache.table, lines_of_table(params));
}

template <class Form>
__device__ void latent_attention(const LatentParams& params) {
  using Tile = LatentTile;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::LatentShared<Form>*>(dynamic);
  ask_for_work(params);
  if (threadIdx.x == 0) {
    shared.initialise();
    ptx::fence_mbarrier_init_release_cluster();
    if constexpr (!Form::kHasLists) {
      ptx::prefetch_tensormap(params.k_map);
      ptx::prefetch_tensormap(params.v_map);
    }
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
    if constexpr (Form::kHasLists) {
      tile::LatentListLoader<Form>(params, shared, warp).run(pieces);
    } else if (warp == 0) {
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
