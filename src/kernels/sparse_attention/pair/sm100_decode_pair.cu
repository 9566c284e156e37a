// targets: sm_100f
//
// Sparse attention on Blackwell by pairs of CTAs that multiply together: 33 to 128 heads of a
// query, half of them in each CTA, or two neighbouring queries of up to 64 heads (README.md).
//
// Each CTA has half of the dimensions of every key: it gathers these from the cache, decodes them
// once, and both products read what it wrote, as keys and as values. The queries have the first
// 256 dimensions in lanes 0 to 63 of Tensor Memory and the others in lanes 64 to 127. An
// instruction of M = 128 puts the columns that the second CTA supplies into the upper lanes, and
// reads A there: so one instruction makes sums over both halves, each in its own lanes. The two
// threads of a row exchange them through shared memory; each goes on with half of the keys.
//
//   warps 4-11   8 keys of each block: bytes to registers a block ahead, bf16 to shared memory
//                (bf16 rows by cp.async, two blocks ahead); arrive at k_full, in the first CTA
//   warp 12      one thread of the first CTA: S of the next block, then O += P V of the last
//   warps 0-3    a row two threads: half sums, weights, weights to both; arrive at p_ready. The
//                next queries while the last values are added; then results
//
//   keys     | 0 | 1 | 2 | 3 | 4 ...                      four stages
//   tensor       | S0 | S1 | O0 | S2 | O1 | S3 | O2 ...
//   rows              | 0  |  1     |  2     |  3 ...
//
//   barriers   k_full[4], p_ready[2], q_ready, s_read: in the first CTA, a warp of either an
//              arrival; s_full[2], k_free[4]: in both, by commit. k_free also says that the values
//              of its block are in the results; s_read, of rows of 576 alone, that the scores of a
//              block are in registers, whose columns the next ones overlap
//
// Weights are relative to a maximum that stays until a score of the warps' rows is more than 2^8
// above it. They are made with the old one first; both warps of a row tell each other whether that
// was right when they exchange weights. If not they are made again, and results are rescaled.
//
// Counts and bounds of the units: README.md. Not run on a B200.
// Sources: FlashMLA's kernel for 128 heads on Blackwell: halves of the dimensions in the two CTAs,
// half sums in two halves of the lanes; PTX ISA, tcgen05 data path layout B.
#include "arch/instruction_descriptor.h"
#include "kernels/sparse_attention/pair/keys.h"
#include "kernels/sparse_attention/pair/rows.h"
#include "kernels/sparse_attention/pair/shared.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"
#include "ptx/grid_dependency.h"
#include "ptx/tcgen05_mma.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using tile::SparsePairShared;

// One thread of the first CTA multiplies for both.
template <class Form>
struct Multiplier {
  static constexpr auto kBf16 = static_cast<std::uint32_t>(arch::MmaF16Type::kBf16);
  static constexpr int kMmaK = 16;
  using Keys = tile::Box<kSparseBlockKeys, tile::kPairHalfDims * 2>;
  using Tails = tile::Box<kSparseBlockKeys, tile::kPairTailRowBytes, arch::SmemSwizzle::k64B>;

  const SparseDecodeParams& params;
  SparsePairShared<Form>& shared;
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
        .a_type = kBf16, .b_type = kBf16, .m = 128, .n = 2 * kSparseBlockKeys};
    constexpr std::uint32_t kInstruction = arch::encode_mma_instruction(kProduct);
    const int stage = step % tile::kPairStages;
    if constexpr (Form::kHasTail) {
      if (step > 0) tile::wait_for_pair(ptx::shared_address(&shared.tail.s_read), (step - 1) & 1);
    }
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared.k_full[stage]),
                                      step / tile::kPairStages & 1);
#pragma unroll
    for (int box = 0; box < tile::kPairBoxes; ++box) {
      const std::uint64_t b = Keys::tensor_k_major(keys(step) + box * tile::kPairBoxBytes);
#pragma unroll
      for (int k = 0; k < tile::kBoxColumns; k += kMmaK) {
        const std::uint32_t a = columns + Form::kQueries + (box * tile::kBoxColumns + k) / 2;
        ptx::tcgen05_mma_f16_tmem<2>(scores(step), a, b + (k * 2 >> 4), kInstruction,
                                     box > 0 || k > 0);
      }
    }
    if constexpr (Form::kHasTail) {
      const std::uint64_t b = Tails::tensor_k_major(ptx::shared_address(shared.tail.tails[stage]));
#pragma unroll
      for (int k = 0; k < Form::kTailDims; k += kMmaK) {
        const std::uint32_t a = columns + Form::kQueries + (tile::kPairHalfDims + k) / 2;
        ptx::tcgen05_mma_f16_tmem<2>(scores(step), a, b + (k * 2 >> 4), kInstruction, true);
      }
    }
    commit_to_pair(shared.s_full[step % 2]);
  }
  __device__ void add_values(std::int32_t step, bool accumulate) const {
    constexpr arch::MmaInstruction kProduct = {
        .a_type = kBf16, .b_type = kBf16, .b_major = arch::Major::kMN, .m = 128, .n = 256};
    constexpr std::uint32_t kInstruction = arch::encode_mma_instruction(kProduct);
    tile::wait_for_pair(ptx::shared_address(&shared.p_ready[step % 2]), step / 2 & 1);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t b = Keys::tensor_mn_major(keys(step) + i * 2 * tile::kPairBoxBytes);
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
    SparseWork piece;
    std::int32_t step = 0;
    std::uint32_t parity = 0;
    for (tile::SparseWalk walk(params, group); walk.next(piece);) {
      const std::int32_t end = step + tile::blocks_of(params, piece), begin = step;
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

template <KvFormat Format>
__device__ void attend(const SparsePairParams& pair) {
  using Tile = SparsePairTile;
  using Form = tile::PairForm<kv_dims(Format)>;
  const SparseDecodeParams& params = pair.decode;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<SparsePairShared<Form>*>(dynamic);
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t columns = tile::open_tensor_memory<tile::kPairColumns, 2>(
      shared.tensor_memory, [&] { shared.initialise(); });
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto group = static_cast<std::int32_t>(blockIdx.x / 2);
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if (warp < Tile::kRowWarps) {
    tile::SparsePairRows<Form>(pair, shared, columns, rank).run(group);
  } else if (warp < Tile::kRowWarps + Tile::kKeyWarps) {
    if (rank == 0) {
      tile::SparsePairKeys<Format, 0>(params, shared, group, warp - Tile::kRowWarps).run();
    } else {
      tile::SparsePairKeys<Format, 1>(params, shared, group, warp - Tile::kRowWarps).run();
    }
  } else if (rank == 0 && ptx::elect_sync()) {
    Multiplier<Form>{params, shared, columns}.run(group);
  }
  __syncwarp();
  tile::close_tensor_memory<tile::kPairColumns, 2>(columns);
}

}  // namespace
#define TILEWRIGHT_SPARSE_DECODE_PAIR(NAME, FORMAT)                                           \
  TILEWRIGHT_KERNEL(sparse_decode_pair_##NAME, SparsePairParams,                              \
                    __cluster_dims__(2, 1, 1) __launch_bounds__(SparsePairTile::kThreads, 1), \
                    attend<KvFormat::FORMAT>)

TILEWRIGHT_SPARSE_DECODE_PAIR(fp8, kFp8)
TILEWRIGHT_SPARSE_DECODE_PAIR(nvfp4, kNvfp4)
TILEWRIGHT_SPARSE_DECODE_PAIR(bf16, kBf16)
TILEWRIGHT_SPARSE_DECODE_PAIR(fp8_mla, kFp8Mla)
TILEWRIGHT_SPARSE_DECODE_PAIR(bf16_mla, kBf16Mla)

}  // namespace tilewright::kernels
