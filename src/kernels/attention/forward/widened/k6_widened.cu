// targets: sm_90a
//
// K6 over keys in pages and with lengths that only the device knows, for queries of 16 bits over
// caches of e4m3. Read K6 over pages (forward/k6_paged.cu) first; what is different here:
//
//   keys, values   four warps widen codes to 16 bits, exactly, on their way to shared memory
//                  (paged_widener.h): products are those of K6, none is rounded to e4m3
//   scales         of keys: scores are multiplied with them; of values: results
//
// Limit: as K6 over pages; half its bytes are read.
#include "kernels/attention/forward/k6_worker.h"
#include "kernels/attention/forward/widened/paged_widener.h"
#include "kernels/attention/forward/widened/used_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using tile::DealtTile;

template <class ElementType, int VariantIndex>
struct WidenedConfig {
  using Element = ElementType;
  static constexpr K6Variant kVariant = kK6PagedVariants[VariantIndex];
  static constexpr AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kValueDim = kVariant.value_dim;
  static constexpr int kKeys = kVariant.keys;
  static constexpr int kConsumers = kVariant.consumers, kQStages = kVariant.q_stages;
  static constexpr int kKvStages = kVariant.kv_stages;
  static constexpr bool kGathers = false;  // writers have the fence
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 56 : 72;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 152 : 216;

  using Shared = tile::WidenedShared<WidenedConfig>;
  using Consumer = tile::WidenedConsumer<WidenedConfig>;
  using Tiles = tile::ChunkTiles<kKeys>;

  static __device__ Tiles key_tiles(const AttentionParams& plain, const DealtTile& tile) {
    const auto& params = static_cast<const AttentionPagedFp8Params&>(plain);
    const std::int32_t shift = params.pages.group_shift;
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query >> shift,
            min((tile.first_query + kTile.queries - 1) >> shift, tile.q_len - 1)};
  }
};

// The warps that load; thread 0 deals.
template <class C>
__device__ void produce(const AttentionPagedFp8Params& params, K6Shared<C>& shared) {
  tile::PagedWidener<C> loader(params, shared.rings);
  tile::UsedTiles<C::kTile.queries> tiles{params, {params}};
  tile::TileDealer dealer{shared.table};
  tile::TileTaker taker{shared.table};
  while (true) {
    if (threadIdx.x == 0) dealer.deal(tiles.next());
    __syncwarp();
    const DealtTile tile = taker.take();
    taker.release();
    if (tile.is_last) return;
    const typename C::Tiles seen = C::key_tiles(params, tile);
    if (seen.begin < seen.end) loader.load(tile, seen.begin, seen.end);
  }
}

template <class C>
__device__ void attention_k6_widened(const AttentionPagedFp8Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<K6Shared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  if (threadIdx.x == 0) {
    shared.zero = 0.0f;
    for (auto& ring : shared.rings.q_ring) ring.initialise(4);
    shared.rings.k_ring.initialise(4 * C::kConsumers, kPageWarps);
    shared.rings.v_ring.initialise(4 * C::kConsumers, kPageWarps);
    shared.table.ring.initialise(4 * C::kConsumers + kPageWarps);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    produce<C>(params, shared);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    K6Worker<C>{{{params, shared.rings, index}}, ptx::shared_address(&shared.zero)}.run(shared);
  }
}

}  // namespace

#define TILEWRIGHT_K6_WIDENED(NAME)                                                              \
  TILEWRIGHT_KERNEL(                                                                             \
      attention_k6_pages_bf16_e4m3_##NAME, AttentionPagedFp8Params,                              \
      __launch_bounds__(kK6PagedVariants[find_k6_index(kK6PagedVariants, #NAME)].tile().threads, \
                        1),                                                                      \
      attention_k6_widened<WidenedConfig<tile::Bf16, find_k6_index(kK6PagedVariants, #NAME)>>)   \
  TILEWRIGHT_KERNEL(                                                                             \
      attention_k6_pages_f16_e4m3_##NAME, AttentionPagedFp8Params,                               \
      __launch_bounds__(kK6PagedVariants[find_k6_index(kK6PagedVariants, #NAME)].tile().threads, \
                        1),                                                                      \
      attention_k6_widened<WidenedConfig<tile::Fp16, find_k6_index(kK6PagedVariants, #NAME)>>)

TILEWRIGHT_K6_WIDENED(d64)
TILEWRIGHT_K6_WIDENED(d96)
TILEWRIGHT_K6_WIDENED(d128)
TILEWRIGHT_K6_WIDENED(d192)
TILEWRIGHT_K6_WIDENED(d256)
TILEWRIGHT_K6_WIDENED(d192_v128)

}  // namespace tilewright::kernels
