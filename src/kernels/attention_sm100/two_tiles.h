// Roles of stage E (stage_e_two_tiles.cu explains them) whatever keys lie in: boxes of keys and
// values come through one ring, of every step those of K and then those of V.
#pragma once

#include "kernels/attention_sm100/boxes_16bit.h"
#include "kernels/attention_sm100/polynomial.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/tiles_in_flight.h"

#include <cstdint>

namespace tilewright::tile {

/// A part of the A operand of the probabilities of a row, as store_operand makes all of it.
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

/// A kernel with two tiles of rows a CTA, but for who loads: Kernel derives from this. Work is how
/// rows and keys are found: GridWork, or that of pages.
template <class Kernel, class Element, int HeadDim, int ValueDim, class Work>
struct TwoTiles : TilesInFlight<Kernel, 2, ValueDim, Work> {
  static constexpr int kStages = kernels::kStageEStages, kTiles = 2;
  static constexpr int kKeyBoxes = HeadDim / kBoxElems;
  static constexpr int kValueBoxes = ValueDim / kBoxElems;
  static constexpr int kStepBoxes = kKeyBoxes + kValueBoxes;
  // Boxes of values that always lie one behind the other in the ring: for one instruction.
  static constexpr int kValueSpan = kStages % kStepBoxes == 0 ? kValueBoxes : 1;
  using Polynomial = EveryPairByPolynomial<4>;
  static constexpr int kEarlyKeys = 96;  // of P: their products begin under the last powers
  // 256 softmax threads, 128 that correct, 128 others
  static constexpr int kSoftmaxRegisters = HeadDim == 64 && Work::kLoadWarps == 1 ? 208 : 200;
  static constexpr int kCorrectionRegisters = 48;
  static constexpr int kOtherRegisters = 512 - 2 * kSoftmaxRegisters - kCorrectionRegisters;
  using Softmax = RowSoftmax;
  using Base = TilesInFlight<Kernel, kTiles, ValueDim, Work>;
  using Base::results, Base::rows_of, Base::scores;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using Params = typename Work::Params;

  struct Shared {
    static constexpr int kStages = kernels::kStageEStages;
    static constexpr int kKeyBoxes = TwoTiles::kKeyBoxes, kValueBoxes = TwoTiles::kValueBoxes;
    static constexpr int kItemBoxes = 1, kBoxElems = tile::kBoxElems;
    static constexpr int kBoxRowBytes = tile::kBoxRowBytes;

    std::uint8_t q[kTiles][kKeyBoxes][kBoxBytes];
    std::uint8_t boxes[kStages][kBoxBytes];
    float factors[kTiles][kRowThreads];
    RingBarriers<kStages> ring;
    typename Base::Barriers barriers;
    std::uint32_t tensor_memory;
    typename Base::Found found;

    __device__ void initialise() {
      ring.initialise(1, Work::kLoadWarps);
      barriers.initialise();
    }
  };
  static_assert(sizeof(Shared) <= Work::shared_bytes(HeadDim));

  // The multiplying thread. Boxes are numbered: of step n those of K begin at n kStepBoxes.
  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;

    static __device__ std::int32_t first_value(std::int32_t step) {
      return step * kStepBoxes + kKeyBoxes;
    }
    __device__ std::uint32_t box(std::int32_t index) const {
      return ptx::shared_address(shared.boxes[box_position<kStages>(index).stage]);
    }
    template <int Boxes>
    __device__ void wait_for(std::int32_t first_box) const {
#pragma unroll
      for (int i = 0; i < Boxes; ++i)
        Ring<kStages>(shared.ring).wait_full(box_position<kStages>(first_box + i));
    }
    template <int Boxes>
    __device__ void release(std::int32_t first_box) const {
#pragma unroll
      for (int i = 0; i < Boxes; ++i) {
        ptx::tcgen05_commit(Ring<kStages>(shared.ring).empty(box_position<kStages>(first_box + i)));
      }
    }
    __device__ void score(std::int32_t step, int t) const {
      const std::int32_t first_box = step * kStepBoxes;
#pragma unroll kKeyBoxes <= 2 ? kKeyBoxes : 1  // with more there are too many addresses
      for (int i = 0; i < kKeyBoxes; ++i) {
        issue_scores<Element, kKeys>(scores(columns, t), ptx::shared_address(shared.q[t][i]),
                                     box(first_box + i), i > 0);
      }
      ptx::tcgen05_commit(ptx::shared_address(&shared.barriers.s_full[t]));
      if (t == kTiles - 1) release<kKeyBoxes>(first_box);
    }
    template <int First, int End>
    __device__ void add_values(std::int32_t step, int t) const {
#pragma unroll
      for (int i = 0; i < kValueBoxes; i += kValueSpan) {
        issue_values<Element, End, 1, First, kValueSpan>(
            results(columns, t) + i * kBoxElems, scores(columns, t), box(first_value(step) + i),
            step > 0 || First > 0);
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
  static __device__ void weigh(const Params& params, Shared& shared, const Rows& rows,
                               const KeyRange& keys, std::uint32_t own, int t, Softmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x % kRowThreads);
    const VisibleKeys visible = Work::visible(params, rows, row);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      wait_for_tensor_memory(ptx::shared_address(&shared.barriers.s_full[t]), n - keys.begin & 1);
      float s[4][32], factor = 1.0f;
      load_row(s, own);
      cap_row(s, Work::softcap_scale(params, shared.found));
      if (n < rows.tiles.plain_begin || n >= rows.tiles.plain_end)
        hide_row_keys(s, visible, n * kKeys);
      softmax.raise(s, Work::scale_log2(params, shared.found), factor);
      shared.factors[t][row] = factor;
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]));
      // Three quarters of P, then the rest: the product need not wait for the last powers.
      auto& early = reinterpret_cast<float(&)[3][32]>(s[0]);
      auto& late = reinterpret_cast<float(&)[1][32]>(s[3]);
      softmax.template exponentiate<Polynomial>(early, Work::scale_log2(params, shared.found));
      store_part<Element>(own, early);
      ptx::tcgen05_wait_st_sync_aligned();
      if (t == 0 && n + 1 == keys.end)
        clear_values_behind(params, shared, rows.sequence.kv_len, keys);
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
      softmax.template exponentiate<Polynomial>(late, Work::scale_log2(params, shared.found));
      store_part<Element>(own + arch::packed_columns(kEarlyKeys), late);
      ptx::tcgen05_wait_st_sync_aligned();
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_rest[t]));
    }
  }
  static __device__ void store_zeros(std::uint32_t own) {
    constexpr float kZeros[4][32] = {};
    store_operand<Element>(own, kZeros);
    ptx::tcgen05_wait_st_sync_aligned();
  }
  static __device__ float finish_row(const Params& params, const Shared& shared, const Rows& rows,
                                     const Softmax& softmax) {
    return finish_group_row(params, rows, softmax, Work::scale_log2(params, shared.found));
  }
  static __device__ void store(const Params& params, Shared& shared, const Rows& rows,
                               std::uint32_t columns, float factor, bool has_results, int t) {
    store_results<Element, kValueBoxes, kTensorRows, typename Work::template Store<ValueDim>>(
        params, shared.q[t], rows, results(columns, t), factor, has_results, {t});
  }
  static __device__ void clear_rows_behind(Shared& shared, int t, std::int32_t rows) {
    tile::clear_rows_behind(shared.q[t], rows);
  }
  static __device__ void clear_values_behind(const Params& params, Shared& shared,
                                             std::int32_t kv_len, const KeyRange& keys) {
    if (Work::has_values_behind(params))
      tile::clear_values_behind(shared, kv_len, keys.begin, keys.end);
  }
};

}  // namespace tilewright::tile
