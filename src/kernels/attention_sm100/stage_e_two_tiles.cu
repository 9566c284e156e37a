// targets: sm_100f
//
// Stage E, two tiles in flight: the tensor core works on one while the softmax of the other runs.
//
// In stage C products, softmax and rescaling take turns. Here a CTA has 256 rows, two tiles of 128,
// each with scores and results of its own: all 512 columns with 128 of values. The multiplying
// thread goes O0 += P0 V, S0 = Q0 K', O1 += P1 V, S1 = Q1 K': while the softmax warps of tile 0
// work on S0, the products of tile 1 run. What a thread does to its row is split too. Softmax warps
// find maximum and powers and keep their registers for scores; correction warps read the row's
// factor from shared memory and touch the results only if some row of the warp needs it.
//
//   warp 13, one thread    Q of both tiles once; boxes of K and of V, each for both tiles
//   warp 12, one thread    products, as above
//   warps 0-3, 4-7         softmax of tile 0, 1: S -> factor -> P over the columns of S; then O out
//   warps 8-11             correction: factor -> O0, O1
//
//   tensor      | S0 S1 |     | O0 S0' | O1 S1' | O0 S0" | ...
//   softmax 0        | max exp2 |      | max exp2 |      | ...
//   softmax 1           | max exp2 |       | max exp2 |
//   correction           | O0 | O1 |        | O0 | O1 |          when a maximum grew by 2^8
//
//   barriers   s_full[t]: scores, by commit             factor[t]: factors of rows, 128 arrivals
//              p_ready[t]: 3/4 of P and O may be used, 128 + 128 arrivals     p_rest[t]: the rest
//              o_full[t]: the end, by commit
//
// From its scores to its next scores a tile goes one after the other through its softmax, the
// product of P and that of the next scores; the other tile fills only what is left of the tensor
// core. So time is what that chain takes, and nothing may be on it that can be elsewhere: the
// product of P begins with three quarters of it, all waits of the multiplying thread but that for P
// come before, each tile's own threads write its results, and the first keys are asked for before
// the CTA has its columns (docs/notes/2026-11-27-blackwell-times.md).
//
// P takes the place of S, so S0' is written where P0 is read: both products are the same thread's,
// one after the other in the one pipe. (FlashAttention-4 and CUTLASS's kernel do so. The manual
// promises order for products on the same accumulator; stages B to D do with that.)
//
// Powers: 16 a cycle against 128 multiply-adds. 128 x 128 scores take 1024 cycles of the special
// function unit, the products 512 at head_dim 64 and 1024 at 128, so that a share of the powers
// goes to a polynomial of degree 5, two numbers an instruction, as exact as the unit.
//
// Registers: 200 for softmax threads (head_dim 64: 208), 48 for those that correct, 64 (48) for the
// rest. sm_103a, of the same PTX, needs more than 192 for the first where sm_100a does not.
// Limit: at head_dim 128 1024 cycles of the tensor core a tile, 768 of powers, 600 of shared memory
// (B of both products once for each tile). Counts and bounds beside stage C: README.md.
// Sources: FlashAttention-4 (arXiv 2603.05451), its kernel for sm_100.
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/two_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

struct Work : tile::GridWork<AttentionParams> {
  static constexpr int shared_bytes(int head_dim) { return stage_e_shared_bytes(head_dim); }
};

template <class Element, int HeadDim, int ValueDim = HeadDim>
struct Kernel
    : tile::TwoTiles<Kernel<Element, HeadDim, ValueDim>, Element, HeadDim, ValueDim, Work> {
  using Base = tile::TwoTiles<Kernel, Element, HeadDim, ValueDim, Work>;
  using Base::kKeyBoxes, Base::kTiles, Base::kValueBoxes, Base::kStages, Base::rows_of;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using typename Base::Shared;

  // The loading thread. What fits into the ring at the start is asked for before the CTA has its
  // columns of Tensor Memory.
  static __device__ void begin_loading(const AttentionParams& params, Shared& shared) {
    const KeyRange keys(params, shared);
    if (keys.count() == 0) return;
    const Rows first = rows_of(params, shared, 0);
    const std::uint32_t q_full = ptx::shared_address(&shared.barriers.q_full);
    ptx::mbarrier_arrive_expect_tx(q_full,
                                   kTiles * kKeyBoxes * first.box_rows() * tile::kBoxRowBytes);
    tile::load_queries(params, shared.q[0], first, q_full);
    tile::load_queries(params, shared.q[1], rows_of(params, shared, 1), q_full);
    tile::RingPosition<kStages> at;
    tile::load_tile<kKeyBoxes>(params, shared, params.k_map, first, 0, keys.begin, at);
  }
  static __device__ void load(const AttentionParams& params, Shared& shared) {
    const KeyRange keys(params, shared);
    const Rows first = rows_of(params, shared, 0);
    auto at = tile::box_position<kStages>(kKeyBoxes);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      if (n > keys.begin) tile::load_tile<kKeyBoxes>(params, shared, params.k_map, first, 0, n, at);
      tile::load_tile<kValueBoxes>(params, shared, params.v_map, first, 0, n, at);
    }
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_E(NAME, ELEMENT, ...)                       \
  TILEWRIGHT_KERNEL(attention_sm100_stage_e_##NAME, AttentionParams, \
                    __launch_bounds__(kStageEThreads, 1),            \
                    Kernel<tile::ELEMENT, __VA_ARGS__>::run_roles)

TILEWRIGHT_STAGE_E(bf16_d64, Bf16, 64)
TILEWRIGHT_STAGE_E(bf16_d128, Bf16, 128)
TILEWRIGHT_STAGE_E(bf16_d192_v128, Bf16, 192, 128)
TILEWRIGHT_STAGE_E(f16_d64, Fp16, 64)
TILEWRIGHT_STAGE_E(f16_d128, Fp16, 128)
TILEWRIGHT_STAGE_E(f16_d192_v128, Fp16, 192, 128)

}  // namespace tilewright::kernels
