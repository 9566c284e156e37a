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
#include "kernels/attention_sm100/polynomial.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/tiles_in_flight.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kStages = kStageEStages, kTiles = 2;

// A part of the A operand of the probabilities of a row, as tile::store_operand makes all of it.
template <class Element, int Chunks>
__device__ void store_part(std::uint32_t address, const float (&p)[Chunks][32]) {
  constexpr int kFirst = Chunks > 1 ? 2 : 1;
  std::uint32_t cells[16 * kFirst];
#pragma unroll
  for (int i = 0; i < 16 * kFirst; ++i)
    cells[i] = Element::pack(p[i / 16][i % 16 * 2], p[i / 16][i % 16 * 2 + 1]);
  ptx::tcgen05_st_32x32b(address, cells);
  if constexpr (Chunks > kFirst) {
    store_part<Element>(address + 16 * kFirst,
                        reinterpret_cast<const float(&)[Chunks - kFirst][32]>(p[kFirst]));
  }
}

template <class Element, int HeadDim, int ValueDim = HeadDim>
struct Kernel : tile::TilesInFlight<Kernel<Element, HeadDim, ValueDim>, kTiles, ValueDim> {
  static constexpr int kKeyBoxes = HeadDim / tile::kBoxElems;
  static constexpr int kValueBoxes = ValueDim / tile::kBoxElems;
  static constexpr int kStepBoxes = kKeyBoxes + kValueBoxes;
  // Boxes of values that always lie one behind the other in the ring: for one instruction.
  static constexpr int kValueSpan = kStages % kStepBoxes == 0 ? kValueBoxes : 1;
  using Polynomial = tile::EveryPairByPolynomial<4>;
  static constexpr int kEarlyKeys = 96;  // of P: their products begin under the last powers
  // 256 softmax threads, 128 that correct, 128 others
  static constexpr int kSoftmaxRegisters = HeadDim == 64 ? 208 : 200;
  static constexpr int kCorrectionRegisters = 48;
  static constexpr int kOtherRegisters = 512 - 2 * kSoftmaxRegisters - kCorrectionRegisters;
  using Softmax = tile::RowSoftmax;
  using Base = tile::TilesInFlight<Kernel, kTiles, ValueDim>;
  using Base::results, Base::rows_of, Base::scores;
  using typename Base::KeyRange;
  using typename Base::Rows;

  struct Shared {
    static constexpr int kStages = kStageEStages;
    static constexpr int kKeyBoxes = Kernel::kKeyBoxes, kValueBoxes = Kernel::kValueBoxes;

    std::uint8_t q[kTiles][kKeyBoxes][tile::kBoxBytes];
    std::uint8_t boxes[kStages][tile::kBoxBytes];
    float factors[kTiles][tile::kRowThreads];
    tile::RingBarriers<kStages> ring;
    typename Base::Barriers barriers;
    std::uint32_t tensor_memory;

    __device__ void initialise() {
      ring.initialise(1);
      barriers.initialise();
    }
  };
  static_assert(sizeof(Shared) <= stage_e_shared_bytes(HeadDim));

  // The loading thread. What fits into the ring at the start is asked for before the CTA has its
  // columns of Tensor Memory.
  static __device__ void begin_loading(const AttentionParams& params, Shared& shared) {
    const KeyRange keys(params);
    if (keys.count() == 0) return;
    const Rows first = rows_of(params, 0);
    const std::uint32_t q_full = ptx::shared_address(&shared.barriers.q_full);
    ptx::mbarrier_arrive_expect_tx(q_full,
                                   kTiles * kKeyBoxes * first.box_rows() * tile::kBoxRowBytes);
    tile::load_queries(params, shared.q[0], first, q_full);
    tile::load_queries(params, shared.q[1], rows_of(params, 1), q_full);
    tile::RingPosition<kStages> at;
    tile::load_tile<kKeyBoxes>(params, shared, params.k_map, first, 0, keys.begin, at);
  }
  static __device__ void load(const AttentionParams& params, Shared& shared) {
    const KeyRange keys(params);
    const Rows first = rows_of(params, 0);
    auto at = tile::box_position<kStages>(kKeyBoxes);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      if (n > keys.begin) tile::load_tile<kKeyBoxes>(params, shared, params.k_map, first, 0, n, at);
      tile::load_tile<kValueBoxes>(params, shared, params.v_map, first, 0, n, at);
    }
  }

  // The multiplying thread. Boxes are numbered: of step n those of K begin at n kStepBoxes.
  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;

    static __device__ std::int32_t first_value(std::int32_t step) {
      return step * kStepBoxes + kKeyBoxes;
    }
    __device__ std::uint32_t box(std::int32_t index) const {
      return ptx::shared_address(shared.boxes[tile::box_position<kStages>(index).stage]);
    }
    template <int Boxes>
    __device__ void wait_for(std::int32_t first_box) const {
#pragma unroll
      for (int i = 0; i < Boxes; ++i)
        tile::Ring<kStages>(shared.ring).wait_full(tile::box_position<kStages>(first_box + i));
    }
    template <int Boxes>
    __device__ void release(std::int32_t first_box) const {
#pragma unroll
      for (int i = 0; i < Boxes; ++i) {
        ptx::tcgen05_commit(
            tile::Ring<kStages>(shared.ring).empty(tile::box_position<kStages>(first_box + i)));
      }
    }
    __device__ void score(std::int32_t step, int t) const {
      const std::int32_t first_box = step * kStepBoxes;
#pragma unroll kKeyBoxes <= 2 ? kKeyBoxes : 1  // with more there are too many addresses
      for (int i = 0; i < kKeyBoxes; ++i) {
        tile::issue_scores<Element, tile::kKeys>(
            scores(columns, t), ptx::shared_address(shared.q[t][i]), box(first_box + i), i > 0);
      }
      ptx::tcgen05_commit(ptx::shared_address(&shared.barriers.s_full[t]));
      if (t == kTiles - 1) release<kKeyBoxes>(first_box);
    }
    template <int First, int End>
    __device__ void add_values(std::int32_t step, int t) const {
#pragma unroll
      for (int i = 0; i < kValueBoxes; i += kValueSpan) {
        tile::issue_values<Element, End, 1, First, kValueSpan>(
            results(columns, t) + i * tile::kBoxElems, scores(columns, t),
            box(first_value(step) + i), step > 0 || First > 0);
      }
    }
    __device__ void wait_keys(std::int32_t step) const {
      wait_for<kKeyBoxes>(step * kStepBoxes);
    }
    __device__ void wait_values(std::int32_t step) const {
      wait_for<kValueBoxes>(first_value(step));
    }
    __device__ void release_values(std::int32_t step) const {
      release<kValueBoxes>(first_value(step));
    }
  };

  static __device__ void multiply(Shared& shared, std::uint32_t columns, std::int32_t steps) {
    if (steps == 0) return;
    const Multiplier multiplier = {shared, columns};
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared.barriers.q_full), 0);
    multiplier.wait_keys(0);
#pragma unroll 1
    for (int t = 0; t < kTiles; ++t) multiplier.score(0, t);
#pragma unroll 1
    for (std::int32_t step = 0; step < steps; ++step) {
#pragma unroll 1
      for (int t = 0; t < kTiles; ++t) Base::add_step(multiplier, step, t, step + 1 == steps);
    }
  }

  // A softmax thread: scores of its row to P and the factor of earlier results.
  static __device__ void weigh(const AttentionParams& params, Shared& shared, const Rows& rows,
                               const KeyRange& keys, std::uint32_t own, int t, Softmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x % tile::kRowThreads);
    const tile::VisibleKeys visible(params, rows.query(row) + rows.shift(), rows.sequence.kv_len);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.barriers.s_full[t]),
                                   n - keys.begin & 1);
      float s[4][32], factor = 1.0f;
      tile::load_row(s, own);
      tile::cap_row(s, params.softcap_scale);
      if (n < rows.tiles.plain_begin || n >= rows.tiles.plain_end)
        tile::hide_row_keys(s, visible, n * tile::kKeys);
      softmax.raise(s, params.scale_log2, factor);
      shared.factors[t][row] = factor;
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]));
      // Three quarters of P, then the rest: the product need not wait for the last powers.
      auto& early = reinterpret_cast<float(&)[3][32]>(s[0]);
      auto& late = reinterpret_cast<float(&)[1][32]>(s[3]);
      softmax.template exponentiate<Polynomial>(early, params.scale_log2);
      store_part<Element>(own, early);
      ptx::tcgen05_wait_st_sync_aligned();
      if (t == 0 && n + 1 == keys.end)
        clear_values_behind(params, shared, rows.sequence.kv_len, keys);
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
      softmax.template exponentiate<Polynomial>(late, params.scale_log2);
      store_part<Element>(own + arch::packed_columns(kEarlyKeys), late);
      ptx::tcgen05_wait_st_sync_aligned();
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_rest[t]));
    }
  }
  static __device__ void store_zeros(std::uint32_t own) {
    constexpr float kZeros[4][32] = {};
    tile::store_operand<Element>(own, kZeros);
    ptx::tcgen05_wait_st_sync_aligned();
  }
  static __device__ float finish_row(const AttentionParams& params, const Rows& rows,
                                     const Softmax& softmax) {
    return tile::finish_group_row(params, rows, softmax);
  }
  static __device__ void store(const AttentionParams& params, Shared& shared, const Rows& rows,
                               std::uint32_t columns, float factor, bool has_results, int t) {
    tile::store_results<Element, kValueBoxes, tile::kTensorRows, tile::StoreOfTile<ValueDim>>(
        params, shared.q[t], rows, results(columns, t), factor, has_results, {t});
  }
  static __device__ void clear_rows_behind(Shared& shared, int t, std::int32_t rows) {
    tile::clear_rows_behind(shared.q[t], rows);
  }
  static __device__ void clear_values_behind(const AttentionParams& params, Shared& shared,
                                             std::int32_t kv_len, const KeyRange& keys) {
    tile::clear_values_behind(params, shared, kv_len, keys.begin, keys.end);
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
