// targets: sm_90a
//
// K6.1, persistent CTAs: one CTA per SM, which works on tile after tile of queries.
//
// New against K5: a CTA does not end with its tile. The producer draws the next one from a counter
// in global memory, looks up its sequence, deals it to the consumers through a ring in shared
// memory, and loads its operands while they still multiply and write: the latency at the begin of
// a tile and the epilogue at its end no longer stand between two tiles' loads. Tiles are drawn the
// longest first, in sections of heads whose keys and values fit the L2 cache: under a causal mask
// no long tile starts when the other SMs are done.
//
//   producer     | deal 0 | Q K2 | K1 V2 | K0 V1 | V0 | deal 1 | Q K2 | K1 V2 | ...
//   consumer 0            | QK2 softmax PV2 | QK1 softmax PV1 | QK0 ... | write | QK2 softmax ...
//   consumer 1              | QK2 softmax PV2 | QK1 softmax PV1 | QK0 ... | write | QK2 ...
//   barriers     K5's, and full and empty of the ring of dealt tiles
//
// Epilogue: results go straight to global memory, 16 bytes a thread, because K5's place for them,
// that of the queries, is being filled again.
//
// Limit: as K5. Products and softmax of a consumer still alternate.
// Expected over K5: at n = 4096 and head_dim 128 a tile takes 60 us, of which about 3 are the
// launch of the CTA, the first loads and the epilogue; two thirds of those now run beside
// products: 4 % without a mask. Under a causal mask tiles are half as long on average, and the
// order fills the end of the grid: 8 to 12 %.
// Measured: see the table in README.md of this folder. Source of the order: Graham's list
// scheduling.
#include "kernels/attention/epilogue.h"
#include "kernels/attention/k6_1_persistent.h"
#include "kernels/attention/loader.h"
#include "kernels/attention/query_consumer.h"
#include "kernels/attention/schedule.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;  // of 168 for all at the launch

template <class ElementType, int HeadDim>
struct Config {
  using Element = ElementType;
  static constexpr int kHeadDim = HeadDim, kValueDim = HeadDim;
  static constexpr int kKeys = k6_1_tile(HeadDim).keys, kConsumers = 2;
  static constexpr int kQStages = 1, kKvStages = 2;
};

template <class Element, int HeadDim>
struct Kernel {
  static constexpr int kKeys = k6_1_tile(HeadDim).keys, kQueries = k6_1_tile(HeadDim).queries;
  using Loader = tile::AttentionLoader<Config<Element, HeadDim>>;
  using Consumer = tile::QueryConsumer<Config<Element, HeadDim>>;
  struct Shared {
    typename Loader::Shared rings;
    tile::TileTable table;
  };
  static_assert(sizeof(Shared) <= k6_1_tile(HeadDim).shared_bytes);

  // A tile of queries as it was dealt, and the tiles of keys that it needs.
  struct Work : tile::DealtTile {
    tile::KeyTiles<kKeys> tiles;

    __device__ Work(const AttentionParams& params, const tile::DealtTile& dealt)
        : tile::DealtTile(dealt),
          tiles(params, kv_len, shift(), first_query, min(first_query + kQueries, q_len) - 1) {}

    __device__ std::int32_t shift() const { return kv_len - q_len; }
    __device__ bool has_keys() const { return tiles.begin < tiles.end; }
  };

  static __device__ void produce(const AttentionParams& params, Shared& shared) {
    Loader loader{params, shared.rings};
    tile::TileDealer dealer{shared.table};
    for (tile::TileNumbers numbers{params}; numbers.draw(); numbers.advance()) {
      const tile::AttentionWork drawn(params, numbers.index);
      const tile::AttentionSequence sequence = tile::find_sequence(params, drawn.batch);
      const Work work(params, tile::make_tile(drawn, sequence, kQueries));
      if (work.first_query >= work.q_len) continue;
      dealer.deal(work);
      if (!work.has_keys()) continue;
      loader.load_q(
          {work.q_begin + work.first_query, work.head, params.cu_q == nullptr ? work.batch : 0});
      loader.load_backwards({sequence.kv_begin, work.head / (params.heads / params.kv_heads),
                             params.cu_kv == nullptr ? work.batch : 0},
                            work.tiles.begin, work.tiles.end);
    }
    dealer.deal_end();
  }

  template <bool IsPlain>
  static __device__ void step(Consumer& consumer, typename Consumer::Results& o,
                              tile::OnlineSoftmax& softmax, const typename Consumer::Rows& rows,
                              std::int32_t n) {
    typename Consumer::Scores s;
    typename Consumer::Weights p;
    float correction[2];
    consumer.wait_k();
    consumer.issue_scores(s);
    consumer.template await_scores<0>(s);
    consumer.template adjust<IsPlain>(s, rows, n);
    softmax.template update<!IsPlain>(s, consumer.params.scale_log2, correction);
    tile::pack_operand<Element, kKeys>(p, s);
    tile::scale_rows(o, correction);
    consumer.wait_v();
    consumer.issue_values(o, p);
    consumer.template await_values<0>(o);
  }

  static __device__ void attend(Consumer& consumer, typename Consumer::Results& o,
                                tile::OnlineSoftmax& softmax, const Work& work) {
    const auto rows = consumer.rows_of(work.first_query, work.shift(), work.kv_len);
    const auto own = consumer.own_tiles(work.first_query, work.shift(), work.kv_len);
    consumer.wait_q();
    consumer.clear_values_behind(work.kv_len, work.tiles.end);
    for (std::int32_t n = work.tiles.end - 1; n >= work.tiles.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(consumer, o, softmax, rows, n);
      } else {
        step<false>(consumer, o, softmax, rows, n);
      }
    }
    consumer.release_q();
  }

  static __device__ void finish(const AttentionParams& params, const Consumer& consumer,
                                const typename Consumer::Results& o,
                                const tile::OnlineSoftmax& softmax, const Work& work) {
    const float* sink = params.sink == nullptr ? nullptr : params.sink + work.head;
    const tile::RowResult rows =
        tile::finish_rows(softmax.max, softmax.sum, params.scale_log2, sink);
    const tile::AttentionSequence sequence = {work.q_begin, work.q_len, 0, work.kv_len};
    tile::store_rows<Element, HeadDim>(params, sequence, o, rows, work.batch, work.head,
                                       work.first_query + consumer.warp_row());
  }

  static __device__ void consume(const AttentionParams& params, Shared& shared,
                                 std::uint32_t index) {
    Consumer consumer{params, shared.rings, index};
    tile::TileTaker taker{shared.table};
    for (Work work(params, taker.take()); !work.is_last; work = Work(params, taker.take())) {
      taker.release();
      typename Consumer::Results o = {};
      tile::OnlineSoftmax softmax;
      if (work.has_keys()) attend(consumer, o, softmax, work);
      finish(params, consumer, o, softmax, work);
    }
  }

  static __device__ void run(const AttentionParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    if (threadIdx.x == 0) {
      shared.rings.initialise();
      shared.table.ring.initialise(4 * Config<Element, HeadDim>::kConsumers);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      ptx::setmaxnreg_dec_sync_aligned<kProducerRegisters>();
      if (threadIdx.x < 32 && ptx::elect_sync()) produce(params, shared);
    } else {
      ptx::setmaxnreg_inc_sync_aligned<kConsumerRegisters>();
      consume(params, shared, ptx::uniform(threadIdx.x / 128 - 1));
    }
  }
};

}  // namespace

#define TILEWRIGHT_K6_1(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k6_1_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(k6_1_tile(HEAD_DIM).threads, 1),    \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_K6_1(bf16, Bf16, 64)
TILEWRIGHT_K6_1(bf16, Bf16, 128)
TILEWRIGHT_K6_1(f16, Fp16, 64)
TILEWRIGHT_K6_1(f16, Fp16, 128)

}  // namespace tilewright::kernels
