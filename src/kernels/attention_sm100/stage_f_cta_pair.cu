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
#include "kernels/attention_sm100/cta_pair.h"
#include "kernels/attention_sm100/stage_f_cta_pair.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kCtas = tile::kPairCtas;

// A pair's rows where the grid is (two CTAs a tile of queries, heads of keys, batch). The last
// queries come first: under a causal mask they see the most keys.
template <int Rows>
struct Grid {
  using Params = AttentionParams;
  using Tiles = tile::KeyTiles<tile::kKeys>;
  using Store = tile::OneStore;
  struct Found {};
  static constexpr int kRows = Rows;
  static constexpr bool kLoadsByWarp = false;

  static __device__ std::int32_t tile(const AttentionParams& params, const Found& /*found*/) {
    return params.q_tiles - 1 - static_cast<std::int32_t>(blockIdx.x) / kCtas;
  }
  static __device__ std::int32_t batch(const Found& /*found*/) {
    return static_cast<std::int32_t>(blockIdx.z);
  }
  static __device__ tile::AttentionSequence sequence(const AttentionParams& params,
                                                     const Found& found) {
    return tile::find_sequence(params, batch(found));
  }
  static __device__ tile::VisibleKeys visible(const AttentionParams& params, std::int32_t position,
                                              std::int32_t kv_len) {
    return {params, position, kv_len};
  }
  /// Whether anything but zeros may lie behind the last key.
  static __device__ bool has_values_behind(const AttentionParams& params) {
    return params.cu_kv != nullptr;
  }
};

template <class Element, int HeadDim>
struct Kernel
    : tile::CtaPair<Kernel<Element, HeadDim>, Element, HeadDim, Grid<stage_f_rows(HeadDim)>> {
  using Base = tile::CtaPair<Kernel, Element, HeadDim, Grid<stage_f_rows(HeadDim)>>;
  using Base::kBoxes, Base::kHalfBoxBytes, Base::kLanesOfRow, Base::kSlots, Base::kStages;
  using typename Base::Shared;
  using typename Base::Work;

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
      Base::wait_for_commits(shared, at);
    }
  };
};

}  // namespace
#define TILEWRIGHT_STAGE_F(NAME, ELEMENT, HEAD_DIM)                                    \
  TILEWRIGHT_KERNEL(attention_sm100_stage_f_##NAME, AttentionParams,                   \
                    __cluster_dims__(kCtas, 1, 1) __launch_bounds__(kSm100Threads, 1), \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run_roles)

TILEWRIGHT_STAGE_F(bf16_d256, Bf16, 256)
TILEWRIGHT_STAGE_F(bf16_d512, Bf16, 512)
TILEWRIGHT_STAGE_F(f16_d256, Fp16, 256)
TILEWRIGHT_STAGE_F(f16_d512, Fp16, 512)

}  // namespace tilewright::kernels
