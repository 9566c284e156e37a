// A tile of rows a CTA: columns of Tensor Memory (stage D's, too); of stages B and C shared memory,
// and all that the loading and the multiplying thread do.
#pragma once

#include "kernels/attention_sm100/boxes_16bit.h"

#include <cstdint>

namespace tilewright::tile {

/// Columns of Tensor Memory: scores in f32, probabilities as the A operand, results in f32.
template <int Keys>
struct TensorColumns {
  static constexpr int kScores = 0, kOperand = Keys,
                       kResults = kOperand + arch::packed_columns(Keys);

  /// An allocation is a power of 2.
  static constexpr int allocated(int value_columns) {
    return kResults + value_columns <= 256 ? 256 : 512;
  }
};

/// Shared memory of a CTA. Results leave through the boxes of q.
template <int HeadDim_, int ValueColumns_, int Stages>
struct TensorAttentionShared {
  static constexpr int kStages = Stages, kHeadDim = HeadDim_, kValueColumns = ValueColumns_;
  static constexpr int kKeyBoxes = kHeadDim / kBoxElems, kValueBoxes = kValueColumns / kBoxElems;

  std::uint8_t q[kKeyBoxes][kBoxBytes];
  std::uint8_t boxes[Stages][kBoxBytes];
  RingBarriers<Stages> ring;
  std::uint64_t q_full;   ///< the queries have landed
  std::uint64_t s_full;   ///< by commit: the scores of a tile are there, and all products before
  std::uint64_t p_ready;  ///< by all row threads: the operand of a tile is there
  std::uint64_t o_full;   ///< by commit: the last product is done
  std::uint32_t tensor_memory;

  __device__ void initialise() {
    ring.initialise(1);
    ptx::mbarrier_init(ptx::shared_address(&q_full), 1);
    ptx::mbarrier_init(ptx::shared_address(&s_full), 1);
    ptx::mbarrier_init(ptx::shared_address(&p_ready), kRowThreads);
    ptx::mbarrier_init(ptx::shared_address(&o_full), 1);
  }
};

/// The loading thread, all that it does.
template <class Shared, class Work>
__device__ void load_operands(const kernels::AttentionParams& params, Shared& shared,
                              const Work& work) {
  if (work.num_tiles() <= 0) return;
  const std::uint32_t q_full = ptx::shared_address(&shared.q_full);
  ptx::mbarrier_arrive_expect_tx(q_full, Shared::kKeyBoxes * work.box_rows() * kBoxRowBytes);
  load_queries(params, shared.q, work, q_full);
  RingPosition<Shared::kStages> at;
  for (std::int32_t n = work.tiles.begin; n < work.tiles.end; ++n) {
    load_tile<Shared::kKeyBoxes>(params, shared, params.k_map, work, 0, n, at);
    load_tile<Shared::kValueBoxes>(params, shared, params.v_map, work, work.value_begin, n, at);
  }
}

/// The multiplying thread, all that it does: scores of a tile, then, when the row threads have made
/// an operand of them, its values. `columns` is the first of the CTA.
template <class Element, class Shared>
__device__ void multiply_tiles(Shared& shared, std::uint32_t columns, std::int32_t num_tiles) {
  if (num_tiles <= 0) return;
  const Ring<Shared::kStages> ring(shared.ring);
  RingPosition<Shared::kStages> at;
  ptx::mbarrier_wait_parity(ptx::shared_address(&shared.q_full), 0);
  for (std::int32_t n = 0; n < num_tiles; ++n) {
#pragma unroll 1
    for (int box = 0; box < Shared::kKeyBoxes; ++box) {
      ring.wait_full(at);
      issue_scores<Element, kKeys>(columns + TensorColumns<kKeys>::kScores,
                                   ptx::shared_address(shared.q[box]),
                                   ptx::shared_address(shared.boxes[at.stage]), box > 0);
      ptx::tcgen05_commit(ring.empty(at));
      at.advance();
    }
    ptx::tcgen05_commit(ptx::shared_address(&shared.s_full));
    wait_for_tensor_memory(ptx::shared_address(&shared.p_ready), n & 1);
#pragma unroll 1
    for (int box = 0; box < Shared::kValueBoxes; ++box) {
      ring.wait_full(at);
      issue_values<Element, kKeys>(columns + TensorColumns<kKeys>::kResults + box * kBoxElems,
                                   columns + TensorColumns<kKeys>::kOperand,
                                   ptx::shared_address(shared.boxes[at.stage]), n > 0);
      ptx::tcgen05_commit(ring.empty(at));
      at.advance();
    }
  }
  ptx::tcgen05_commit(ptx::shared_address(&shared.o_full));
}

}  // namespace tilewright::tile
