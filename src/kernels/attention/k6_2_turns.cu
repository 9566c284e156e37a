// targets: sm_90a
//
// K6.2, warpgroups in turn: while one multiplies, the other one is in its softmax.
//
// New against K6.1: there the products of one consumer run under the softmax of the other only by
// luck. Two named barriers make it so. A consumer issues the product with V of one tile of keys and
// that of Q with the next tile's K in one turn, and passes the turn on; what it has issued runs
// while it goes through its softmax, and meanwhile the other one's turn comes. bar.sync waits and
// bar.arrive does not: 128 threads wait for a turn, and the 128 of the other warpgroup arrive.
//
//   tensor core  | QK1 (0) | QK1 (1) | PV1 QK0 (0) | PV1 QK0 (1) | PV0 (0) ...    (i): consumer i
//   consumer 0   | issue   | softmax of 1          | issue       | softmax of 0
//   consumer 1   | waits   | issue   | softmax of 1              | issue       | softmax of 0
//   barriers     K6.1's, and turn[i]: consumer i may issue
//
// Limit: as K5. What is left over: a consumer waits for its product with V before it issues the
// next one with K, and the tensor core idles whenever the softmax is longer than the products of
// the other consumer.
// Expected over K6.1: at head_dim 128 products and exponentials of a tile take 512 and 256 cycles
// of the SM, and with maxima, sums and conversions the softmax takes about as long as the products;
// warpgroups that were in step by chance now never are: 3 to 5 %. FlashAttention-3's paper finds
// 570 TFLOP/s without turns and 620 to 640 with them.
// Measured: see the table in README.md of this folder. Source: FlashAttention-3 (arXiv 2407.08608),
// section 3.1, "pingpong scheduling".
#include "kernels/attention/barriers.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/k6_2_turns.h"
#include "kernels/attention/loader.h"
#include "kernels/attention/query_consumer.h"
#include "kernels/attention/schedule.h"
#include "ptx/warp_roles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;  // of 168 for all at the launch

template <class ElementType, int HeadDim>
struct Config {
  using Element = ElementType;
  static constexpr int kHeadDim = HeadDim, kValueDim = HeadDim;
  static constexpr int kKeys = k6_2_tile(HeadDim).keys, kConsumers = 2;
  static constexpr int kQStages = 1, kKvStages = 2;
};

template <class Element, int HeadDim>
struct Kernel {
  static constexpr int kKeys = k6_2_tile(HeadDim).keys, kQueries = k6_2_tile(HeadDim).queries;
  using Loader = tile::AttentionLoader<Config<Element, HeadDim>>;
  using Consumer = tile::QueryConsumer<Config<Element, HeadDim>>;
  struct Shared {
    typename Loader::Shared rings;
    tile::TileTable table;
  };
  static_assert(sizeof(Shared) <= k6_2_tile(HeadDim).shared_bytes);

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

  static __device__ void await_turn(const Consumer& consumer) {
    ptx::bar_sync<256>(tile::kTurnBarrier + consumer.index);
  }
  static __device__ void pass_turn(const Consumer& consumer) {
    ptx::bar_arrive<256>(tile::kTurnBarrier + (consumer.index ^ 1));
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
    pass_turn(consumer);
    consumer.template await_scores<0>(s);
    consumer.template adjust<IsPlain>(s, rows, n);
    softmax.template update<!IsPlain>(s, consumer.params.scale_log2, correction);
    tile::pack_operand<Element, kKeys>(p, s);
    tile::scale_rows(o, correction);
    consumer.wait_v();
    await_turn(consumer);
    consumer.issue_values(o, p);
    consumer.template await_values<0>(o);
  }

  static __device__ void attend(Consumer& consumer, typename Consumer::Results& o,
                                tile::OnlineSoftmax& softmax, const Work& work) {
    const auto rows = consumer.rows_of(work.first_query, work.shift(), work.kv_len);
    const auto own = consumer.own_tiles(work.first_query, work.shift(), work.kv_len);
    consumer.wait_q();
    consumer.clear_values_behind(work.kv_len, work.tiles.end);
    await_turn(consumer);
    for (std::int32_t n = work.tiles.end - 1; n >= work.tiles.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(consumer, o, softmax, rows, n);
      } else {
        step<false>(consumer, o, softmax, rows, n);
      }
    }
    pass_turn(consumer);
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
    if (index == 1) pass_turn(consumer);  // consumer 0 begins
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

#define TILEWRIGHT_K6_2(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k6_2_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(k6_2_tile(HEAD_DIM).threads, 1),    \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_K6_2(bf16, Bf16, 64)
TILEWRIGHT_K6_2(bf16, Bf16, 128)
TILEWRIGHT_K6_2(f16, Fp16, 64)
TILEWRIGHT_K6_2(f16, Fp16, 128)

}  // namespace tilewright::kernels
