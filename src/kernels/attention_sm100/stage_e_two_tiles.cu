// targets: sm_100f
//
// Stage E, two tiles in flight: the tensor core works on one while the softmax of the other runs.
//
// In stage C products, softmax and rescaling take turns. Here a CTA has 256 rows, two tiles of 128,
// each with scores and results of its own: all 512 columns with 128 of values. The multiplying
// thread goes O0 += P0 V, S0 = Q0 K', O1 += P1 V, S1 = Q1 K': while the softmax warps of tile 0
// work on S0, the products of tile 1 run. What a thread does to its row is split too. Softmax warps
// find maximum and powers and keep their registers for scores; correction warps read the row's
// factor from shared memory, touch the results only if some row of the warp needs it, and write the
// output.
//
//   warp 13, one thread    Q of both tiles once; boxes of K and of V, each for both tiles
//   warp 12, one thread    products, as above
//   warps 0-3, 4-7         softmax of tile 0, 1: S -> factor -> P over the columns of S
//   warps 8-11             correction: factor -> O0, O1; at the end out
//
//   tensor      | S0 S1 |     | O0 S0' | O1 S1' | O0 S0" | ...
//   softmax 0        | max exp2 |      | max exp2 |      | ...
//   softmax 1           | max exp2 |       | max exp2 |
//   correction           | O0 | O1 |        | O0 | O1 |          when a maximum grew by 2^8
//
//   barriers   s_full[t]: scores, by commit             factor[t]: factors of rows, 128 arrivals
//              p_ready[t]: P and O may be used, 128 + 128 arrivals     o_full[t]: the end, by
//              commit
//
// P takes the place of S, so S0' is written where P0 is read: both products are the same thread's,
// one after the other in the one pipe. (FlashAttention-4 and CUTLASS's kernel do so. The manual
// promises order for products on the same accumulator; stages B to D do with that.)
//
// Powers: 16 a cycle against 128 multiply-adds. 128 x 128 scores take 1024 cycles of the special
// function unit, the products 512 at head_dim 64 and 1024 at 128, so that a share of the powers
// goes to a polynomial of degree 5, two numbers an instruction, as exact as the unit.
//
// Registers: 192 for softmax threads, 80 for correction, 48 for the rest.
// Limit: at head_dim 128 1024 cycles of the tensor core a tile, 896 of powers, 600 of shared memory
// (B of both products once for each tile). Counts and bounds beside stage C: README.md.
// Sources: FlashAttention-4 (arXiv 2603.05451), its kernel for sm_100.
#include "kernels/attention_sm100/polynomial.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/tiles_in_flight.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kStages = kStageEStages, kTiles = 2;
constexpr int kCorrectionWarp = 8, kMmaWarp = 12, kLoadWarp = 13;
constexpr int kSoftmaxRegisters = 192, kCorrectionRegisters = 80, kOtherRegisters = 48;

template <class Element, int HeadDim, int ValueDim = HeadDim>
struct Kernel : tile::TilesInFlight<kTiles, ValueDim> {
  static constexpr int kKeyBoxes = HeadDim / tile::kBoxElems;
  static constexpr int kValueBoxes = ValueDim / tile::kBoxElems;
  static constexpr int kStepBoxes = kKeyBoxes + kValueBoxes;
  using Polynomial = tile::EveryPairByPolynomial<HeadDim == 64 ? 4 : 8>;
  static constexpr int kColumns = 512;
  using Base = tile::TilesInFlight<kTiles, ValueDim>;
  using Base::correct, Base::results, Base::rows_of, Base::scores;
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

  static __device__ void load(const AttentionParams& params, Shared& shared) {
    const KeyRange keys(params);
    if (keys.count() == 0) return;
    const Rows first = rows_of(params, 0);
    const std::uint32_t q_full = ptx::shared_address(&shared.barriers.q_full);
    ptx::mbarrier_arrive_expect_tx(q_full,
                                   kTiles * kKeyBoxes * first.box_rows() * tile::kBoxRowBytes);
    tile::load_queries(params, shared.q[0], first, q_full);
    tile::load_queries(params, shared.q[1], rows_of(params, 1), q_full);
    tile::RingPosition<kStages> at;
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      tile::load_tile<kKeyBoxes>(params, shared, params.k_map, first, 0, n, at);
      tile::load_tile<kValueBoxes>(params, shared, params.v_map, first, 0, n, at);
    }
  }

  // The multiplying thread. Boxes are numbered: of step n those of K begin at n kStepBoxes.
  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;

    __device__ tile::RingPosition<kStages> wait_box(std::int32_t index) const {
      const auto at = tile::box_position<kStages>(index);
      tile::Ring<kStages>(shared.ring).wait_full(at);
      return at;
    }
    template <int Boxes>
    __device__ void release(std::int32_t first_box) const {
      for (int box = 0; box < Boxes; ++box) {
        ptx::tcgen05_commit(
            tile::Ring<kStages>(shared.ring).empty(tile::box_position<kStages>(first_box + box)));
      }
    }
    __device__ void score(std::int32_t step, int t) const {
      const std::int32_t first_box = step * kStepBoxes;
#pragma unroll 1
      for (int box = 0; box < kKeyBoxes; ++box) {
        const auto at = wait_box(first_box + box);
        tile::issue_scores<Element, tile::kKeys>(
            scores(columns, t), ptx::shared_address(shared.q[t][box]),
            ptx::shared_address(shared.boxes[at.stage]), box > 0);
      }
      ptx::tcgen05_commit(ptx::shared_address(&shared.barriers.s_full[t]));
      if (t == kTiles - 1) release<kKeyBoxes>(first_box);
    }
    __device__ void add_values(std::int32_t step, int t) const {
      const std::int32_t first_box = step * kStepBoxes + kKeyBoxes;
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]), step & 1);
#pragma unroll 1
      for (int box = 0; box < kValueBoxes; ++box) {
        const auto at = wait_box(first_box + box);
        tile::issue_values<Element, tile::kKeys>(
            results(columns, t) + box * tile::kBoxElems, scores(columns, t),
            ptx::shared_address(shared.boxes[at.stage]), step > 0);
      }
      if (t == kTiles - 1) release<kValueBoxes>(first_box);
    }
  };

  static __device__ void multiply(Shared& shared, std::uint32_t columns, std::int32_t steps) {
    if (steps == 0) return;
    const Multiplier multiplier = {shared, columns};
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared.barriers.q_full), 0);
#pragma unroll 1
    for (int t = 0; t < kTiles; ++t) multiplier.score(0, t);
#pragma unroll 1
    for (std::int32_t step = 0; step < steps; ++step) {
#pragma unroll 1
      for (int t = 0; t < kTiles; ++t) {
        multiplier.add_values(step, t);
        if (step + 1 < steps) {
          multiplier.score(step + 1, t);
        } else {
          ptx::tcgen05_commit(ptx::shared_address(&shared.barriers.o_full[t]));
        }
      }
    }
  }

  // A softmax thread: scores of its row to P and the factor of earlier results; at the end the
  // factor of all.
  static __device__ void run_softmax(const AttentionParams& params, Shared& shared,
                                     std::uint32_t columns, int t) {
    const KeyRange keys(params);
    const Rows rows = rows_of(params, t);
    const auto row = static_cast<std::int32_t>(threadIdx.x % tile::kRowThreads);
    const bool has_rows = ptx::uniform(row) < rows.rows();
    const tile::VisibleKeys visible(params, rows.query(row) + rows.shift(), rows.sequence.kv_len);
    const std::uint32_t own = tile::own_lanes(scores(columns, t));
    const std::uint32_t factor_barrier = ptx::shared_address(&shared.barriers.factor[t]);
    tile::RowSoftmax softmax;
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.barriers.s_full[t]),
                                   n - keys.begin & 1);
      float s[4][32], factor = 1.0f;
      if (has_rows) {
        tile::load_row(s, own);
        tile::cap_row(s, params.softcap_scale);
        if (n < rows.tiles.plain_begin || n >= rows.tiles.plain_end)
          tile::hide_row_keys(s, visible, n * tile::kKeys);
        softmax.raise(s, params.scale_log2, factor);
      } else {
#pragma unroll
        for (int i = 0; i < 128; ++i) s[i / 32][i % 32] = 0.0f;
      }
      shared.factors[t][row] = factor;
      tile::hand_over_tensor_memory(factor_barrier);
      softmax.template exponentiate<Polynomial>(s, params.scale_log2);
      tile::store_operand<Element>(own, s);
      ptx::tcgen05_wait_st_sync_aligned();
      if (t == 0 && n + 1 == keys.end) {
        tile::clear_values_behind(params, shared, rows.sequence.kv_len, keys.begin, keys.end);
      }
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
    }
    if (keys.count() > 0)
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.barriers.o_full[t]), 0);
    shared.factors[t][row] = tile::finish_group_row(params, rows, softmax);
    tile::hand_over_tensor_memory(factor_barrier);
  }

  static __device__ void finish(const AttentionParams& params, Shared& shared,
                                std::uint32_t columns, std::int32_t steps) {
#pragma unroll 1
    for (int t = 0; t < kTiles; ++t) {
      const Rows rows = rows_of(params, t);
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]), steps & 1);
      if (rows.rows() <= 0) continue;
      tile::store_results<Element, kValueBoxes>(params, shared.q[t], rows, results(columns, t),
                                                shared.factors[t][threadIdx.x % tile::kRowThreads],
                                                steps > 0);
    }
  }

  static __device__ void run(const AttentionParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    if (rows_of(params, 0).rows() <= 0) return;  // a short one of packed sequences
    for (int t = 0; t < kTiles; ++t)
      tile::clear_rows_behind(shared.q[t], rows_of(params, t).box_rows());
    const std::uint32_t columns =
        tile::open_tensor_memory<kColumns>(shared.tensor_memory, [&] { shared.initialise(); });
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp < kCorrectionWarp) {
      ptx::setmaxnreg_inc_sync_aligned<kSoftmaxRegisters>();
      const int t = static_cast<int>(warp / 4);
      run_softmax(params, shared, columns, t);
    } else if (warp < kMmaWarp) {
      ptx::setmaxnreg_dec_sync_aligned<kCorrectionRegisters>();
      const std::int32_t steps = KeyRange(params).count();
      correct(shared, columns, steps);
      finish(params, shared, columns, steps);
    } else {
      ptx::setmaxnreg_dec_sync_aligned<kOtherRegisters>();
      if (warp == kMmaWarp && ptx::elect_sync()) {
        multiply(shared, columns, KeyRange(params).count());
      } else if (warp == kLoadWarp && ptx::elect_sync()) {
        load(params, shared);
      }
    }
    __syncwarp();
    tile::close_tensor_memory<kColumns>(columns);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_E(NAME, ELEMENT, ...)                       \
  TILEWRIGHT_KERNEL(attention_sm100_stage_e_##NAME, AttentionParams, \
                    __launch_bounds__(kStageEThreads, 1), Kernel<tile::ELEMENT, __VA_ARGS__>::run)

TILEWRIGHT_STAGE_E(bf16_d64, Bf16, 64)
TILEWRIGHT_STAGE_E(bf16_d128, Bf16, 128)
TILEWRIGHT_STAGE_E(bf16_d192_v128, Bf16, 192, 128)
TILEWRIGHT_STAGE_E(f16_d64, Fp16, 64)
TILEWRIGHT_STAGE_E(f16_d128, Fp16, 128)
TILEWRIGHT_STAGE_E(f16_d192_v128, Fp16, 192, 128)

}  // namespace tilewright::kernels
