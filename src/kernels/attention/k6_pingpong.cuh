#include "kernels/attention/attention.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/matrix_copy.h"
#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"
#include "tile/attention_epilogue.h"
#include "tile/attention_mask.h"
#include "tile/attention_schedule.h"
#include "tile/online_softmax.h"
#include "tile/ring.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

using tile::AttentionSequence;
using tile::AttentionWork;
using tile::kBoxColumns;
using tile::kBoxRowBytes;

constexpr int kWarpgroupRows = 64;
constexpr int kDealtTiles = 2;  // the producer deals ahead of the consumers

template <class ElementType, int HeadDim, int Warpgroups, int TileKeys, int PolynomialEveryNth, bool PingPong,
          bool Overlap, int QStages, bool QInRegisters = false, bool SkipRescale = false>
struct Config {
  using Element = ElementType;
  static constexpr int kHeadDim = HeadDim;
  static constexpr int kKeys = TileKeys;
  static constexpr int kConsumers = Warpgroups;
  static constexpr int kQueries = Warpgroups * kWarpgroupRows;
  static constexpr int kThreads = (Warpgroups + 1) * 128;
  static constexpr int kStages = 2;
  static constexpr int kQStages = QStages;
  static constexpr int kNth = PolynomialEveryNth;
  static constexpr bool kPingPong = PingPong, kOverlap = Overlap;
  static constexpr bool kQInRegisters = QInRegisters, kSkipRescale = SkipRescale;
  // All 64 K registers of a multiprocessor are dealt out at the start, and dealt again by role.
  static constexpr int kProducerRegisters = Warpgroups == 2 ? (TileKeys > 128 ? 24 : 40) : 32;
  static constexpr int kConsumerRegisters = Warpgroups == 2 ? (TileKeys > 128 ? 240 : 232) : 160;
  static constexpr int kBoxes = HeadDim / kBoxColumns;
  static constexpr int kQBytes = kWarpgroupRows * HeadDim * 2;  // of a warpgroup
  static constexpr int kKvBytes = TileKeys * HeadDim * 2;
};

template <class C>
struct Shared {
  std::uint8_t q[C::kQStages][C::kConsumers][C::kQBytes];
  std::uint8_t k[C::kStages][C::kKvBytes];
  std::uint8_t v[C::kStages][C::kKvBytes];
  tile::RingBarriers<C::kQStages> q_ring[C::kConsumers];
  tile::RingBarriers<C::kStages> k_ring, v_ring;
  tile::RingBarriers<kDealtTiles> tile_ring;
  std::int32_t tile[kDealtTiles];
};

template <class C>
__device__ void initialise(Shared<C>& shared) {
  for (int i = 0; i < C::kConsumers; ++i) shared.q_ring[i].initialise(4);
  shared.k_ring.initialise(4 * C::kConsumers);
  shared.v_ring.initialise(4 * C::kConsumers);
  shared.tile_ring.initialise(4 * C::kConsumers);
  ptx::fence_mbarrier_init_release_cluster();
}

// What a tile of queries needs: worked out by producer and consumers alike.
template <class C>
struct Work {
  AttentionWork at;
  AttentionSequence sequence;
  std::int32_t first_query;
  tile::KeyTiles<C::kKeys> tiles;

  __device__ Work(const AttentionParams& params, std::int32_t index)
      : at(params, index),
        sequence(tile::find_sequence(params, at.batch)),
        first_query(at.q_tile * C::kQueries),
        tiles(params, sequence, first_query,
              min(first_query + C::kQueries, sequence.q_len) - 1) {}

  __device__ bool is_empty() const { return first_query >= sequence.q_len; }
};

__device__ std::int32_t count_tiles(const AttentionParams& params) {
  return params.batch * params.heads * params.q_tiles;
}

// One thread: deals tiles to the consumers, and loads what they need.
template <class C>
struct Producer {
  const AttentionParams& params;
  Shared<C>& shared;
  tile::RingPosition<C::kQStages> q_at;
  tile::RingPosition<C::kStages> k_at, v_at;

  __device__ void load_box(std::uint32_t to, const void* map, int rows, int box, std::int32_t row,
                           std::int32_t head, std::int32_t batch, std::uint32_t barrier) {
    ptx::cp_async_bulk_tensor_4d_shared_global(to + box * rows * kBoxRowBytes, map,
                                               box * kBoxColumns, row, head, batch, barrier);
  }

  __device__ void load_q(const Work<C>& work) {
    const std::int32_t batch = params.cu_q == nullptr ? work.at.batch : 0;
    const std::int32_t row = work.sequence.q_begin + work.first_query;
#pragma unroll
    for (int i = 0; i < C::kConsumers; ++i) {
      const tile::Ring<C::kQStages> ring(shared.q_ring[i]);
      ring.start_filling(q_at, C::kQBytes);
#pragma unroll
      for (int box = 0; box < C::kBoxes; ++box) {
        load_box(ptx::shared_address(shared.q[q_at.stage][i]), params.q_map, kWarpgroupRows, box,
                 row + i * kWarpgroupRows, work.at.head, batch, ring.full(q_at));
      }
    }
    q_at.advance();
  }

  // Where the keys and values of a tile of queries lie in their tensors.
  struct KeyRows {
    std::int32_t first, head, batch;
  };
  __device__ void load_keys(const KeyRows& rows, tile::RingBarriers<C::kStages>& barriers,
                            tile::RingPosition<C::kStages>& at,
                            std::uint8_t (&stages)[C::kStages][C::kKvBytes], const void* map,
                            std::int32_t n) {
    const tile::Ring<C::kStages> ring(barriers);
    ring.start_filling(at, C::kKvBytes);
#pragma unroll
    for (int box = 0; box < C::kBoxes; ++box) {
      load_box(ptx::shared_address(stages[at.stage]), map, C::kKeys, box,
               rows.first + n * C::kKeys, rows.head, rows.batch, ring.full(at));
    }
    at.advance();
  }
  __device__ void load_k(const KeyRows& rows, std::int32_t n) {
    load_keys(rows, shared.k_ring, k_at, shared.k, params.k_map, n);
  }
  __device__ void load_v(const KeyRows& rows, std::int32_t n) {
    load_keys(rows, shared.v_ring, v_at, shared.v, params.v_map, n);
  }

  __device__ void run() {
    const std::int32_t total = count_tiles(params);
    const tile::Ring<kDealtTiles> tiles(shared.tile_ring);
    tile::RingPosition<kDealtTiles> tile_at;
    for (std::int32_t index = blockIdx.x;; index += gridDim.x) {
      if (params.next_tile != nullptr)
        index = static_cast<std::int32_t>(atomicAdd(params.next_tile, 1u));
      ptx::mbarrier_wait_parity(tiles.empty_barriers + tile_at.stage * 8, tile_at.parity ^ 1);
      shared.tile[tile_at.stage] = index;
      ptx::mbarrier_arrive(tiles.full(tile_at));
      tile_at.advance();
      if (index >= total) return;
      const Work<C> work(params, index);
      if (work.is_empty() || work.tiles.begin == work.tiles.end) continue;
      load_q(work);
      const KeyRows rows = {work.sequence.kv_begin, work.at.head / (params.heads / params.kv_heads),
                            params.cu_kv == nullptr ? work.at.batch : 0};
      std::int32_t n = work.tiles.end - 1;
      load_k(rows, n);
      for (; n > work.tiles.begin; --n) {
        load_k(rows, n - 1);
        load_v(rows, n);
      }
      load_v(rows, n);
    }
  }
};

template <class C>
struct Consumer {
  static constexpr int kHeadDim = C::kHeadDim, kKeys = C::kKeys;
  using Element = typename C::Element;

  // Of a thread: where its first row stands among the keys.
  struct Rows {
    std::int32_t position, kv_len;
  };

  const AttentionParams& params;
  Shared<C>& shared;
  std::uint32_t index;  // of the warpgroup among the consumers
  tile::RingPosition<C::kQStages> q_at;
  tile::RingPosition<C::kStages> k_at, v_at;
  tile::RingPosition<kDealtTiles> tile_at;

  // Warpgroups issue in turn: barrier 1 + i lets warpgroup i issue its MMAs.
  __device__ void await_turn() const {
    if constexpr (C::kPingPong) ptx::bar_sync<256>(1 + index);
  }
  __device__ void pass_turn() const {
    if constexpr (C::kPingPong) ptx::bar_arrive<256>(1 + (index + 1) % C::kConsumers);
  }

  __device__ std::int32_t take_tile() {
    const tile::Ring<kDealtTiles> tiles(shared.tile_ring);
    tiles.wait_full(tile_at);
    const std::int32_t tile = ptx::uniform(shared.tile[tile_at.stage]);
    tiles.release(tile_at);
    tile_at.advance();
    return tile;
  }

  std::uint32_t q_fragment[C::kQInRegisters ? kHeadDim / 16 : 1][4];

  __device__ void load_q_fragment() {
    const std::uint32_t rows = ptx::shared_address(shared.q[q_at.stage][index]);
    const std::uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      const std::uint32_t box = rows + i / 4 * kWarpgroupRows * kBoxRowBytes;
      ptx::ldmatrix<4>(q_fragment[i],
                       arch::swizzle_address(arch::SmemSwizzle::k128B,
                                             box + row * kBoxRowBytes + i % 4 * 32 + lane / 16 * 16));
    }
  }

  __device__ void rescale(float (&o)[kHeadDim / 2], const float (&correction)[2]) const {
    if (!C::kSkipRescale || __any_sync(0xffffffffu, correction[0] != 1.0f || correction[1] != 1.0f))
      tile::scale_rows(o, correction);
  }

  // s = q k^T of the tile that is next in the ring: issued and committed.
  __device__ void issue_scores(float (&s)[kKeys / 2]) {
    ptx::wgmma_fence_operand(s);
    ptx::wgmma_fence_sync_aligned();
    if constexpr (C::kQInRegisters) {
      tile::multiply_qk_rs<Element, kKeys, kHeadDim>(
          s, q_fragment,
          tile::describe_k_major<kKeys, kHeadDim>(ptx::shared_address(shared.k[k_at.stage])));
      ptx::wgmma_commit_group_sync_aligned();
      return;
    }
    tile::multiply_qk<Element, kKeys, kHeadDim>(
        s,
        tile::describe_k_major<kWarpgroupRows, kHeadDim>(
            ptx::shared_address(shared.q[q_at.stage][index])),
        tile::describe_k_major<kKeys, kHeadDim>(ptx::shared_address(shared.k[k_at.stage])));
    ptx::wgmma_commit_group_sync_aligned();
  }
  // o += p v.
  __device__ void issue_values(float (&o)[kHeadDim / 2], const std::uint32_t (&p)[kKeys / 16][4]) {
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence_sync_aligned();
    tile::multiply_pv<Element, kHeadDim, kKeys>(
        o, p,
        tile::describe_mn_major<kKeys, kHeadDim>(ptx::shared_address(shared.v[v_at.stage])));
    ptx::wgmma_commit_group_sync_aligned();
  }
  __device__ void release_k() {
    tile::Ring<C::kStages>(shared.k_ring).release(k_at);
    k_at.advance();
  }
  __device__ void release_v() {
    tile::Ring<C::kStages>(shared.v_ring).release(v_at);
    v_at.advance();
  }
  __device__ void wait_k() const { tile::Ring<C::kStages>(shared.k_ring).wait_full(k_at); }
  __device__ void wait_v() const { tile::Ring<C::kStages>(shared.v_ring).wait_full(v_at); }

  // Scores that need more than an exponential: cut off by softcap or hidden by the mask.
  __device__ void adjust(float (&s)[kKeys / 2], const Rows& of, std::int32_t n) const {
    const tile::VisibleKeys rows[2] = {{params, of.position, of.kv_len},
                                       {params, of.position + 8, of.kv_len}};
    if (params.softcap_scale != 0.0f) {
#pragma unroll
      for (float& x : s) x = tile::tanh_of_half(x * params.softcap_scale);
    }
    tile::hide_keys(s, rows, n * kKeys);
  }

  // One tile of keys while the previous one's values are still being multiplied.
  template <bool IsPlain>
  __device__ void step(float (&o)[kHeadDim / 2], std::uint32_t (&p)[kKeys / 16][4],
                       tile::OnlineSoftmax& softmax, float (&correction)[2], const Rows& rows, std::int32_t n) {
    float s[kKeys / 2];
    wait_k();
    await_turn();
    issue_scores(s);
    if constexpr (kHeadDim > 128) rescale(o, correction);
    wait_v();
    issue_values(o, p);
    pass_turn();
    ptx::wgmma_wait_group_sync_aligned<1>();
    ptx::wgmma_fence_operand(s);
    release_k();
    if constexpr (!IsPlain) adjust(s, rows, n);
    softmax.update<!IsPlain, IsPlain ? C::kNth : 0>(s, params.scale_log2, correction);
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(o);
    release_v();
    tile::pack_operand<Element, kKeys>(p, s);
    if constexpr (kHeadDim <= 128) rescale(o, correction);
  }

  // The same without overlap inside the warpgroup.
  template <bool IsPlain>
  __device__ void plain_step(float (&o)[kHeadDim / 2], tile::OnlineSoftmax& softmax,
                             const Rows& rows, std::int32_t n, bool first) {
    float s[kKeys / 2], correction[2];
    std::uint32_t p[kKeys / 16][4];
    wait_k();
    if (first) await_turn();
    issue_scores(s);
    pass_turn();
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(s);
    release_k();
    if constexpr (!IsPlain) adjust(s, rows, n);
    softmax.update<!IsPlain, IsPlain ? C::kNth : 0>(s, params.scale_log2, correction);
    tile::pack_operand<Element, kKeys>(p, s);
    tile::scale_rows(o, correction);
    wait_v();
    await_turn();
    issue_values(o, p);
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(o);
    release_v();
  }

  __device__ std::int32_t first_row() const {
    return static_cast<std::int32_t>(index * kWarpgroupRows + threadIdx.x % 128 / 32 * 16);
  }

  // Where the results go is worked out anew: it would occupy registers during the loop.
  __device__ void finish(const float (&o)[kHeadDim / 2], const tile::OnlineSoftmax& softmax,
                         std::int32_t tile_index) const {
    asm volatile("" : "+r"(tile_index));
    const Work<C> work(params, tile_index);
    const tile::RowResult result = tile::finish_rows(
        softmax, params.scale_log2, params.sink == nullptr ? nullptr : params.sink + work.at.head);
    tile::store_rows<Element, kHeadDim>(params, work.sequence, o, result, work.at.batch,
                                        work.at.head, work.first_query + first_row());
  }

  __device__ void attend(std::int32_t tile_index) {
    const Work<C> work(params, tile_index);
    if (work.is_empty()) return;
    const std::int32_t first = work.first_query + static_cast<std::int32_t>(index) * kWarpgroupRows;
    const std::int32_t lane_row = static_cast<std::int32_t>(threadIdx.x % 32 / 4);
    const Rows rows = {work.first_query + first_row() + lane_row + work.sequence.kv_len -
                           work.sequence.q_len,
                       work.sequence.kv_len};
    tile::KeyTiles<kKeys> own(params, work.sequence, first, first + kWarpgroupRows - 1);
    if (params.softcap_scale != 0.0f) own.plain_end = own.plain_begin;
    float o[kHeadDim / 2] = {};
    tile::OnlineSoftmax softmax;
    if (work.tiles.begin < work.tiles.end) {
      tile::Ring<C::kQStages> q_ring(shared.q_ring[index]);
      q_ring.wait_full(q_at);
      if constexpr (C::kQInRegisters) {
        load_q_fragment();
        q_ring.release(q_at);
      }
      if constexpr (C::kOverlap) {
        std::uint32_t p[kKeys / 16][4];
        float correction[2];
        std::int32_t n = work.tiles.end - 1;
        {
          float s[kKeys / 2];
          wait_k();
          issue_scores(s);
          ptx::wgmma_wait_group_sync_aligned<0>();
          ptx::wgmma_fence_operand(s);
          release_k();
          adjust(s, rows, n);
          softmax.update<true, 0>(s, params.scale_log2, correction);
          tile::pack_operand<Element, kKeys>(p, s);
          correction[0] = correction[1] = 1.0f;
        }
        for (--n; n >= work.tiles.begin; --n) {
          if (n >= own.plain_begin && n < own.plain_end) {
            step<true>(o, p, softmax, correction, rows, n);
          } else {
            step<false>(o, p, softmax, correction, rows, n);
          }
        }
        if constexpr (!C::kQInRegisters) q_ring.release(q_at);
        if constexpr (kHeadDim > 128) tile::scale_rows(o, correction);
        wait_v();
        issue_values(o, p);
        ptx::wgmma_wait_group_sync_aligned<0>();
        ptx::wgmma_fence_operand(o);
        release_v();
      } else {
        for (std::int32_t n = work.tiles.end - 1; n >= work.tiles.begin; --n) {
          if (n >= own.plain_begin && n < own.plain_end) {
            plain_step<true>(o, softmax, rows, n, n == work.tiles.end - 1);
          } else {
            plain_step<false>(o, softmax, rows, n, n == work.tiles.end - 1);
          }
        }
        pass_turn();
        if constexpr (!C::kQInRegisters) q_ring.release(q_at);
      }
      q_at.advance();
    }
    finish(o, softmax, tile_index);
  }

  __device__ void run() {
    if (C::kPingPong && index == C::kConsumers - 1) pass_turn();  // the first one begins
    const std::int32_t total = count_tiles(params);
    for (std::int32_t tile = take_tile(); tile < total; tile = take_tile()) {
      attend(tile);
    }
  }
};

template <class C>
__device__ void attention_forward(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<C>*>(dynamic);
  if (threadIdx.x == 0) initialise(shared);
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    if (threadIdx.x < 32 && ptx::elect_sync()) Producer<C>{params, shared}.run();
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    Consumer<C>{params, shared, ptx::uniform(threadIdx.x / 128 - 1)}.run();
  }
}

}  // namespace
}  // namespace tilewright::kernels
