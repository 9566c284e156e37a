// targets: sm_100f
//
// Stage F, pairs of CTAs: two SMs multiply together, and each holds half of K and of V.
//
// From head_dim 256 on, shared memory is what stages C and E run into: an operand B is read by the
// tensor core for 128 rows only, and written by the copies for no more. With cta_group::2 one
// instruction works for both CTAs of a cluster: every row of scores still meets every key, but each
// CTA loads, keeps and reads half of them, and the same goes for the columns of V. There is one
// tile of rows a CTA (its results are 256 columns already), so what overlaps are two tiles of keys:
// scores of the next are made while the rows work on those of the last.
//
//   head_dim 256   M = 256: 128 rows a CTA, lane = row, as in stage C. P over S.
//   head_dim 512   M = 128: 64 rows a CTA. The tensor core then puts the second half of the columns
//                  of D into lanes 64 to 127, so that results of 512 columns fit into 256, scores
//                  are made once (stage C makes them twice), and a row is two threads', which tell
//                  each other maximum and sum. P as an operand would be needed in both halves of
//                  the lanes; it goes through shared memory instead, a line a thread. Half of Q
//                  stays in Tensor Memory: 64 rows of it would be read again for 128 keys only.
//
//   warp 5, one thread    in each CTA: its rows of Q; of K 64 of the 128 keys; of V half of the
//                         columns of every product. Bytes are announced to the first CTA
//   warp 4, one thread    in the first CTA: S0, S1, then O += P0 V, S2, O += P1 V, S3, ... ;
//                         commits arrive in both
//   warps 0-3             as in stage C; a warp arrives at p_ready, in the first CTA
//
//   tensor   | S0 S1 | O += P0 V | S2 | O += P1 V | S3 | O += P2 V | S4 | ...
//   rows           | 0    | 1          | 2             | 3             |
//
//   columns of Tensor Memory   head_dim 256: S 0..127, 128..255, O 256..511
//                              head_dim 512: S 0..63, 64..127, O 128..383, half of Q 384..511
//
//   barriers   ring: full in the first CTA, bytes of both; empty in both, by commit
//              q_full: in each      q_ready: in the first, 8 warps that have seen it
//              s_full[2]: in both, by commit      p_ready[2]: in the first, 8 warps
//              o_ready: in both; waited for only where results are rescaled      o_full: the end
//
// Scores of step n + 2 take the places of P of step n: both products are one thread's, as in stage
// E. Scores of n + 1 say that values of n - 1 are in the results, not yet those of n: before
// results are rescaled o_ready must be waited for, and no step can have passed it by.
//
// Counted, cycles of an SM for 128 keys and its rows (bf16, full attention; README.md):
//
//   head_dim, stage    rows               tensor   special   issue   shared memory   KiB by TMA
//   256, C             128                  2048      1024     563            2560          128
//   256, F             128                  2048      1024     503            1536           64
//   512, C             128, half of O       3072      1024     625            4096          192
//   512, F             64                   2048       512     386            2696          128
//
// C's times add up, shared memory's and the special function unit's; here the largest counts: 3584
// -> 2048 and 5120 -> 2696. At head_dim 512 shared memory remains the limit: copies write for 1024
// cycles, the tensor core reads K and V for 1024, the rest is P and the other half of Q.
// At head_dim 128 a pair would bring stage E's 1032 cycles of shared memory to 648 and its TMA
// bytes to half, but the tensor core's 1024 stay; at 64 the special function unit is the limit,
// with 768. So it begins at 256.
// Sources: PTX ISA, tcgen05 data path layouts A and B; FlashMLA for M = 128 with 512 columns;
// FlashAttention-4 uses pairs at head_dim 128 and 192 too.
#include "kernels/attention_sm100/stage_f_cta_pair.h"
#include "kernels/attention_sm100/tensor_attention_pair.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kCtas = tile::kPairCtas;

template <class Element, int HeadDim>
struct Kernel {
  static constexpr int kRows = stage_f_rows(HeadDim), kLanesOfRow = tile::kTensorRows / kRows;
  static constexpr bool kIsHalved = kLanesOfRow == 2;
  static constexpr int kStages = stage_f_stages(HeadDim), kColumns = 512;
  static constexpr int kBoxes = HeadDim / tile::kBoxElems;  // of the queries
  static constexpr int kSlots = kBoxes / 2;  // stages that this CTA's half of K or V takes
  static constexpr int kHalfBoxBytes = tile::kBoxBytes / 2;
  static constexpr int kOwnKeys = tile::kKeys / kLanesOfRow;  // scores of a thread
  static constexpr int kChunks = kOwnKeys / 32;
  static constexpr int kResults = 2 * kOwnKeys, kResultColumns = HeadDim / kLanesOfRow;
  static constexpr int kHeld = kResults + kResultColumns;  // boxes of queries, 32 columns each
  static constexpr int kHeldBoxes = kIsHalved ? (kColumns - kHeld) / 32 : 0;
  static_assert(kHeld + kHeldBoxes * 32 <= kColumns && kStages % 2 == 0);

  struct Shared {
    std::uint8_t q[kBoxes][kRows * tile::kBoxRowBytes];
    std::uint8_t boxes[kStages][tile::kBoxBytes];
    std::uint8_t operand[kIsHalved ? 2 : 1][kIsHalved ? tile::kBoxBytes : 16];
    float exchanged[2][tile::kRowThreads];
    tile::RingBarriers<kStages> ring;
    std::uint64_t q_full, q_ready, s_full[2], p_ready[2], o_ready, o_full;
    std::uint32_t tensor_memory;

    __device__ void initialise() {
      ring.initialise(1);
      for (std::uint64_t* barrier : {&q_full, &s_full[0], &s_full[1], &o_ready, &o_full})
        ptx::mbarrier_init(ptx::shared_address(barrier), 1);
      for (std::uint64_t* barrier : {&q_ready, &p_ready[0], &p_ready[1]})
        ptx::mbarrier_init(ptx::shared_address(barrier), tile::kPairWarps);
    }
  };
  static_assert(sizeof(Shared) <= stage_f_shared_bytes(HeadDim));

  // Rows of this CTA, and keys that some row of the pair sees.
  struct Work : tile::GroupRows {
    std::uint32_t rank;
    tile::KeyTiles<tile::kKeys> tiles;

    __device__ Work(const AttentionParams& params, std::uint32_t rank_in_pair)
        : Work(params, rank_in_pair, params.heads / params.kv_heads,
               (params.q_tiles - 1 - static_cast<std::int32_t>(blockIdx.x) / kCtas) * kCtas) {}
    __device__ Work(const AttentionParams& params, std::uint32_t rank_in_pair, std::int32_t heads,
                    std::int32_t first)
        : tile::GroupRows{heads,
                          kRows / heads,
                          (first + static_cast<std::int32_t>(rank_in_pair)) * (kRows / heads),
                          static_cast<std::int32_t>(blockIdx.y),
                          static_cast<std::int32_t>(blockIdx.z),
                          0,
                          tile::find_sequence(params, static_cast<std::int32_t>(blockIdx.z))},
          rank(rank_in_pair),
          tiles(params, sequence.kv_len, shift(), first * queries,
                min((first + kCtas) * queries, sequence.q_len) - 1) {}

    __device__ std::int32_t shift() const { return sequence.kv_len - sequence.q_len; }
    __device__ std::int32_t steps() const { return tiles.end - tiles.begin; }
    __device__ bool pair_has_rows() const {
      return first_query - static_cast<std::int32_t>(rank) * queries < sequence.q_len;
    }
  };

  static __device__ std::uint32_t scores(std::uint32_t columns, std::int32_t step) {
    return columns + step % 2 * kOwnKeys;
  }

  struct Loader {
    const AttentionParams& params;
    Shared& shared;
    const Work& work;
    tile::RingPosition<kStages> at;

    // A stage: two boxes of 64 keys, `x` and `y` further on for the second.
    __device__ void load_stage(const void* map, std::int32_t column, std::int32_t key,
                               std::int32_t x, std::int32_t y) {
      const tile::Ring<kStages> ring(shared.ring);
      ptx::mbarrier_wait_parity_cluster(ring.empty(at), at.parity ^ 1);
      if (work.rank == 0) ptx::mbarrier_arrive_expect_tx(ring.full(at), kCtas * tile::kBoxBytes);
      const std::uint32_t barrier = tile::in_leader(ring.full(at));
      const std::uint32_t to = ptx::shared_address(shared.boxes[at.stage]);
      const std::int32_t batch = params.cu_kv == nullptr ? work.batch : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ptx::cp_async_bulk_tensor_4d_cta_group<kCtas>(to + i * kHalfBoxBytes, map, column + i * x,
                                                      work.sequence.kv_begin + key + i * y,
                                                      work.kv_head, batch, barrier);
      }
      at.advance();
    }
    // Half of the tile's keys, all columns.
    __device__ void load_keys(std::int32_t tile) {
      const std::int32_t key = tile * tile::kKeys + static_cast<std::int32_t>(work.rank) * 64;
#pragma unroll 1
      for (int i = 0; i < kSlots; ++i)
        load_stage(params.k_map, i * 2 * tile::kBoxElems, key, tile::kBoxElems, 0);
    }
    // All of the tile's keys, half of the columns of every instruction.
    __device__ void load_values(std::int32_t tile) {
      constexpr int kBoxesOfHalf = kLanesOfRow;
#pragma unroll 1
      for (int i = 0; i < kSlots; ++i) {
        const int box =
            (i / kBoxesOfHalf * 2 + static_cast<int>(work.rank)) * kBoxesOfHalf + i % kBoxesOfHalf;
        load_stage(params.v_map, box * tile::kBoxElems, tile * tile::kKeys, 0, kStageFBoxKeys);
      }
    }
    __device__ void run() {
      if (work.steps() <= 0) return;
      const std::uint32_t q_full = ptx::shared_address(&shared.q_full);
      ptx::mbarrier_arrive_expect_tx(q_full, kBoxes * work.box_rows() * tile::kBoxRowBytes);
      tile::load_queries(params, shared.q, work, q_full);
      load_keys(work.tiles.begin);
#pragma unroll 1
      for (std::int32_t n = work.tiles.begin; n < work.tiles.end; ++n) {
        if (n + 1 < work.tiles.end) load_keys(n + 1);
        load_values(n);
      }
      // The last commits come to this CTA's memory: it must not end before.
      for (int i = 0; i < kStages; ++i, at.advance()) {
        ptx::mbarrier_wait_parity_cluster(tile::Ring<kStages>(shared.ring).empty(at),
                                          at.parity ^ 1);
      }
    }
  };

  // One thread of the first CTA multiplies for both.
  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;
    tile::RingPosition<kStages> at;

    __device__ void wait_full() const {
      ptx::mbarrier_wait_parity_cluster(tile::Ring<kStages>(shared.ring).full(at), at.parity);
    }
    __device__ void release() {
      tile::commit_to_pair(shared.ring.empty[at.stage]);
      at.advance();
    }
    __device__ void score(std::int32_t step) {
#pragma unroll 1
      for (int slot = 0; slot < kSlots; ++slot) {
        wait_full();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int box = slot * 2 + i;
          const std::uint32_t k = ptx::shared_address(shared.boxes[at.stage]) + i * kHalfBoxBytes;
          if (kIsHalved && box < kHeldBoxes) {
            tile::issue_scores_of_halves<Element, tile::kKeys>(
                scores(columns, step), columns + kHeld + box * 32, k, box > 0);
          } else {
            tile::issue_scores<Element, tile::kKeys, kCtas * kRows, kCtas>(
                scores(columns, step), ptx::shared_address(shared.q[box]), k, box > 0);
          }
        }
        release();
      }
      tile::commit_to_pair(shared.s_full[step % 2]);
    }
    __device__ void add_values(std::int32_t step, std::int32_t steps) {
      tile::wait_for_pair(ptx::shared_address(&shared.p_ready[step % 2]), step / 2 & 1);
#pragma unroll 1
      for (int slot = 0; slot < kSlots; slot += kLanesOfRow) {
        const std::uint32_t o = columns + kResults + slot / kLanesOfRow * tile::kTensorRows;
        const std::uint32_t v = ptx::shared_address(shared.boxes[at.stage]);
        wait_full();
        if constexpr (kIsHalved) {
          auto next = at;
          next.advance();
          ptx::mbarrier_wait_parity_cluster(tile::Ring<kStages>(shared.ring).full(next),
                                            next.parity);
          tile::issue_values_of_halves<Element, tile::kKeys>(
              o, ptx::shared_address(shared.operand[step % 2]), v, step > 0);
          release();
        } else {
          tile::issue_values<Element, tile::kKeys, kCtas>(o, scores(columns, step), v, step > 0);
        }
        release();
      }
      tile::commit_to_pair(step + 1 < steps ? shared.o_ready : shared.o_full);
    }
    __device__ void run(std::int32_t steps) {
      if (steps <= 0) return;
      tile::wait_for_pair(ptx::shared_address(&shared.q_ready), 0);
      score(0);
      if (steps > 1) score(1);
#pragma unroll 1
      for (std::int32_t step = 0; step < steps; ++step) {
        add_values(step, steps);
        if (step + 2 < steps) score(step + 2);
      }
    }
  };

  static __device__ void store_probabilities(Shared& shared, std::uint32_t own, std::int32_t step,
                                             const float (&p)[kChunks][32]) {
    if constexpr (kIsHalved) {
      tile::store_operand_of_halves<Element>(shared.operand[step % 2], p);
    } else {
      tile::store_operand<Element>(scores(own, step), p);
    }
  }

  // Behind the last key of a packed sequence lie the values of the next one: 0 times an infinity is
  // not 0. The first CTA knows when the values of both have landed, and clears them in both.
  static __device__ void clear_values_behind(const AttentionParams& params, Shared& shared,
                                             const Work& work) {
    const std::int32_t rows = work.sequence.kv_len - (work.tiles.end - 1) * tile::kKeys;
    if (params.cu_kv == nullptr || rows >= tile::kKeys || work.rank != 0) return;
    const tile::Ring<kStages> ring(shared.ring);
    for (int slot = 0; slot < kSlots; ++slot) {
      const auto at = tile::box_position<kStages>((2 * work.steps() - 1) * kSlots + slot);
      ptx::mbarrier_wait_parity_cluster(ring.full(at), at.parity);
      for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
        uint4* const box = ptx::mapa(reinterpret_cast<uint4*>(shared.boxes[at.stage]), cta);
        for (std::int32_t i = rows * 8 + static_cast<std::int32_t>(threadIdx.x);
             i < tile::kKeys * 8; i += tile::kRowThreads)
          box[i] = make_uint4(0, 0, 0, 0);
      }
    }
    ptx::fence_proxy_async_shared_cluster();
  }

  // A tile of scores becomes an operand; earlier results are corrected if need be.
  static __device__ void weigh(const AttentionParams& params, Shared& shared, const Work& work,
                               std::uint32_t own, const tile::VisibleKeys& visible,
                               tile::RowSoftmax& softmax, std::int32_t n) {
    const std::int32_t step = n - work.tiles.begin;
    float s[kChunks][32], factor;
    tile::load_row(s, scores(own, step));
    tile::cap_row(s, params.softcap_scale);
    if (n < work.tiles.plain_begin || n >= work.tiles.plain_end) {
      const auto part = static_cast<std::int32_t>(threadIdx.x / kRows);
      tile::hide_row_keys(s, visible, n * tile::kKeys + part * kOwnKeys);
    }
    float largest = tile::largest_of(s, softmax.reference);
    if constexpr (kIsHalved)
      largest = fmaxf(largest, tile::exchange_in_row(shared.exchanged, step, largest));
    if (softmax.raise_to(largest, params.scale_log2, factor) && step > 0) {
      tile::wait_for_pair(ptx::shared_address(&shared.o_ready), (step - 1) & 1);
      tile::scale_row<kResultColumns>(own + kResults, factor);
    }
    softmax.exponentiate(s, params.scale_log2);
    store_probabilities(shared, own, step, s);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  // The same for a warp without rows: its lanes are read by the product.
  static __device__ void weigh_nothing(Shared& shared, std::uint32_t own, std::int32_t step) {
    if constexpr (kIsHalved) tile::exchange_in_row(shared.exchanged, step, -INFINITY);
    const float nothing[kChunks][32] = {};
    store_probabilities(shared, own, step, nothing);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  // The row threads.
  static __device__ void attend(const AttentionParams& params, Shared& shared, const Work& work,
                                std::uint32_t columns, tile::RowSoftmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x % kRows);
    const bool has_rows = ptx::uniform(row) < work.rows();
    const tile::VisibleKeys visible(params, work.query(row) + work.shift(), work.sequence.kv_len);
    const std::uint32_t own = tile::own_lanes(columns);
    if (work.steps() > 0) {
      ptx::mbarrier_wait_parity(ptx::shared_address(&shared.q_full), 0);
      if constexpr (kIsHalved) tile::hold_queries<kHeldBoxes>(shared.q, own + kHeld);
      tile::hand_over_to_leader(shared.q_ready);
    }
    for (std::int32_t n = work.tiles.begin; n < work.tiles.end; ++n) {
      const std::int32_t step = n - work.tiles.begin;
      tile::wait_for_pair(ptx::shared_address(&shared.s_full[step % 2]), step / 2 & 1);
      if (has_rows) {
        weigh(params, shared, work, own, visible, softmax, n);
      } else {
        weigh_nothing(shared, own, step);
      }
      if (n + 1 == work.tiles.end) clear_values_behind(params, shared, work);
      tile::hand_over_to_leader(shared.p_ready[step % 2]);
    }
    if (work.steps() <= 0) return;
    // Nothing may arrive here once this CTA has exited: wait for the last o_ready too.
    if (work.steps() > 1)
      tile::wait_for_pair(ptx::shared_address(&shared.o_ready), work.steps() & 1);
    tile::wait_for_pair(ptx::shared_address(&shared.o_full), 0);
  }

  static __device__ void finish(const AttentionParams& params, Shared& shared, const Work& work,
                                std::uint32_t columns, tile::RowSoftmax& softmax) {
    if constexpr (kIsHalved)
      softmax.sum += tile::exchange_in_row(shared.exchanged, work.steps(), softmax.sum);
    if (work.rows() <= 0) return;
    const float factor = tile::finish_group_row<kRows>(params, work, softmax);
    tile::store_results<Element, kBoxes, kRows>(params, shared.q, work, columns + kResults, factor,
                                                work.steps() > 0);
  }

  static __device__ void run(const AttentionParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const Work work(params, ptx::cluster_ctarank());
    if (!work.pair_has_rows()) return;  // a short one of packed sequences
    tile::clear_rows_behind(shared.q, work.box_rows());
    const std::uint32_t columns = tile::open_tensor_memory<kColumns, kCtas>(
        shared.tensor_memory, [&] { shared.initialise(); });
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp < tile::kMmaWarp) {
      tile::RowSoftmax softmax;
      attend(params, shared, work, columns, softmax);
      finish(params, shared, work, columns, softmax);
    } else if (ptx::elect_sync()) {
      if (warp == tile::kLoadWarp) {
        Loader{params, shared, work}.run();
      } else if (work.rank == 0) {
        Multiplier{shared, columns}.run(work.steps());
      }
    }
    __syncwarp();
    tile::close_tensor_memory<kColumns, kCtas>(columns);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_F(NAME, ELEMENT, HEAD_DIM)                                    \
  TILEWRIGHT_KERNEL(attention_sm100_stage_f_##NAME, AttentionParams,                   \
                    __cluster_dims__(kCtas, 1, 1) __launch_bounds__(kSm100Threads, 1), \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_STAGE_F(bf16_d256, Bf16, 256)
TILEWRIGHT_STAGE_F(bf16_d512, Bf16, 512)
TILEWRIGHT_STAGE_F(f16_d256, Fp16, 256)
TILEWRIGHT_STAGE_F(f16_d512, Fp16, 512)

}  // namespace tilewright::kernels
