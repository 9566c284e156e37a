// targets: sm_100f
//
// Stage C, attention: the softmax between the two products, and results that are rescaled where
// they lie.
//
// Lane = row, so a thread owns a row: the maximum of its 128 scores is a chain of max in registers,
// a sum is a sum; no shuffle is left of Hopper's softmax. What Hopper had in registers, the
// results, lies in Tensor Memory, and to multiply them with exp(old - new maximum) they must be
// read and written again: 2 * head_dim columns for 128 of scores. But powers need not be relative
// to the largest score, only to one near it. As long as no row of a warp has grown by 2^8 since,
// the results stay: after the first tiles they nearly always do. It is exact, because sum, results
// and lse are relative to the same number.
//
//   warp 5, one thread    TMA: Q once, then of each tile of 128 keys the boxes of K and of V
//   warp 4, one thread    S = Q K^T; commit s_full; wait p_ready; O += P V; at the end commit
//   o_full warps 0-3             wait s_full; S -> 128 registers; mask; maximum; [O *= factor];
//                         exp2, sum; P packed -> Tensor Memory; arrive p_ready; at the end O / sum
//                         -> out
//
//   tensor     | Q K0 |                   | P V0 | Q K1 |                   | P V1 | Q K2 | ...
//   rows              | max, exp2, pack  |             | max, exp2, pack   |
//   copies     | Q K0 V0 K1 ...: as boxes of the ring become free
//
//   columns of Tensor Memory   S 0..127 (f32)   P 128..191 (2 x 16 bits)   O 192.. (f32)
//
// s_full needs no companion for O: commit covers all products before it, so a thread that has
// seen the scores of tile n may change the results of tiles before n.
//
// Rows of a CTA are 128 / group queries times the heads of a group, which share keys: decoding one
// query of 8 heads fills 8 rows and not 1. Warps without rows write zeros to P once and then only
// keep step.
//
// head_dim 512: O alone would be all 512 columns. Two CTAs take 256 value columns each and both
// make all scores: 1.5 times the products, keys from L2 a second time. The other ways cost more:
// README.md.
//
// Limit: 4 * head_dim flop a score at 8192 a cycle, one exponential at 16 a cycle: 1024 cycles for
// either at head_dim 128 and 128 x 128 scores. They take turns here, as do all 128 threads with the
// tensor core: expected, 40 % of the bound. Stage E overlaps them.
// Sources: the kernel suite's stage C, P7's reading; FlashAttention-4 (arXiv 2603.05451) for the
// rare rescaling.
#include "kernels/attention_sm100/boxes_16bit.h"
#include "kernels/attention_sm100/one_tile.h"
#include "kernels/attention_sm100/row_softmax.h"
#include "kernels/attention_sm100/stage_c_online_softmax.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using Columns = tile::TensorColumns<tile::kKeys>;

template <class Element, int HeadDim>
struct Kernel {
  static constexpr int kValueColumns = sm100_value_columns(HeadDim);
  static constexpr int kColumns = Columns::allocated(kValueColumns);
  using Shared = tile::TensorAttentionShared<HeadDim, kValueColumns, sm100_stages(HeadDim)>;
  using Work = tile::GroupWork<HeadDim, kValueColumns>;
  static_assert(sizeof(Shared) <= sm100_shared_bytes(HeadDim));

  // A tile of scores becomes an operand; earlier results are corrected if need be.
  static __device__ void weigh(const AttentionParams& params, const Work& work,
                               std::uint32_t columns, const tile::VisibleKeys& visible,
                               tile::RowSoftmax& softmax, std::int32_t n) {
    float s[4][32], factor;
    tile::load_row(s, columns + Columns::kScores);
    tile::cap_row(s, params.softcap_scale);
    if (n < work.tiles.plain_begin || n >= work.tiles.plain_end)
      tile::hide_row_keys(s, visible, n * tile::kKeys);
    if (softmax.raise(s, params.scale_log2, factor) && n > work.tiles.begin)
      tile::scale_row<kValueColumns>(columns + Columns::kResults, factor);
    softmax.exponentiate(s, params.scale_log2);
    tile::store_operand<Element>(columns + Columns::kOperand, s);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  // The row threads.
  static __device__ void attend(const AttentionParams& params, Shared& shared, const Work& work,
                                std::uint32_t columns, tile::RowSoftmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x);
    const bool has_rows = ptx::uniform(row) < work.rows();
    const tile::VisibleKeys visible(params, work.query(row) + work.shift(), work.sequence.kv_len);
    const std::uint32_t own = tile::own_lanes(columns);
    for (std::int32_t n = work.tiles.begin; n < work.tiles.end; ++n) {
      const std::int32_t step = n - work.tiles.begin;
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.s_full), step & 1);
      if (has_rows) {
        weigh(params, work, own, visible, softmax, n);
      } else if (step == 0) {
        const float nothing[4][32] = {};
        tile::store_operand<Element>(own + Columns::kOperand, nothing);
        ptx::tcgen05_wait_st_sync_aligned();
      }
      if (n + 1 == work.tiles.end && params.cu_kv != nullptr) {
        tile::clear_values_behind(shared, work.sequence.kv_len, work.tiles.begin, work.tiles.end);
      }
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.p_ready));
    }
    if (work.num_tiles() > 0) tile::wait_for_tensor_memory(ptx::shared_address(&shared.o_full), 0);
  }

  static __device__ void run(const AttentionParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const Work work(params);
    if (work.first_query >= work.sequence.q_len) return;  // a short one of packed sequences
    tile::clear_rows_behind(shared.q, work.box_rows());
    const std::uint32_t columns =
        tile::open_tensor_memory<kColumns>(shared.tensor_memory, [&] { shared.initialise(); });
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp < tile::kMmaWarp) {
      tile::RowSoftmax softmax;
      attend(params, shared, work, columns, softmax);
      tile::store_results<Element, Shared::kValueBoxes>(
          params, shared.q, work, columns + Columns::kResults,
          tile::finish_group_row(params, work, softmax), work.num_tiles() > 0);
    } else if (ptx::elect_sync()) {
      if (warp == tile::kMmaWarp) {
        tile::multiply_tiles<Element>(shared, columns, work.num_tiles());
      } else {
        tile::load_operands(params, shared, work);
      }
    }
    __syncwarp();
    tile::close_tensor_memory<kColumns>(columns);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_C(NAME, ELEMENT, HEAD_DIM)                  \
  TILEWRIGHT_KERNEL(attention_sm100_stage_c_##NAME, AttentionParams, \
                    __launch_bounds__(kSm100Threads, 1), Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_STAGE_C(bf16_d64, Bf16, 64)
TILEWRIGHT_STAGE_C(bf16_d128, Bf16, 128)
TILEWRIGHT_STAGE_C(bf16_d256, Bf16, 256)
TILEWRIGHT_STAGE_C(bf16_d512, Bf16, 512)
TILEWRIGHT_STAGE_C(f16_d64, Fp16, 64)
TILEWRIGHT_STAGE_C(f16_d128, Fp16, 128)
TILEWRIGHT_STAGE_C(f16_d256, Fp16, 256)
TILEWRIGHT_STAGE_C(f16_d512, Fp16, 512)

}  // namespace tilewright::kernels
