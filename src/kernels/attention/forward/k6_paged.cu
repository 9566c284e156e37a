// targets: sm_90a
//
// K6 over keys in pages, and with lengths that only the device knows: parts of prompts and
// sequences that decode, in one call. Read K6 (k6_forward.cu) first; what is different here:
//
//   pages       a tile of keys is copied in parts, none of which crosses a page (paged_loader.h),
//               or row by row where pages are short (paged_gather.h)
//   lengths     a tile of queries behind the end of its sequence is not dealt
//   groups      rows of a tile are queries times the heads that share keys (paged_consumer.h)
//   chunks      a query sees keys of its own chunk alone (paged_mask.h)
//   stages      a third one of keys and values, where there is room
//
// Limit: as K6; rows that are gathered cost 7 to 19 % more time.
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/k6_worker.h"
#include "kernels/attention/forward/paged_consumer.h"
#include "kernels/attention/forward/paged_gather.h"
#include "kernels/attention/forward/paged_loader.h"
#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/schedule.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using tile::AttentionSequence;
using tile::AttentionWork;
using tile::DealtTile;

template <class ElementType, int VariantIndex>
struct PagedConfig {
  using Element = ElementType;
  static constexpr K6Variant kVariant = kK6PagedVariants[VariantIndex];
  static constexpr AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kValueDim = kVariant.value_dim;
  static constexpr int kKeys = kVariant.keys;
  static constexpr int kConsumers = kVariant.consumers, kQStages = kVariant.q_stages;
  static constexpr int kKvStages = kVariant.kv_stages;
  static constexpr bool kHasPages = true;
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 56 : 72;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 152 : 216;

  using Loader = tile::PagedLoader<PagedConfig, true>;
  using WarpsLoader = tile::PagedLoader<PagedConfig, false>;
  using Gatherer = tile::PagedGatherer<PagedConfig>;
  using Consumer = tile::PagedConsumer<PagedConfig>;
  using Tiles = tile::ChunkTiles<kKeys>;

  static __device__ Tiles key_tiles(const AttentionParams& plain, const DealtTile& tile) {
    const auto& params = static_cast<const AttentionPagedParams&>(plain);
    const std::int32_t shift = params.pages.group_shift;
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query >> shift,
            min((tile.first_query + kTile.queries - 1) >> shift, tile.q_len - 1)};
  }
};

// Lengths that only the device knows, as far as there is room for them.
__device__ AttentionSequence find_used_sequence(const AttentionPagedParams& params,
                                                std::int32_t batch) {
  const AttentionPages& pages = params.pages;
  AttentionSequence s = tile::find_sequence(params, batch);
  if (pages.q_lengths != nullptr) s.q_len = min(s.q_len, max(pages.q_lengths[batch], 0));
  if (pages.kv_lengths != nullptr) s.kv_len = min(s.kv_len, max(pages.kv_lengths[batch], 0));
  return s;
}

// One thread: the next tile that has queries, or the end.
template <class C>
struct PagedDealer {
  const AttentionPagedParams& params;
  tile::TileNumbers numbers;
  tile::TileDealer dealer;

  __device__ DealtTile deal() {
    while (numbers.draw()) {
      const AttentionWork work(params, numbers.index);
      numbers.advance();
      const AttentionSequence sequence = find_used_sequence(params, work.batch);
      DealtTile tile = tile::make_tile(work, sequence, C::kTile.queries);
      tile.unused = sequence.kv_begin;
      if (tile.first_query >> params.pages.group_shift >= tile.q_len) continue;
      dealer.deal(tile);
      return tile;
    }
    dealer.deal_end();
    return {.is_last = 1};
  }
};

// One thread does it all.
template <class C>
__device__ void produce(const AttentionPagedParams& params, K6Shared<C>& shared) {
  typename C::Loader loader{{params, shared.rings}};
  PagedDealer<C> dealer{params, {params}, {shared.table}};
  for (DealtTile tile = dealer.deal(); tile.is_last == 0; tile = dealer.deal()) {
    const typename C::Tiles tiles = C::key_tiles(params, tile);
    if (tiles.begin < tiles.end) loader.load(tile, tile.unused, tiles.begin, tiles.end);
  }
}

// The warps that load; thread 0 deals.
template <class C>
struct PagedTaker {
  const AttentionPagedParams& params;
  PagedDealer<C> dealer;
  tile::TileTaker taker;

  __device__ DealtTile take() {
    if (threadIdx.x == 0) dealer.deal();
    __syncwarp();
    const DealtTile tile = taker.take();
    taker.release();
    return tile;
  }
};

template <class C, class Loader>
__device__ void produce_by_warps(const AttentionPagedParams& params, K6Shared<C>& shared) {
  Loader loader{{params, shared.rings}};
  PagedTaker<C> taker{params, {params, {params}, {shared.table}}, {shared.table}};
  for (DealtTile tile = taker.take(); tile.is_last == 0; tile = taker.take()) {
    const typename C::Tiles tiles = C::key_tiles(params, tile);
    if (tiles.begin < tiles.end) loader.load(tile, 0, tiles.begin, tiles.end);
  }
}

// One thread, as AttentionShared::initialise; keys and values have come with kv_arrivals arrivals.
template <class C>
__device__ void initialise_rings(tile::AttentionShared<C>& rings, std::uint32_t kv_arrivals) {
  for (auto& ring : rings.q_ring) ring.initialise(4);
  rings.k_ring.initialise(4 * C::kConsumers, kv_arrivals);
  rings.v_ring.initialise(4 * C::kConsumers, kv_arrivals);
}

template <class C>
__device__ void attention_k6_pages(const AttentionPagedParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<K6Shared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  const PageCopies copies = params.pages.copies;
  if (threadIdx.x == 0) {
    shared.zero = 0.0f;
    initialise_rings<C>(shared.rings, copies == PageCopies::kRows ? 32 * kPageWarps : 1);
    shared.table.ring.initialise(4 * C::kConsumers +
                                 (copies == PageCopies::kThread ? 0 : kPageWarps));
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    if (copies == PageCopies::kThread) {
      if (threadIdx.x < 32 && ptx::elect_sync()) produce<C>(params, shared);
    } else if (copies == PageCopies::kWarps) {
      produce_by_warps<C, typename C::WarpsLoader>(params, shared);
    } else {
      produce_by_warps<C, typename C::Gatherer>(params, shared);
    }
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    K6Worker<C>{{params, shared.rings, index}, dynamic, ptx::shared_address(&shared.zero)}.run(
        shared);
  }
}

}  // namespace

#define TILEWRIGHT_K6_PAGES(TYPE, ELEMENT, NAME)                      \
  TILEWRIGHT_KERNEL(                                                  \
      attention_k6_pages_##TYPE##_##NAME, AttentionPagedParams,       \
      __launch_bounds__(find_k6_threads(kK6PagedVariants, #NAME), 1), \
      attention_k6_pages<PagedConfig<tile::ELEMENT, find_k6_index(kK6PagedVariants, #NAME)>>)

TILEWRIGHT_K6_PAGES(bf16, Bf16, d64)
TILEWRIGHT_K6_PAGES(bf16, Bf16, d96)
TILEWRIGHT_K6_PAGES(bf16, Bf16, d128)
TILEWRIGHT_K6_PAGES(bf16, Bf16, d192)
TILEWRIGHT_K6_PAGES(bf16, Bf16, d256)
TILEWRIGHT_K6_PAGES(bf16, Bf16, d192_v128)
TILEWRIGHT_K6_PAGES(f16, Fp16, d64)
TILEWRIGHT_K6_PAGES(f16, Fp16, d96)
TILEWRIGHT_K6_PAGES(f16, Fp16, d128)
TILEWRIGHT_K6_PAGES(f16, Fp16, d192)
TILEWRIGHT_K6_PAGES(f16, Fp16, d256)
TILEWRIGHT_K6_PAGES(f16, Fp16, d192_v128)

}  // namespace tilewright::kernels
