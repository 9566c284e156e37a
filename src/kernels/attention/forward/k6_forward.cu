// targets: sm_90a
//
// K6, what the library runs for operands of 16 bits: the loop of K6.3 with the choices that search
// and measurement brought. Read K6.1 (persistent CTAs), K6.2 (turns) and K6.3 (overlap) first.
//
//   lazy rescale   results are rescaled only when a maximum has grown by more than 2^8: any
//                  reference near the maximum gives the same quotients, and after the first tile a
//                  branch is all that is left of it
//   pass           a turn is passed on when the scores, or their maxima, are there: then each
//                  warpgroup is limited by its own chain of scores, maximum, exponentials; what
//                  the turn decides is by how much one lags the other, so that exponentials of one
//                  meet products of the other
// The other choices are members of K6Variant. Which of them a head dimension has, with how many
// warpgroups and keys, is data: kK6Variants.
//
// Limit: as K5. Registers bind: results, scores and weights of a tile take
// head_dim/2 + keys/2 + keys/4 of 240 (160 with three consumers), which gives the tile sizes.
// What the loop does without: addresses that ptxas cannot see to be uniform (a register move per
// descriptor word cost 8 %), masks (another copy of the loop), anything but one fused multiply-add
// and one ex2 per score. Tried and not kept, with numbers: docs/notes.
// Measured: table in README.md of the folder above. Sources: those of K6.1 and K6.3.
#include "kernels/attention/forward/early_worker.h"
#include "kernels/attention/forward/k6_forward.h"
#include "kernels/attention/forward/k6_worker.h"
#include "kernels/attention/forward/whole_consumer.h"
#include "kernels/attention/loader.h"
#include "kernels/attention/schedule.h"
#include "tile/entry.h"

#include <type_traits>

namespace tilewright::kernels {
namespace {

template <class ElementType, int VariantIndex>
struct K6Config {
  using Element = ElementType;
  static constexpr K6Variant kVariant = kK6Variants[VariantIndex];
  static constexpr AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kValueDim = kVariant.value_dim;
  static constexpr int kKeys = kVariant.keys, kKvStages = kVariant.kv_stages;
  static constexpr int kConsumers = kVariant.consumers, kQStages = kVariant.q_stages;
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : kKeys > 128 ? 24 : 40;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 160 : kKeys > 128 ? 240 : 232;

  using Shared = tile::AttentionShared<K6Config>;
  using Loader = tile::AttentionLoader<K6Config>;
  using Consumer = tile::WholeConsumer<K6Config>;
  using Worker = std::conditional_t<(kQStages > 1), K6EarlyWorker<K6Config>, K6Worker<K6Config>>;
  using Tiles = tile::KeyTiles<kKeys>;

  static __device__ Tiles key_tiles(const AttentionParams& params, const tile::DealtTile& tile) {
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query,
            min(tile.first_query + kTile.queries, tile.q_len) - 1};
  }
};

// One thread: deals tiles to the consumers, and loads what they need.
template <class C>
__device__ void produce(const AttentionParams& params, K6Shared<C>& shared) {
  typename C::Loader loader{params, shared.rings};
  tile::TileDealer dealer{shared.table};
  for (tile::TileNumbers numbers{params}; numbers.draw(); numbers.advance()) {
    const tile::AttentionWork work(params, numbers.index);
    const tile::AttentionSequence sequence = tile::find_sequence(params, work.batch);
    const tile::DealtTile tile = tile::make_tile(work, sequence, C::kTile.queries);
    if (tile.first_query >= tile.q_len) continue;
    dealer.deal(tile);
    const typename C::Tiles tiles = C::key_tiles(params, tile);
    if (tiles.begin == tiles.end) continue;
    const typename C::Loader::Rows queries = {tile.q_begin + tile.first_query, tile.head,
                                              params.cu_q == nullptr ? tile.batch : 0};
    const typename C::Loader::Rows keys = {sequence.kv_begin,
                                           tile.head / (params.heads / params.kv_heads),
                                           params.cu_kv == nullptr ? tile.batch : 0};
    if constexpr (C::kVariant.keys_first) {
      loader.load_keys_first(queries, keys, tiles.begin, tiles.end);
    } else {
      loader.load_q(queries);
      loader.load_backwards(keys, tiles.begin, tiles.end);
    }
  }
  dealer.deal_end();
}

template <class C>
__device__ void attention_k6(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<K6Shared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  if (threadIdx.x == 0) {
    shared.zero = 0.0f;
    shared.rings.initialise();
    shared.table.ring.initialise(4 * C::kConsumers);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    if (threadIdx.x < 32 && ptx::elect_sync()) produce<C>(params, shared);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    std::uint8_t* const staging =
        dynamic + C::kVariant.ring_bytes() + index * (C::kVariant.out_bytes() / C::kConsumers);
    typename C::Worker{params, shared.rings, index,   {},
                       {},     {},           staging, ptx::shared_address(&shared.zero)}
        .run(shared);
    if (C::kVariant.stages_out && threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

}  // namespace

#define TILEWRIGHT_K6_OF(TYPE, NAME, ...)                          \
  TILEWRIGHT_KERNEL(attention_k6_##TYPE##_##NAME, AttentionParams, \
                    __launch_bounds__(__VA_ARGS__::kTile.threads, 1), attention_k6<__VA_ARGS__>)
#define TILEWRIGHT_K6(NAME)                                                             \
  TILEWRIGHT_K6_OF(bf16, NAME, K6Config<tile::Bf16, find_k6_index(kK6Variants, #NAME)>) \
  TILEWRIGHT_K6_OF(f16, NAME, K6Config<tile::Fp16, find_k6_index(kK6Variants, #NAME)>)

TILEWRIGHT_K6(d64)
TILEWRIGHT_K6(d64_short)
TILEWRIGHT_K6(d96)
TILEWRIGHT_K6(d96_short)
TILEWRIGHT_K6(d128)
TILEWRIGHT_K6(d128_short)
TILEWRIGHT_K6(d128_long)
TILEWRIGHT_K6(d192)
TILEWRIGHT_K6(d256)
TILEWRIGHT_K6(d192_v128)

}  // namespace tilewright::kernels
