// The roles of attention by pairs of CTAs, and the thread that multiplies: sm100_decode_pair.cu
// says how they work together.
#pragma once

#include "arch/tcgen05_descriptors.h"
#include "kernels/sparse_attention/pair/rows.h"
#include "kernels/sparse_attention/pair/shared.h"
#include "ptx/grid_dependency.h"
#include "ptx/tcgen05_mma.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// One thread of the first CTA multiplies for both.
template <class Form, class Task>
struct PairMultiplier {
  static constexpr auto kType = static_cast<std::uint32_t>(Form::kType);
  static constexpr int kMmaK = 16;
  using Keys = tile::Box<kSparseBlockKeys, tile::kPairHalfDims * 2>;
  using Tails = tile::Box<kSparseBlockKeys, tile::kPairTailRowBytes, arch::SmemSwizzle::k64B>;

  const typename Task::Params& params;
  tile::SparsePairShared<Form>& shared;
  std::uint32_t columns;

  static __device__ void commit_to_pair(std::uint64_t& barrier) {
    ptx::tcgen05_commit_multicast<2>(ptx::shared_address(&barrier), 0b11);
  }
  __device__ std::uint32_t keys(std::int32_t step) const {
    return ptx::shared_address(shared.keys[step % tile::kPairStages][0]);
  }
  __device__ std::uint32_t scores(std::int32_t step) const {
    return columns + step % 2 * Form::kScores;
  }
  __device__ std::uint32_t weights(std::int32_t step) const {
    return columns + step % 2 * Form::kWeights;
  }

  // Sums of 64 rows of each CTA over 256 dimensions: those of the first CTA's keys in lanes 0 to
  // 63, of the second's in lanes 64 to 127, where the queries have those dimensions.
  __device__ void score(std::int32_t step) const {
    constexpr arch::MmaInstruction kProduct = {
        .a_type = kType, .b_type = kType, .m = 128, .n = 2 * kSparseBlockKeys};
    constexpr std::uint32_t kInstruction = arch::encode_mma_instruction(kProduct);
    const int stage = step % tile::kPairStages;
    if constexpr (Form::kHasTail) {
      if (step > 0) tile::wait_for_pair(ptx::shared_address(&shared.tail.s_read), (step - 1) & 1);
    }
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared.k_full[stage]),
                                      step / tile::kPairStages & 1);
    constexpr int kBoxes = Form::kHasWideQueries ? tile::kPairBoxes : 0;
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      const std::uint64_t b =
          arch::tcgen05_descriptor<Keys::kBox>(keys(step) + box * tile::kPairBoxBytes);
#pragma unroll
      for (int k = 0; k < tile::kBoxColumns; k += kMmaK) {
        const std::uint32_t a = columns + Form::kQueries + (box * tile::kBoxColumns + k) / 2;
        ptx::tcgen05_mma_f16_tmem<2>(scores(step), a, b + (k * 2 >> 4), kInstruction,
                                     box > 0 || k > 0);
      }
    }
    if constexpr (Form::kHasTail) {
      const std::uint64_t b =
          arch::tcgen05_descriptor<Tails::kBox>(ptx::shared_address(shared.tail.tails[stage]));
#pragma unroll
      for (int k = 0; k < Form::kTailDims; k += kMmaK) {
        const std::uint32_t a = columns + Form::kQueries + (tile::kPairHalfDims + k) / 2;
        ptx::tcgen05_mma_f16_tmem<2>(scores(step), a, b + (k * 2 >> 4), kInstruction,
                                     Form::kHasWideQueries || k > 0);
      }
    }
    commit_to_pair(shared.s_full[step % 2]);
  }
  __device__ void add_values(std::int32_t step, bool accumulate) const {
    constexpr arch::MmaInstruction kProduct = {
        .a_type = kType, .b_type = kType, .b_major = arch::Major::kMN, .m = 128, .n = 256};
    constexpr std::uint32_t kInstruction = arch::encode_mma_instruction(kProduct);
    tile::wait_for_pair(ptx::shared_address(&shared.p_ready[step % 2]), step / 2 & 1);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t b = arch::tcgen05_descriptor<Keys::kBox, arch::Major::kMN>(
          keys(step) + i * 2 * tile::kPairBoxBytes);
#pragma unroll
      for (int k = 0; k < kSparseBlockKeys; k += kMmaK) {
        ptx::tcgen05_mma_f16_tmem<2>(columns + tile::kPairResults + i * 128, weights(step) + k / 2,
                                     b + (k * tile::kBoxRowBytes >> 4), kInstruction,
                                     accumulate || k > 0);
      }
    }
    commit_to_pair(shared.k_free[step % tile::kPairStages]);
  }

  __device__ void run(std::int32_t group) const {
    typename Task::Piece piece;
    std::int32_t step = 0;
    std::uint32_t parity = 0;
    for (typename Task::Walk walk(params, group); walk.next(piece);) {
      const std::int32_t end = step + Task::blocks(params, piece), begin = step;
      if (begin == end) continue;
      tile::wait_for_pair(ptx::shared_address(&shared.q_ready), parity);
      parity ^= 1;
      score(step);
      for (++step; step < end; ++step) {
        score(step);
        add_values(step - 1, step - 1 > begin);
      }
      add_values(end - 1, end - 1 > begin);
    }
  }
};

/// `Use` says what rows are (Form), which rows there are (Task), and how keys come (Keys<Half>).
template <class Use>
__device__ void attend_in_pairs(const typename Use::Task::Params& params) {
  using Tile = SparsePairTile;
  using Form = typename Use::Form;
  using Task = typename Use::Task;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::SparsePairShared<Form>*>(dynamic);
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t columns = tile::open_tensor_memory<tile::kPairColumns, 2>(
      shared.tensor_memory, [&] { shared.initialise(); });
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto group = static_cast<std::int32_t>(blockIdx.x / 2);
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if (warp < Tile::kRowWarps) {
    tile::SparsePairRows<Form, Task>(params, shared, columns, rank).run(group);
  } else if (warp < Tile::kRowWarps + Tile::kKeyWarps) {
    if (rank == 0) {
      typename Use::template Keys<0>(params, shared, group, warp - Tile::kRowWarps).run();
    } else {
      typename Use::template Keys<1>(params, shared, group, warp - Tile::kRowWarps).run();
    }
  } else if (rank == 0 && ptx::elect_sync()) {
    PairMultiplier<Form, Task>{params, shared, columns}.run(group);
  }
  __syncwarp();
  tile::close_tensor_memory<tile::kPairColumns, 2>(columns);
}

}  // namespace

/// USE is a name without a comma.
#define TILEWRIGHT_ATTENTION_IN_PAIRS(NAME, USE)                                              \
  TILEWRIGHT_KERNEL(NAME, USE::Task::Params,                                                  \
                    __cluster_dims__(2, 1, 1) __launch_bounds__(SparsePairTile::kThreads, 1), \
                    attend_in_pairs<USE>)

}  // namespace tilewright::kernels
