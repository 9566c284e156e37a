// targets: sm_90a
//
// K6 over keys in pages, and with lengths that only the device knows: parts of prompts and
// sequences that decode, in one call. Read K6 (k6_forward.cu) first; what is different here:
//
//   pages       a tile of keys is copied in parts, none of which crosses a page (paged_loader.h),
//               or row by row where pages are short (paged_gather.h)
//   lengths     a tile of queries behind the end of its sequence is not dealt, and parts of prompts
//               run beside sequences that decode (paged_tiles.h)
//   groups      rows of a tile are queries times the heads that share keys (paged_consumer.h)
//   chunks      a query sees keys of its own chunk alone (paged_mask.h)
//   stages      a third one of keys and values, where there is room
// Entries that gather rows are others: a fence behind a branch among the products cost 2 %.
//
// Limit: as K6; rows that are gathered cost 7 to 19 % more time.
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/k6_worker.h"
#include "kernels/attention/forward/paged_consumer.h"
#include "kernels/attention/forward/paged_gather.h"
#include "kernels/attention/forward/paged_loader.h"
#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/forward/paged_tiles.h"
#include "tile/dealt_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using tile::DealtTile;

template <class ElementType, int VariantIndex, bool Gathers>
struct PagedConfig {
  using Element = ElementType;
  static constexpr bool kGathers = Gathers;
  static constexpr K6Variant kVariant = kK6PagedVariants[VariantIndex];
  static constexpr AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kValueDim = kVariant.value_dim;
  static constexpr int kKeys = kVariant.keys, kKvStages = kVariant.kv_stages;
  static constexpr int kConsumers = kVariant.consumers, kQStages = kVariant.q_stages;
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 56 : 72;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 152 : 216;

  using Shared = tile::AttentionShared<PagedConfig>;
  using Consumer = tile::PagedConsumer<PagedConfig>;
  using Tiles = tile::ChunkTiles<kKeys>;

  static __device__ Tiles key_tiles(const AttentionParams& plain, const DealtTile& tile) {
    const auto& params = static_cast<const AttentionPagedParams&>(plain);
    const std::int32_t shift = params.pages.group_shift;
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query >> shift,
            min((tile.first_query + kTile.queries - 1) >> shift, tile.q_len - 1)};
  }
};

// One thread deals tiles.
template <class C>
struct PagedDealer {
  tile::PagedTiles<C::kTile.queries> tiles;
  tile::TileDealer dealer;

  __device__ DealtTile take() {
    const DealtTile tile = tiles.draw();
    dealer.deal(tile);
    return tile;
  }
};

// To the warps that load, thread 0.
template <class C>
struct PagedTaker {
  PagedDealer<C> dealer;
  tile::TileTaker taker;

  __device__ DealtTile take() {
    if (threadIdx.x == 0) dealer.take();
    __syncwarp();
    const DealtTile tile = taker.take();
    taker.release();
    return tile;
  }
};

template <class Loader, class C, class Taker>
__device__ void produce(const AttentionPagedParams& params, K6Shared<C>& shared, Taker taker) {
  Loader loader{params, shared.rings};
  for (DealtTile tile = taker.take(); tile.is_last == 0; tile = taker.take()) {
    const typename C::Tiles tiles = C::key_tiles(params, tile);
    if (tiles.begin < tiles.end) loader.load(tile, tiles.begin, tiles.end);
  }
}

template <class C>
__device__ void produce_as_planned(const AttentionPagedParams& params, K6Shared<C>& shared) {
  const PagedDealer<C> dealer{{params}, {shared.table}};
  const PagedTaker<C> taker{dealer, {shared.table}};
  if constexpr (C::kGathers) {
    produce<tile::PagedGatherer<C>>(params, shared, taker);
  } else if (params.pages.copies == PageCopies::kWarps) {
    produce<tile::PagedLoader<C, false>>(params, shared, taker);
  } else if (threadIdx.x < 32 && ptx::elect_sync()) {
    produce<tile::PagedLoader<C, true>>(params, shared, dealer);
  }
}

template <class C>
__device__ void attention_k6_pages(const AttentionPagedParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<K6Shared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  if (threadIdx.x == 0) {
    shared.zero = 0.0f;
    shared.rings.initialise(C::kGathers ? 32 * kPageWarps : 1);
    shared.table.ring.initialise(4 * C::kConsumers +
                                 (params.pages.copies == PageCopies::kThread ? 0 : kPageWarps));
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    produce_as_planned<C>(params, shared);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    K6Worker<C>{{params, shared.rings, index}, ptx::shared_address(&shared.zero)}.run(shared);
  }
}

}  // namespace

#define TILEWRIGHT_K6_PAGES_OF(ENTRY, ELEMENT, NAME, GATHERS)                                    \
  TILEWRIGHT_KERNEL(                                                                             \
      attention_k6_pages_##ENTRY, AttentionPagedParams,                                          \
      __launch_bounds__(kK6PagedVariants[find_k6_index(kK6PagedVariants, #NAME)].tile().threads, \
                        1),                                                                      \
      attention_k6_pages<                                                                        \
          PagedConfig<tile::ELEMENT, find_k6_index(kK6PagedVariants, #NAME), GATHERS>>)
#define TILEWRIGHT_K6_PAGES(NAME)                              \
  TILEWRIGHT_K6_PAGES_OF(bf16_##NAME, Bf16, NAME, false)       \
  TILEWRIGHT_K6_PAGES_OF(f16_##NAME, Fp16, NAME, false)        \
  TILEWRIGHT_K6_PAGES_OF(bf16_##NAME##_rows, Bf16, NAME, true) \
  TILEWRIGHT_K6_PAGES_OF(f16_##NAME##_rows, Fp16, NAME, true)

TILEWRIGHT_K6_PAGES(d64)
TILEWRIGHT_K6_PAGES(d96)
TILEWRIGHT_K6_PAGES(d128)
TILEWRIGHT_K6_PAGES(d192)
TILEWRIGHT_K6_PAGES(d256)
TILEWRIGHT_K6_PAGES(d192_v128)

}  // namespace tilewright::kernels
