// K6 over pages, whatever fills the stages of keys and values: how a form cuts the problem, how
// tiles reach the warps that load, and the roles of a CTA.
#pragma once

#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/k6_worker.h"
#include "kernels/attention/forward/paged_mask.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/warp_roles.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::kernels {

/// What a form means for the roles of its kernel, which may choose otherwise than the list where no
/// caller sees it (and use fewer stages).
template <class ElementType, int VariantIndex, auto Choose = [](K6Variant form) { return form; }>
struct PagedForm {
  using Element = ElementType;
  static constexpr K6Variant kVariant = Choose(kK6PagedVariants[VariantIndex]);
  static constexpr AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kValueDim = kVariant.value_dim;
  static constexpr int kKeys = kVariant.keys, kKvStages = kVariant.kv_stages;
  static constexpr int kValueStages = kKvStages + kVariant.more_values;
  static constexpr int kConsumers = kVariant.consumers, kQStages = kVariant.q_stages;
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 56 : 72;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 152 : 216;
  using Tiles = tile::ChunkTiles<kKeys>;

  /// That take tiles, of those that produce.
  static __device__ int loading_warps(const AttentionPagedParams& params) {
    return params.pages.copies == PageCopies::kThread ? 0 : kPageWarps;
  }
  static __device__ Tiles key_tiles(const AttentionParams& plain, const tile::DealtTile& tile) {
    const auto& params = static_cast<const AttentionPagedParams&>(plain);
    const std::int32_t shift = params.pages.group_shift;
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query >> shift,
            min((tile.first_query + kTile.queries - 1) >> shift, tile.q_len - 1)};
  }
};

/// One thread draws tiles and deals them.
template <class Tiles>
struct ThreadTiles {
  Tiles tiles;
  tile::TileDealer dealer;

  __device__ tile::DealtTile take() {
    const tile::DealtTile tile = tiles.draw();
    dealer.deal(tile);
    return tile;
  }
};

/// Thread 0 does, and the warps that load take them as the consumers do.
template <class Tiles>
struct WarpTiles {
  ThreadTiles<Tiles> dealer;
  tile::TileTaker taker;

  __device__ tile::DealtTile take() {
    if (threadIdx.x == 0) dealer.take();
    __syncwarp();
    const tile::DealtTile tile = taker.take();
    taker.release();
    return tile;
  }
};

/// Loads what the tiles of this CTA need.
template <class Loader, class C, class Source>
__device__ void load_tiles(const typename C::Params& params, K6Shared<C>& shared, Source source) {
  Loader loader{params, shared.rings};
  for (tile::DealtTile tile = source.take(); tile.is_last == 0; tile = source.take()) {
    const typename C::Tiles seen = C::key_tiles(params, tile);
    if (seen.begin < seen.end) loader.load(tile, seen.begin, seen.end);
  }
}

/// The kernel of a config: a PagedForm with
///   Params, Shared, Consumer
///   kKvArrivals             at the barrier of a stage, until its keys or values are there
///   produce(params, shared) what the first four warps do
template <class C>
__device__ void attention_over_pages(const typename C::Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<K6Shared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  if (threadIdx.x == 0) {
    shared.zero = 0.0f;
    shared.rings.initialise(C::kKvArrivals);
    shared.table.ring.initialise(4 * C::kConsumers + C::loading_warps(params));
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    C::produce(params, shared);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    K6Worker<C>{{params, shared.rings, index}, ptx::shared_address(&shared.zero)}.run(shared);
  }
}

}  // namespace tilewright::kernels
