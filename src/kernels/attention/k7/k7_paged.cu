// targets: sm_90a
//
// K7 over keys in pages, and with lengths that only the device knows: parts of prompts and
// sequences that decode over caches of e4m3, in one call. Read K7 (k7_fp8.cu) first; what is
// different here:
//
//   pages       one warp copies a tile of keys in parts, none of which crosses a page, or row by
//               row where pages are short (paged_copies.h); the three others transpose values
//   lengths     a tile of queries behind the end of its sequence is not dealt (paged_loader.h)
//   groups      rows of a tile are queries times the heads that share keys (paged_consumer.h)
//   chunks      a query sees keys of its own chunk alone (forward/paged_mask.h)
//
// Values are always rows, as caches have them. Results leave from registers: rows of a tile belong
// to several heads.
// Limit: as K7 with values in rows.
#include "kernels/attention/k7/config.h"
#include "kernels/attention/k7/k7_paged.h"
#include "kernels/attention/k7/paged_consumer.h"
#include "kernels/attention/k7/paged_loader.h"
#include "kernels/attention/k7/paged_values.h"
#include "kernels/attention/k7/transpose.h"
#include "kernels/attention/k7/worker.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <int Index>
struct PagedFp8Config : tile::Fp8AttentionConfig<kK7PagedVariants[Index]> {
  using Base = tile::Fp8AttentionConfig<kK7PagedVariants[Index]>;
  using Params = AttentionPagedFp8Params;
  using Tiles = tile::ChunkTiles<Base::kKeys>;
  static constexpr bool kHasPages = true;
  // Looking up pages takes more registers than copying alone.
  static constexpr int kProducerRegisters = Base::kConsumers == 3 ? 80 : 72;
  static constexpr int kConsumerRegisters = Base::kConsumers == 3 ? 144 : 216;
  // No more than the launch deals out, in eights: a warpgroup would wait for others for ever.
  static_assert(kProducerRegisters + Base::kConsumers * kConsumerRegisters <=
                65536 / Base::kTile.threads / 8 * 8 * (Base::kTile.threads / 128));

  static __device__ Tiles key_tiles(const AttentionParams& plain, const tile::DealtTile& tile) {
    const auto& params = static_cast<const AttentionPagedFp8Params&>(plain);
    const std::int32_t shift = params.pages.group_shift;
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query >> shift,
            min((tile.first_query + Base::kTile.queries - 1) >> shift, tile.q_len - 1)};
  }
};

template <class C>
__device__ void produce(const AttentionPagedFp8Params& params,
                        tile::Fp8AttentionShared<C>& shared) {
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  const bool gathers = params.pages.copies == PageCopies::kRows;
  if (warp == 0) {
    tile::PagedFp8Loader<C> loader{params, shared, {params}};
    if (gathers) {
      loader.template run<tile::GatheredRows<C>>();
    } else {
      loader.template run<tile::CopiedParts<C>>();
    }
  } else if (gathers) {
    tile::transpose_all_values<C>(
        params, shared, warp - 1,
        tile::GatheredValues<C>{params, shared, static_cast<std::int32_t>(warp) - 1});
  } else {
    tile::transpose_all_values<C>(params, shared, warp - 1);
  }
}

template <class C>
__device__ void attention_k7_pages(const AttentionPagedFp8Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::Fp8AttentionShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  if (threadIdx.x == 0) {
    if (params.pages.copies == PageCopies::kRows) {
      shared.initialise(32, tile::GatheredValues<C>::kArrivals);
    } else {
      shared.initialise();
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    produce<C>(params, shared);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    K7Worker<C, tile::PagedFp8Consumer<C>>{{{params, shared, index}},
                                           ptx::shared_address(&shared.zero)}
        .run();
  }
}

}  // namespace

#define TILEWRIGHT_K7_PAGES(NAME)                                                        \
  TILEWRIGHT_KERNEL(                                                                     \
      attention_k7_pages_##NAME, AttentionPagedFp8Params,                                \
      __launch_bounds__(kK7PagedVariants[find_k7_paged_index(#NAME)].tile().threads, 1), \
      attention_k7_pages<PagedFp8Config<find_k7_paged_index(#NAME)>>)

TILEWRIGHT_K7_PAGES(d64)
TILEWRIGHT_K7_PAGES(d128)
TILEWRIGHT_K7_PAGES(d256)
TILEWRIGHT_K7_PAGES(d64_two_level)
TILEWRIGHT_K7_PAGES(d128_two_level)
TILEWRIGHT_K7_PAGES(d256_two_level)

}  // namespace tilewright::kernels
