// targets: sm_90a
//
// K5: loads and products go to different warps.
//
// K4.2's one warpgroup waits for its own loads and lets the tensor core idle while it does the
// softmax. Here one thread of a producer warpgroup, which gives its registers away, keeps rings of
// keys and values full; two consumer warpgroups of 64 queries each share every tile that it loads,
// so a byte of K and V is read once per 128 queries instead of 64, and while one consumer is in its
// softmax the other one's products run. Tiles that a causal mask or a window hides are never
// loaded, and only tiles on the edge of the mask are compared with it.
//
//   producer    | Q K2 | K1 V2 | K0 V1 | V0    |      K3 is loaded when K2's stage is released
//   consumer 0      | QK2 softmax PV2 | QK1 softmax PV1 | ...   QK: wgmma, both operands in
//   consumer 1        | QK2 softmax PV2 | QK1 softmax ...       shared memory; PV: P in registers
//   barriers    full[stage]: the bytes have landed; empty[stage]: eight consumer warps are done
//
// Epilogue: a warpgroup's results go by stmatrix to where its queries lay, and out by tensor copy.
//
// Limit: 4 * head_dim flop for each visible score against 989 Tflop/s (bf16, dense, 1.83 GHz), and
// one exponential against 3.9 T/s: half the time of the products at head_dim 128, as long at 64.
// Within one consumer, products and softmax still take turns; FlashAttention-3's paper finds 570
// Tflop/s for this stage.
// Measured: table in README.md of this folder. Sources: FlashAttention-3 (arXiv 2407.08608),
// section 3.1; PTX ISA, "wgmma", "setmaxnreg", "mbarrier".
#include "kernels/attention/epilogue.h"
#include "kernels/attention/k5_warp_specialized.h"
#include "kernels/attention/loader.h"
#include "kernels/attention/query_consumer.h"
#include "kernels/attention/schedule.h"
#include "ptx/bulk_tensor_copy.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Registers are of 168 for all at the launch; barrier 1 + i is that of warpgroup i.
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232, kStagingBarrier = 1;

template <class ElementType, int HeadDim>
struct Config {
  using Element = ElementType;
  static constexpr int kHeadDim = HeadDim, kValueDim = HeadDim;
  static constexpr int kKeys = k5_tile(HeadDim).keys, kConsumers = 2;
  static constexpr int kQStages = 1, kKvStages = 2;
};

template <class Element, int HeadDim>
struct Kernel {
  static constexpr int kKeys = k5_tile(HeadDim).keys, kQueries = k5_tile(HeadDim).queries;
  using Loader = tile::AttentionLoader<Config<Element, HeadDim>>;
  using Consumer = tile::QueryConsumer<Config<Element, HeadDim>>;
  using Shared = typename Loader::Shared;
  static_assert(sizeof(Shared) <= k5_tile(HeadDim).shared_bytes);

  // The tile of this CTA: the last queries first, which see the most keys.
  struct Work {
    std::int32_t first_query, head, batch;
    tile::AttentionSequence sequence;
    tile::KeyTiles<kKeys> tiles;

    __device__ explicit Work(const AttentionParams& params)
        : first_query(static_cast<std::int32_t>(gridDim.x - 1 - blockIdx.x) * kQueries),
          head(static_cast<std::int32_t>(blockIdx.y)),
          batch(static_cast<std::int32_t>(blockIdx.z)),
          sequence(tile::find_sequence(params, batch)),
          tiles(params, sequence.kv_len, shift(), first_query,
                min(first_query + kQueries, sequence.q_len) - 1) {}

    __device__ std::int32_t shift() const { return sequence.kv_len - sequence.q_len; }
    __device__ bool has_keys() const { return tiles.begin < tiles.end; }
  };

  static __device__ void produce(const AttentionParams& params, Shared& shared, const Work& work) {
    if (!work.has_keys()) return;
    Loader loader{params, shared};
    loader.load_q({work.sequence.q_begin + work.first_query, work.head,
                   params.cu_q == nullptr ? work.batch : 0});
    loader.load_backwards({work.sequence.kv_begin, work.head / (params.heads / params.kv_heads),
                           params.cu_kv == nullptr ? work.batch : 0},
                          work.tiles.begin, work.tiles.end);
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
    const std::int32_t kv_len = work.sequence.kv_len;
    const auto rows = consumer.rows_of(work.first_query, work.shift(), kv_len);
    const auto own = consumer.own_tiles(work.first_query, work.shift(), kv_len);
    consumer.wait_q();
    consumer.clear_values_behind(kv_len, work.tiles.end);
    for (std::int32_t n = work.tiles.end - 1; n >= work.tiles.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(consumer, o, softmax, rows, n);
      } else {
        step<false>(consumer, o, softmax, rows, n);
      }
    }
  }

  static __device__ void finish(const AttentionParams& params, const Consumer& consumer,
                                const typename Consumer::Results& o,
                                const tile::OnlineSoftmax& softmax, const Work& work) {
    const float* sink = params.sink == nullptr ? nullptr : params.sink + work.head;
    const tile::RowResult rows =
        tile::finish_rows(softmax.max, softmax.sum, params.scale_log2, sink);
    const std::int32_t first = work.first_query + static_cast<std::int32_t>(consumer.index) * 64;
    const std::int32_t query = work.first_query + consumer.warp_row();
    // A tensor copy writes whole boxes, beyond the end of a packed sequence as well.
    if (params.cu_q != nullptr && first + 64 > work.sequence.q_len) {
      tile::store_rows<Element, HeadDim>(params, work.sequence, o, rows, work.batch, work.head,
                                         query);
      return;
    }
    tile::store_lse(params, work.sequence, rows, work.batch, work.head, query);
    tile::store_boxes<Element, HeadDim>(
        params, consumer.shared.q[0][consumer.index], o, rows, kStagingBarrier + consumer.index,
        work.sequence.q_begin + first, work.head, params.cu_q == nullptr ? work.batch : 0);
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }

  static __device__ void run(const AttentionParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const Work work(params);
    if (work.first_query >= work.sequence.q_len) return;
    if (threadIdx.x == 0) {
      shared.initialise();
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      ptx::setmaxnreg_dec_sync_aligned<kProducerRegisters>();
      if (threadIdx.x < 32 && ptx::elect_sync()) produce(params, shared, work);
    } else {
      ptx::setmaxnreg_inc_sync_aligned<kConsumerRegisters>();
      Consumer consumer{params, shared, ptx::uniform(threadIdx.x / 128 - 1)};
      typename Consumer::Results o = {};
      tile::OnlineSoftmax softmax;
      if (work.has_keys()) attend(consumer, o, softmax, work);
      finish(params, consumer, o, softmax, work);
    }
  }
};

}  // namespace

#define TILEWRIGHT_K5(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k5_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(k5_tile(HEAD_DIM).threads, 1),    \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_K5(bf16, Bf16, 64)
TILEWRIGHT_K5(bf16, Bf16, 128)
TILEWRIGHT_K5(bf16, Bf16, 256)
TILEWRIGHT_K5(f16, Fp16, 64)
TILEWRIGHT_K5(f16, Fp16, 128)
TILEWRIGHT_K5(f16, Fp16, 256)

}  // namespace tilewright::kernels
