// targets: sm_90a
//
// K6, what the library runs for operands of 16 bits: the loop of K6.3 with the choices that search
// and measurement brought. Read K6.1 (persistent CTAs), K6.2 (turns) and K6.3 (overlap) first.
//
//   lazy rescale   results are rescaled only when a maximum has grown by more than 2^8: any
//                  reference near the maximum gives the same quotients, and after the first tile a
//                  branch is all that is left of it
//   pass           a turn is passed on when the scores, or their maxima, are there (K6Pass): then
//                  each warpgroup is limited by its own chain of scores, maximum, exponentials;
//                  what the turn decides is by how much one lags the other, so that exponentials
//                  of one meet products of the other
//   keys first     the next tile's first keys are loaded before its queries
//   early begin    with two stages of queries the next tile's first scores run under this one's end
//   staged out     results leave through shared memory by tensor copies
//   polling        the first consumer waits for copies, the others for their turn behind it
// Which of them a head dimension has, with how many warpgroups and keys, is data: kK6Variants.
//
//   tensor core  | QK1 PV2 (0) | QK1 PV2 (1) | QK0 PV1 (0) | QK0 PV1 (1) | ...      (i): consumer i
//   consumer 0   | issue       | softmax of 1              | issue       | softmax of 0
//   consumer 1   | softmax of 2| issue       | softmax of 1              | issue
//   barriers     full and empty per stage; turn[i]: 128 threads wait, 128 of the previous arrive
//
// Limit: as K5. Registers bind: results, scores and weights of a tile take
// head_dim/2 + keys/2 + keys/4 of 240 (160 with three consumers), which gives the tile sizes.
// What the loop does without: addresses that ptxas cannot see to be uniform (a register move per
// descriptor word cost 8 %), masks (another copy of the loop), anything but one fused multiply-add
// and one ex2 per score. Tried and not kept, with numbers: docs/notes.
// Measured: table in README.md of the folder above. Sources: FlashAttention-3 (arXiv 2407.08608),
// sections 3.2 and 3.3; longest-first order: Graham's list scheduling.
#include "kernels/attention/consumer.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/forward/k6_forward.h"
#include "kernels/attention/schedule.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/load_store.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using tile::AttentionSequence;
using tile::AttentionWork;
using tile::DealtTile;

template <class ElementType, int VariantIndex>
struct Config {
  using Element = ElementType;
  static constexpr K6Variant kVariant = kK6Variants[VariantIndex];
  static constexpr AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kKeys = kVariant.keys;
  static constexpr int kConsumers = kVariant.consumers, kQStages = kVariant.q_stages;
  static constexpr int kKvStages = K6Variant::kKvStages;
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : kKeys > 128 ? 24 : 40;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 160 : kKeys > 128 ? 240 : 232;

  using Loader = tile::AttentionLoader<Config>;
  using Consumer = tile::AttentionConsumer<Config>;
  using Tiles = tile::KeyTiles<kKeys>;
};

template <class C>
struct Shared {
  typename C::Loader::Shared rings;
  tile::TileTable table;
  float zero;  ///< see pass_turn_here
};

template <class C>
__device__ typename C::Tiles key_tiles(const AttentionParams& params, const DealtTile& tile) {
  return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query,
          min(tile.first_query + C::kTile.queries, tile.q_len) - 1};
}

// One thread: deals tiles to the consumers, and loads what they need.
template <class C>
__device__ void produce(const AttentionParams& params, Shared<C>& shared) {
  typename C::Loader loader{params, shared.rings};
  tile::TileDealer dealer{shared.table};
  for (tile::TileNumbers numbers{params}; numbers.draw(); numbers.advance()) {
    const AttentionWork work(params, numbers.index);
    const AttentionSequence sequence = tile::find_sequence(params, work.batch);
    const DealtTile tile = tile::make_tile(work, sequence, C::kTile.queries);
    if (tile.first_query >= tile.q_len) continue;
    dealer.deal(tile);
    const typename C::Tiles tiles = key_tiles<C>(params, tile);
    if (tiles.begin == tiles.end) continue;
    const typename C::Loader::QueryRows queries = {tile.q_begin + tile.first_query, tile.head,
                                                   params.cu_q == nullptr ? tile.batch : 0};
    const typename C::Loader::KeyRows keys = {sequence.kv_begin,
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

// The tile that a consumer works on.
template <class C>
struct Work {
  DealtTile tile;
  typename C::Tiles tiles;
  bool has_keys;

  __device__ Work(const AttentionParams& params, const DealtTile& dealt)
      : tile(dealt),
        tiles(key_tiles<C>(params, dealt)),
        has_keys(dealt.is_last == 0 && tiles.begin < tiles.end) {}
};

template <class C>
struct Worker : C::Consumer {
  using Base = typename C::Consumer;
  using Base::index;
  using Base::params;
  using typename Base::Results;
  using typename Base::Rows;
  using typename Base::Scores;
  using typename Base::Weights;
  static constexpr int kHeadDim = C::kHeadDim, kKeys = C::kKeys;

  std::uint8_t* staging;  ///< of this warpgroup's results
  std::uint32_t zero_at;  ///< address of Shared::zero

  // The others come after the first, and what it has seen landed they see too.
  __device__ bool polls() const { return !C::kVariant.first_polls || index == 0; }
  __device__ void await_turn() const { ptx::bar_sync<256>(tile::kTurnBarrier + index); }
  __device__ void pass_turn() const {
    ptx::bar_arrive<256>(tile::kTurnBarrier + (index + 1) % C::kConsumers);
  }

  // Passes the turn when `after` is known and before anything that depends on the result, 0: ptxas
  // moves an arrival freely, from here to behind all exponentials. The barrier's number depends on
  // `after` (whose bits are never those of this NaN: arithmetic gives 0x7fffffff), and the load of
  // a zero keeps its place among instructions with side effects. The price is that load.
  __device__ float pass_turn_here(float after) const {
    const std::uint32_t never = __float_as_uint(after) == 0x7fc12345u;
    ptx::bar_arrive<256>(tile::kTurnBarrier + (index + 1) % C::kConsumers + never);
    return ptx::ld_volatile_shared_f32(zero_at);
  }

  // One tile of keys while the previous one's values are still being multiplied.
  template <bool IsPlain>
  __device__ void step(Scores& s, Results& o, Weights& p, tile::OnlineSoftmax& softmax,
                       float (&correction)[2], const Rows& rows, std::int32_t n) {
    float base[2];
    if (polls()) this->wait_k();
    await_turn();
    this->issue_scores(s);
    if (polls()) this->wait_v();
    this->issue_values(o, p);
    this->template await_scores<1>(s);
    float zero = 0.0f;
    if constexpr (C::kVariant.pass == K6Pass::kAfterScores) zero = pass_turn_here(0);
    this->template adjust<IsPlain>(s, rows, n);
    const bool has_moved =
        softmax.template raise_reference<!IsPlain>(s, params.scale_log2, base, correction);
    if constexpr (C::kVariant.pass == K6Pass::kAfterMaximum) zero = pass_turn_here(base[1]);
    base[0] += zero;
    base[1] += zero;
    softmax.exponentiate(s, params.scale_log2, base, correction);
    this->template await_values<0>(o);
    tile::pack_operand<typename C::Element, kKeys>(p, s);
    if (has_moved) tile::scale_rows(o, correction);
  }

  // All tiles of keys but for the last product, which is in flight at the end. The scores of the
  // first tile are there.
  __device__ void attend_tiles(Scores& s, Results& o, tile::OnlineSoftmax& softmax,
                               const Rows& rows, const typename C::Tiles& tiles,
                               const typename C::Tiles& own) {
    Weights p;
    float correction[2];
    std::int32_t n = tiles.end - 1;
    this->template weigh<false>(s, softmax, correction, rows, n);
    tile::pack_operand<typename C::Element, kKeys>(p, s);
    correction[0] = correction[1] = 1.0f;
    for (--n; n >= tiles.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(s, o, p, softmax, correction, rows, n);
      } else {
        step<false>(s, o, p, softmax, correction, rows, n);
      }
    }
    this->wait_v();
    this->issue_values(o, p);
  }

  __device__ void attend(Scores& s, Results& o, tile::OnlineSoftmax& softmax, const Work<C>& work) {
    const std::int32_t shift = work.tile.kv_len - work.tile.q_len;
    const Rows rows = this->rows_of(work.tile.first_query, shift, work.tile.kv_len);
    const auto own = this->own_tiles(work.tile.first_query, shift, work.tile.kv_len);
    this->clear_values_behind(work.tile.kv_len, work.tiles.end);
    attend_tiles(s, o, softmax, rows, work.tiles, own);
    if constexpr (C::kVariant.keys_first) {
      this->q_at.advance();  // the last keys' release was the queries' as well
    } else {
      this->release_q();
    }
  }

  __device__ void finish(const Results& o, const tile::OnlineSoftmax& softmax,
                         const DealtTile& tile) const {
    const float* sink = params.sink == nullptr ? nullptr : params.sink + tile.head;
    const AttentionSequence sequence = {tile.q_begin, tile.q_len, 0, tile.kv_len};
    const tile::RowResult rows =
        tile::finish_rows(softmax.max, softmax.sum, params.scale_log2, sink);
    const std::int32_t query = tile.first_query + this->warp_row();
    // A tensor copy writes whole boxes, beyond the end of a packed sequence as well.
    if (C::kVariant.stages_out && params.cu_q == nullptr) {
      if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
      ptx::bar_sync<128>(tile::kStagingBarrier + index);
      tile::store_boxes<typename C::Element, kHeadDim>(
          params, staging, o, rows, tile::kStagingBarrier + index,
          tile.first_query + static_cast<std::int32_t>(index) * 64, tile.head, tile.batch);
      tile::store_lse(params, sequence, rows, tile.batch, tile.head, query);
    } else {
      tile::store_rows<typename C::Element, kHeadDim>(params, sequence, o, rows, tile.batch,
                                                      tile.head, query);
    }
  }

  // The scores of a tile's last keys.
  __device__ void issue_first_scores(Scores& s) {
    this->wait_q();
    // All begin together: a head start of the first would last for the whole tile, and cost 3 %.
    if constexpr (C::kVariant.keys_first) this->wait_all_q();
    this->wait_k();
    this->issue_scores(s);
  }
  // Takes the next tile and computes its first scores.
  __device__ Work<C> begin(tile::TileTaker& taker, Scores& s) {
    const Work<C> work(params, taker.take());
    if (!work.has_keys) return work;
    issue_first_scores(s);
    this->template await_scores<0>(s);
    return work;
  }
  // The same while the results of the last tile are finished and written.
  __device__ Work<C> begin_early(tile::TileTaker& taker, Scores& s, Results& o,
                                 const tile::OnlineSoftmax& softmax, const DealtTile& last) {
    const Work<C> work(params, taker.take());
    if (work.has_keys) {
      issue_first_scores(s);
      this->template await_values<1>(o);
      finish(o, softmax, last);
      this->template await_scores<0>(s);
    } else {
      this->template await_values<0>(o);
      finish(o, softmax, last);
    }
    return work;
  }

  __device__ void run(Shared<C>& shared) {
    if (index == C::kConsumers - 1) pass_turn();  // the first one begins
    tile::TileTaker taker{shared.table};
    Scores s;
    Work<C> work = begin(taker, s);
    while (!work.tile.is_last) {
      Results o = {};
      tile::OnlineSoftmax softmax;
      taker.release();
      if (!work.has_keys) {
        finish(o, softmax, work.tile);
        work = begin(taker, s);
        continue;
      }
      attend(s, o, softmax, work);
      if constexpr (C::kQStages > 1) {
        work = begin_early(taker, s, o, softmax, work.tile);
      } else {
        this->template await_values<0>(o);
        finish(o, softmax, work.tile);
        work = begin(taker, s);
      }
    }
    if (C::kVariant.stages_out && threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
};

template <class C>
__device__ void attention_k6(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<C>*>(dynamic);
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
    Worker<C>{{params, shared.rings, index},
              dynamic + C::kVariant.ring_bytes() + index * (64 * C::kHeadDim * 2),
              ptx::shared_address(&shared.zero)}
        .run(shared);
  }
}

}  // namespace

#define TILEWRIGHT_K6(TYPE, ELEMENT, NAME)                                                  \
  TILEWRIGHT_KERNEL(attention_k6_##TYPE##_##NAME, AttentionParams,                          \
                    __launch_bounds__(kK6Variants[find_k6_index(#NAME)].tile().threads, 1), \
                    attention_k6<Config<tile::ELEMENT, find_k6_index(#NAME)>>)

TILEWRIGHT_K6(bf16, Bf16, d64)
TILEWRIGHT_K6(bf16, Bf16, d64_short)
TILEWRIGHT_K6(bf16, Bf16, d128)
TILEWRIGHT_K6(bf16, Bf16, d128_short)
TILEWRIGHT_K6(bf16, Bf16, d128_long)
TILEWRIGHT_K6(bf16, Bf16, d256)
TILEWRIGHT_K6(f16, Fp16, d64)
TILEWRIGHT_K6(f16, Fp16, d64_short)
TILEWRIGHT_K6(f16, Fp16, d128)
TILEWRIGHT_K6(f16, Fp16, d128_short)
TILEWRIGHT_K6(f16, Fp16, d128_long)
TILEWRIGHT_K6(f16, Fp16, d256)

}  // namespace tilewright::kernels
