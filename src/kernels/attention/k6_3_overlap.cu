// targets: sm_90a
//
// K6.3, overlap: inside a warpgroup, too, the softmax of one tile of keys runs under a product.
//
// New against K6.2: the product with V of one tile is issued after that of Q with the next tile's
// K, both in one turn, and the softmax of the next tile runs while it is under way. Scores are
// awaited with one group pending. The weights are packed only when that group is done, because it
// reads their registers; the results are rescaled then, too, because it writes theirs. So a tile's
// first scores are computed before the loop and its last product after it.
//
//   tensor core  | QK1 PV2 (0) | QK1 PV2 (1) | QK0 PV1 (0) | QK0 PV1 (1) | ...    (i): consumer i
//   consumer 0   | issue       | softmax of 1              | issue       | softmax of 0
//   consumer 1   | softmax of 2| issue       | softmax of 1              | issue
//   barriers     as in K6.2
//
// Limit: as K5. Registers bind: results, scores and weights live at once, head_dim / 2 + keys / 2 +
// keys / 4 of 232.
// Expected over K6.2: a consumer no longer waits for its product with V, 256 of the 512 cycles of a
// tile's products at head_dim 128; half of those had already run under the other one's softmax: 8
// to 12 %. FlashAttention-3's paper goes from 620 to 640 to 661 TFLOP/s by this.
// Measured: see the table in README.md of this folder. The form that the library chooses,
// forward/k6_forward.cu, is this loop with the choices that search and measurement brought.
// Source: FlashAttention-3 (arXiv 2407.08608), section 3.2, "intra-warpgroup overlap".
#include "kernels/attention/barriers.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/k6_3_overlap.h"
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
  static constexpr int kKeys = k6_3_tile(HeadDim).keys, kConsumers = 2;
  static constexpr int kQStages = 1, kKvStages = 2;
};

template <class Element, int HeadDim>
struct Kernel {
  static constexpr int kKeys = k6_3_tile(HeadDim).keys, kQueries = k6_3_tile(HeadDim).queries;
  using Loader = tile::AttentionLoader<Config<Element, HeadDim>>;
  using Consumer = tile::QueryConsumer<Config<Element, HeadDim>>;
  struct Shared {
    typename Loader::Shared rings;
    tile::TileTable table;
  };
  static_assert(sizeof(Shared) <= k6_3_tile(HeadDim).shared_bytes);

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

  // Scores and weights of tile n while the products of the tile before with its values run.
  template <bool IsPlain>
  static __device__ void step(Consumer& consumer, typename Consumer::Scores& s,
                              typename Consumer::Weights& p, typename Consumer::Results& o,
                              tile::OnlineSoftmax& softmax, const typename Consumer::Rows& rows,
                              std::int32_t n) {
    float correction[2];
    consumer.wait_k();
    consumer.wait_v();
    await_turn(consumer);
    consumer.issue_scores(s);
    consumer.issue_values(o, p);
    pass_turn(consumer);
    consumer.template await_scores<1>(s);
    consumer.template adjust<IsPlain>(s, rows, n);
    softmax.template update<!IsPlain>(s, consumer.params.scale_log2, correction);
    consumer.template await_values<0>(o);
    tile::pack_operand<Element, kKeys>(p, s);
    tile::scale_rows(o, correction);
  }

  static __device__ void attend(Consumer& consumer, typename Consumer::Results& o,
                                tile::OnlineSoftmax& softmax, const Work& work) {
    const auto rows = consumer.rows_of(work.first_query, work.shift(), work.kv_len);
    const auto own = consumer.own_tiles(work.first_query, work.shift(), work.kv_len);
    typename Consumer::Scores s;
    typename Consumer::Weights p;
    float correction[2];  // of nothing yet
    std::int32_t n = work.tiles.end - 1;
    consumer.wait_q();
    consumer.clear_values_behind(work.kv_len, work.tiles.end);
    consumer.wait_k();
    consumer.issue_scores(s);
    consumer.template await_scores<0>(s);
    consumer.template adjust<false>(s, rows, n);
    softmax.template update<true>(s, consumer.params.scale_log2, correction);
    tile::pack_operand<Element, kKeys>(p, s);
    for (--n; n >= work.tiles.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(consumer, s, p, o, softmax, rows, n);
      } else {
        step<false>(consumer, s, p, o, softmax, rows, n);
      }
    }
    consumer.release_q();
    consumer.wait_v();
    consumer.issue_values(o, p);
    consumer.template await_values<0>(o);
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

#define TILEWRIGHT_K6_3(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k6_3_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(k6_3_tile(HEAD_DIM).threads, 1),    \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_K6_3(bf16, Bf16, 64)
TILEWRIGHT_K6_3(bf16, Bf16, 128)
TILEWRIGHT_K6_3(f16, Fp16, 64)
TILEWRIGHT_K6_3(f16, Fp16, 128)

}  // namespace tilewright::kernels
