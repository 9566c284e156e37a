// Roles of stage F (stage_f_cta_pair.cu explains them) whatever keys lie in: stages of keys and
// values come through one ring, of every tile those of K and then those of V, K a tile ahead.
#pragma once

#include "kernels/attention_sm100/stage_f_cta_pair.h"
#include "kernels/attention_sm100/tensor_attention_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// Rows of a CTA of a pair, and keys that some row of the pair sees. Form is how they are found; a
/// Found of it is what a CTA looks up before all else, in shared memory.
template <class Form>
struct PairRows : GroupRows {
  using Params = typename Form::Params;
  using Found = typename Form::Found;

  std::uint32_t rank;
  typename Form::Tiles tiles;

  __device__ PairRows(const Params& params, const Found& found, std::uint32_t rank_in_pair)
      : PairRows(params, found, rank_in_pair, params.heads / params.kv_heads,
                 Form::tile(params, found) * kPairCtas) {}

  __device__ std::int32_t shift() const { return sequence.kv_len - sequence.q_len; }
  __device__ std::int32_t steps() const { return tiles.end - tiles.begin; }
  __device__ bool pair_has_rows() const {
    return first_query - static_cast<std::int32_t>(rank) * queries < sequence.q_len;
  }
  __device__ VisibleKeys visible(const Params& params, std::int32_t row) const {
    return Form::visible(params, query(row) + shift(), sequence.kv_len);
  }

 private:
  // `first`: number of the first CTA's tile in its sequence.
  __device__ PairRows(const Params& params, const Found& found, std::uint32_t rank_in_pair,
                      std::int32_t heads, std::int32_t first)
      : GroupRows{heads,
                  Form::kRows / heads,
                  (first + static_cast<std::int32_t>(rank_in_pair)) * (Form::kRows / heads),
                  static_cast<std::int32_t>(blockIdx.y),
                  Form::batch(found),
                  0,
                  Form::sequence(params, found)},
        rank(rank_in_pair),
        tiles(params, sequence.kv_len, shift(), first * queries,
              min((first + kPairCtas) * queries, sequence.q_len) - 1) {}
};

/// A kernel but for who loads: Kernel, which derives from this, has a Loader{params, shared, work},
/// that the loading thread runs, or warp.
template <class Kernel, class Element, int HeadDim, class Form>
struct CtaPair {
  using Work = PairRows<Form>;
  using Params = typename Form::Params;
  static constexpr int kCtas = kPairCtas;
  static constexpr int kRows = kernels::stage_f_rows(HeadDim), kLanesOfRow = kTensorRows / kRows;
  static constexpr bool kIsHalved = kLanesOfRow == 2;
  static constexpr int kStages = kernels::stage_f_stages(HeadDim), kColumns = 512;
  static constexpr int kBoxes = HeadDim / kBoxElems;  // of the queries
  static constexpr int kSlots = kBoxes / 2;           // stages that this CTA's half of K or V takes
  static constexpr int kHalfBoxBytes = kBoxBytes / 2;
  static constexpr int kOwnKeys = kKeys / kLanesOfRow;  // scores of a thread
  static constexpr int kChunks = kOwnKeys / 32;
  static constexpr int kResults = 2 * kOwnKeys, kResultColumns = HeadDim / kLanesOfRow;
  static constexpr int kHeld = kResults + kResultColumns;  // boxes of queries, 32 columns each
  static constexpr int kHeldBoxes = kIsHalved ? (kColumns - kHeld) / 32 : 0;
  static_assert(kHeld + kHeldBoxes * 32 <= kColumns && kStages % 2 == 0);

  struct Shared {
    std::uint8_t q[kBoxes][kRows * kBoxRowBytes];
    std::uint8_t boxes[kStages][kBoxBytes];
    std::uint8_t operand[kIsHalved ? 2 : 1][kIsHalved ? kBoxBytes : 16];
    float exchanged[2][kRowThreads];
    RingBarriers<kStages> ring;
    std::uint64_t q_full, q_ready, s_full[2], p_ready[2], o_ready, o_full;
    std::uint32_t tensor_memory;
    typename Form::Found found;

    __device__ void initialise() {
      ring.initialise(1);
      for (std::uint64_t* barrier : {&q_full, &s_full[0], &s_full[1], &o_ready, &o_full})
        ptx::mbarrier_init(ptx::shared_address(barrier), 1);
      for (std::uint64_t* barrier : {&q_ready, &p_ready[0], &p_ready[1]})
        ptx::mbarrier_init(ptx::shared_address(barrier), kPairWarps);
    }
  };
  static_assert(sizeof(Shared) <= kernels::stage_f_shared_bytes(HeadDim));

  static __device__ std::uint32_t scores(std::uint32_t columns, std::int32_t step) {
    return columns + step % 2 * kOwnKeys;
  }

  // A loading thread's end: the last commits come to this CTA's memory, which must not end before.
  static __device__ void wait_for_commits(Shared& shared, RingPosition<kStages>& at) {
    for (int i = 0; i < kStages; ++i, at.advance()) {
      ptx::mbarrier_wait_parity_cluster(Ring<kStages>(shared.ring).empty(at), at.parity ^ 1);
    }
  }

  // One thread of the first CTA multiplies for both.
  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;
    RingPosition<kStages> at;

    __device__ void wait_full() const {
      ptx::mbarrier_wait_parity_cluster(Ring<kStages>(shared.ring).full(at), at.parity);
    }
    __device__ void release() {
      commit_to_pair(shared.ring.empty[at.stage]);
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
            issue_scores_of_halves<Element, kKeys>(scores(columns, step),
                                                   columns + kHeld + box * 32, k, box > 0);
          } else {
            issue_scores<Element, kKeys, kCtas * kRows, kCtas>(
                scores(columns, step), ptx::shared_address(shared.q[box]), k, box > 0);
          }
        }
        release();
      }
      commit_to_pair(shared.s_full[step % 2]);
    }
    __device__ void add_values(std::int32_t step, std::int32_t steps) {
      wait_for_pair(ptx::shared_address(&shared.p_ready[step % 2]), step / 2 & 1);
#pragma unroll 1
      for (int slot = 0; slot < kSlots; slot += kLanesOfRow) {
        const std::uint32_t o = columns + kResults + slot / kLanesOfRow * kTensorRows;
        const std::uint32_t v = ptx::shared_address(shared.boxes[at.stage]);
        wait_full();
        if constexpr (kIsHalved) {
          auto next = at;
          next.advance();
          ptx::mbarrier_wait_parity_cluster(Ring<kStages>(shared.ring).full(next), next.parity);
          issue_values_of_halves<Element, kKeys>(o, ptx::shared_address(shared.operand[step % 2]),
                                                 v, step > 0);
          release();
        } else {
          issue_values<Element, kKeys, kCtas>(o, scores(columns, step), v, step > 0);
        }
        release();
      }
      commit_to_pair(step + 1 < steps ? shared.o_ready : shared.o_full);
    }
    __device__ void run(std::int32_t steps) {
      if (steps <= 0) return;
      wait_for_pair(ptx::shared_address(&shared.q_ready), 0);
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
      store_operand_of_halves<Element>(shared.operand[step % 2], p);
    } else {
      store_operand<Element>(scores(own, step), p);
    }
  }

  // Behind the last key of a packed sequence lie the values of the next one, in a page anything: 0
  // times an infinity is not 0. The first CTA knows when the values of both have landed, and clears
  // them in both.
  static __device__ void clear_values_behind(const Params& params, Shared& shared,
                                             const Work& work) {
    const std::int32_t rows = work.sequence.kv_len - (work.tiles.end - 1) * kKeys;
    if (!Form::has_values_behind(params) || rows >= kKeys || work.rank != 0) return;
    const Ring<kStages> ring(shared.ring);
    for (int slot = 0; slot < kSlots; ++slot) {
      const auto at = box_position<kStages>((2 * work.steps() - 1) * kSlots + slot);
      ptx::mbarrier_wait_parity_cluster(ring.full(at), at.parity);
      for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
        uint4* const box = ptx::mapa(reinterpret_cast<uint4*>(shared.boxes[at.stage]), cta);
        for (std::int32_t i = rows * 8 + static_cast<std::int32_t>(threadIdx.x); i < kKeys * 8;
             i += kRowThreads)
          box[i] = make_uint4(0, 0, 0, 0);
      }
    }
    ptx::fence_proxy_async_shared_cluster();
  }

  // A tile of scores becomes an operand; earlier results are corrected if need be.
  static __device__ void weigh(const Params& params, Shared& shared, const Work& work,
                               std::uint32_t own, const VisibleKeys& visible, RowSoftmax& softmax,
                               std::int32_t n) {
    const std::int32_t step = n - work.tiles.begin;
    float s[kChunks][32], factor;
    load_row(s, scores(own, step));
    cap_row(s, params.softcap_scale);
    if (n < work.tiles.plain_begin || n >= work.tiles.plain_end) {
      const auto part = static_cast<std::int32_t>(threadIdx.x / kRows);
      hide_row_keys(s, visible, n * kKeys + part * kOwnKeys);
    }
    float largest = largest_of(s, softmax.reference);
    if constexpr (kIsHalved)
      largest = fmaxf(largest, exchange_in_row(shared.exchanged, step, largest));
    if (softmax.raise_to(largest, params.scale_log2, factor) && step > 0) {
      wait_for_pair(ptx::shared_address(&shared.o_ready), (step - 1) & 1);
      scale_row<kResultColumns>(own + kResults, factor);
    }
    softmax.exponentiate(s, params.scale_log2);
    store_probabilities(shared, own, step, s);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  // The same for a warp without rows: its lanes are read by the product.
  static __device__ void weigh_nothing(Shared& shared, std::uint32_t own, std::int32_t step) {
    if constexpr (kIsHalved) exchange_in_row(shared.exchanged, step, -INFINITY);
    const float nothing[kChunks][32] = {};
    store_probabilities(shared, own, step, nothing);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  // The row threads.
  static __device__ void attend(const Params& params, Shared& shared, const Work& work,
                                std::uint32_t columns, RowSoftmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x % kRows);
    const bool has_rows = ptx::uniform(row) < work.rows();
    const VisibleKeys visible = work.visible(params, row);
    const std::uint32_t own = own_lanes(columns);
    if (work.steps() > 0) {
      ptx::mbarrier_wait_parity(ptx::shared_address(&shared.q_full), 0);
      if constexpr (kIsHalved) hold_queries<kHeldBoxes>(shared.q, own + kHeld);
      hand_over_to_leader(shared.q_ready);
    }
    for (std::int32_t n = work.tiles.begin; n < work.tiles.end; ++n) {
      const std::int32_t step = n - work.tiles.begin;
      wait_for_pair(ptx::shared_address(&shared.s_full[step % 2]), step / 2 & 1);
      if (has_rows) {
        weigh(params, shared, work, own, visible, softmax, n);
      } else {
        weigh_nothing(shared, own, step);
      }
      if (n + 1 == work.tiles.end) clear_values_behind(params, shared, work);
      hand_over_to_leader(shared.p_ready[step % 2]);
    }
    if (work.steps() <= 0) return;
    // Nothing may arrive here once this CTA has exited: wait for the last o_ready too.
    if (work.steps() > 1) wait_for_pair(ptx::shared_address(&shared.o_ready), work.steps() & 1);
    wait_for_pair(ptx::shared_address(&shared.o_full), 0);
  }

  static __device__ void finish(const Params& params, Shared& shared, const Work& work,
                                std::uint32_t columns, RowSoftmax& softmax) {
    if constexpr (kIsHalved)
      softmax.sum += exchange_in_row(shared.exchanged, work.steps(), softmax.sum);
    if (work.rows() <= 0) return;
    const float factor = finish_group_row<kRows>(params, work, softmax);
    store_results<Element, kBoxes, kRows, typename Form::Store>(
        params, shared.q, work, columns + kResults, factor, work.steps() > 0);
  }

  // All threads of both CTAs.
  static __device__ void run_roles(const Params& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const Work work(params, shared.found, ptx::cluster_ctarank());
    if (!work.pair_has_rows()) return;  // a short one of packed sequences
    clear_rows_behind(shared.q, work.box_rows());
    const std::uint32_t columns =
        open_tensor_memory<kColumns, kCtas>(shared.tensor_memory, [&] { shared.initialise(); });
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp < kMmaWarp) {
      RowSoftmax softmax;
      attend(params, shared, work, columns, softmax);
      finish(params, shared, work, columns, softmax);
    } else if (Form::kLoadsByWarp && warp == kLoadWarp) {
      typename Kernel::Loader{params, shared, work}.run();
    } else if (ptx::elect_sync()) {
      if (!Form::kLoadsByWarp && warp == kLoadWarp) {
        typename Kernel::Loader{params, shared, work}.run();
      } else if (work.rank == 0) {
        Multiplier{shared, columns}.run(work.steps());
      }
    }
    __syncwarp();
    close_tensor_memory<kColumns, kCtas>(columns);
  }
};

}  // namespace tilewright::tile
